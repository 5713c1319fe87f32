import { pino } from 'pino'
import { startProbesServer } from '../../src/app/probes-server.ts'
import { readConfig } from '../../src/config/config.ts'
import { createProbes } from '../../src/observe/probes.ts'
import { testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'

const token = 'token-of-prometheus'
const log = pino({ level: 'silent' })

const serve = async (variables: Record<string, string>) => {
  const config = testConfig({ RELAY_HOST: '0.0.0.0', RELAY_BASE_URL: 'https://relay.example', RELAY_WORKER_PORT: '0', ...variables })
  const server = await startProbesServer(createProbes(log), 'RELAY_WORKER_PORT', config, log)
  const ask = async (path: string, authorization?: string) =>
    (await fetch(server.baseUrl + path, authorization === undefined ? {} : { headers: { authorization } })).status
  return share({ ...server, ask, [Symbol.asyncDispose]: server.close })
}

test('probes and metrics listen on this machine only, unless RELAY_PROBES_HOST says otherwise', async () => {
  expect((await serve({})).localUrl).toMatch(/^http:\/\/127\.0\.0\.1:/)
  expect((await serve({ RELAY_PROBES_HOST: '127.0.0.3' })).localUrl).toMatch(/^http:\/\/127\.0\.0\.3:/)
})

test('without RELAY_METRICS_TOKEN, the metrics need none', async () => {
  const { ask } = await serve({})
  expect(await Promise.all(['/metrics', '/healthz', '/readyz'].map((path) => ask(path)))).toEqual([200, 200, 200])
})

test.each([
  [undefined, 401],
  ['', 401],
  [token, 401],
  [`Basic ${token}`, 401],
  [`Bearer ${token}x`, 401],
  [`Bearer ${token.slice(1)}`, 401],
  [`Bearer ${token.toUpperCase()}`, 401],
  [`Bearer ${token}`, 200],
  [`bearer  ${token}`, 200],
])('with RELAY_METRICS_TOKEN, the header %j is answered %d', async (authorization, status) => {
  const { ask } = await serve({ RELAY_METRICS_TOKEN: token })
  expect(await ask('/metrics', authorization)).toBe(status)
  expect(await ask('/metrics?', authorization)).toBe(status)
  expect([await ask('/healthz', authorization), await ask('/readyz', authorization)]).toEqual([200, 200])
})

test('a token that could be guessed, or that a header cannot have, is refused', () => {
  for (const weak of ['short', 'with a blank inside it', 'Größe-0123456789ab']) {
    expect(() => readConfig({ RELAY_METRICS_TOKEN: weak })).toThrow(/RELAY_METRICS_TOKEN/)
  }
})
