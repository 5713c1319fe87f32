import { readConfig } from '../../src/config.ts'
import { secretsIn } from '../../src/connectors/shared/secrets.ts'
import { testTarget } from '../../src/http/targets.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { loadRigs } from './rig.ts'
import { installationId } from './payloads.ts'

const installation = { id: async () => installationId }

type Settings = Record<string, unknown>

// An operator waits for the result.
const promptlyMs = 15_000

test.each(await loadRigs())('a test of $kind says what to correct, within seconds and without a secret', async ({ startProbeTarget }) => {
  const { connector, config, credentials, mistakes, stop } = await startProbeTarget()
  const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
  const deps = { outbound, installation, config: readConfig({}) }
  const run = (otherConfig: Settings, otherCredentials: Settings) =>
    testTarget(
      deps,
      connector,
      { config: { ...config, ...otherConfig }, credentials: { ...credentials, ...otherCredentials } },
      new AbortController().signal,
    )

  expect(await run({}, {})).toMatchObject({ status: 'success' })
  for (const [mistake, otherConfig, otherCredentials, message] of mistakes) {
    const startedAt = Date.now()
    const result = await run(otherConfig, otherCredentials)
    expect({ mistake, ...result }).toEqual({ mistake, status: 'failed', message: expect.stringMatching(message) })
    expect(Date.now() - startedAt).toBeLessThan(promptlyMs)
    for (const secret of secretsIn(connector.credentials, { ...credentials, ...otherCredentials })) {
      expect(result.message).not.toContain(secret)
    }
  }
  await outbound.close()
  await stop()
})
