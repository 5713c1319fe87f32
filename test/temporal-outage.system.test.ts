import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startTemporalDevServer } from '../src/dev/temporal-dev-server.ts'
import { configOf } from './dev/support.ts'
import { createTestDatabase } from './support/database.ts'
import { startHttpTarget } from './support/http-target.ts'
import { relayVariables, startRelayProcess, routeToWebhook, type RelayProcess } from './support/relay-process.ts'
import { until } from './support/until.ts'

// Runs real processes with the default intervals.

const database = await createTestDatabase()
const target = await startHttpTarget()
const dataDir = await mkdtemp(join(tmpdir(), 'relay-outage-'))
// Uses the same port and the same database file at every start.
const startTemporal = () => startTemporalDevServer({ dataDir, config: configOf(), say: () => {} })
let temporal = await startTemporal()
const processes: RelayProcess[] = []
afterAll(async () => {
  for (const running of processes) await running.kill()
  await temporal.stop()
  await target.stop()
  await database.drop()
  await rm(dataDir, { recursive: true, force: true })
})

const startRelay = async (verb: 'api' | 'worker') => {
  const running = await startRelayProcess(verb, relayVariables(database, { address: temporal.address }))
  processes.push(running)
  return running
}

describe('documents received while Temporal is unavailable', () => {
  test('are acknowledged, and delivered once Temporal is available again', async () => {
    const { workspaceSlug } = await routeToWebhook(database, target.origin)
    const api = await startRelay('api')
    const worker = await startRelay('worker')
    const create = async (docId: string) => {
      const url = `${api.baseUrl}/receiver/acme/${workspaceSlug}?create&pVersion=0045&contRep=Z1&docId=${docId}&compId=data`
      return (await fetch(url, { method: 'PUT', body: docId })).status
    }
    expect(await create('BEFORE')).toBe(201)
    await until('the first document is delivered', () => target.arrivals.length > 0)

    await temporal.stop()
    for (const docId of ['D1', 'D2', 'D3']) expect(await create(docId)).toBe(201)
    for (const { probesUrl } of [api, worker]) {
      await until(`${probesUrl} has noticed the outage`, async () => {
        const answer = (await (await fetch(`${probesUrl}/readyz`)).json()) as { dependencies: { temporal: { ok: boolean } } }
        return !answer.dependencies.temporal.ok
      })
    }
    temporal = await startTemporal()
    await until(
      'all 4 documents are delivered',
      () => target.arrivals.length,
      (count) => count >= 4,
    )

    expect(target.arrivals.map(({ body }) => body.toString()).toSorted()).toEqual(['BEFORE', 'D1', 'D2', 'D3'])
  }, 240_000)
})
