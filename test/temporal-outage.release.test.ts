import { createTestDatabase } from './support/database.ts'
import { startHttpTarget } from './support/http-target.ts'
import { startOwnTemporal } from './support/own-temporal.ts'
import { createRelayProcesses, relayVariables, routeToWebhook } from './support/relay-process.ts'
import { until } from './support/until.ts'

// Runs real processes with the default intervals.

describe('documents received while Temporal is unavailable', () => {
  test('are acknowledged, and delivered once Temporal is available again', async () => {
    await using database = await createTestDatabase()
    await using target = await startHttpTarget()
    await using temporal = await startOwnTemporal()
    await using processes = createRelayProcesses(relayVariables(database, temporal))
    const { send } = await routeToWebhook(database, target.origin)
    const api = await processes.start('api')
    const worker = await processes.start('worker')
    await send(api, 'BEFORE', 'BEFORE')
    await until('the first document is delivered', () => target.arrivals.length > 0)

    await temporal.stop()
    for (const docId of ['D1', 'D2', 'D3']) await send(api, docId, docId)
    for (const { probesUrl } of [api, worker]) {
      await until(`${probesUrl} has noticed the outage`, async () => {
        const answer = (await (await fetch(`${probesUrl}/readyz`)).json()) as { dependencies: { temporal: { ok: boolean } } }
        return !answer.dependencies.temporal.ok
      })
    }
    await temporal.start()
    await until(
      'all 4 documents are delivered',
      () => target.arrivals.length,
      (count) => count >= 4,
    )

    expect(target.arrivals.map(({ body }) => body.toString()).toSorted()).toEqual(['BEFORE', 'D1', 'D2', 'D3'])
  }, 240_000)
})
