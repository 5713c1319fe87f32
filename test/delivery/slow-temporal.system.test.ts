import { createBulkRetries } from '../../src/delivery/bulk-retry.ts'
import { createReconcile } from '../../src/delivery/reconcile.ts'
import { createTemporal } from '../../src/temporal/client.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { startRelay } from '../support/relay.ts'
import { share } from '../support/share.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { until } from '../support/until.ts'

// The server looks once a second for what it owes workflows. A child that was just started has no task for so long.
const env = share(await startTemporalServer(['history.transferProcessorMaxPollRPS=1']))
const relay = share(await startRelay(env))
const target = share(await startHttpTarget())

test('the reconciler ends no workflow of a slow server, however often it asks, and everything arrives once', async () => {
  const documents = 4
  const names = ['one', 'two', 'three']
  await relay.run(async (running) => {
    const reconcile = createReconcile(
      relay.db,
      createTemporal(env.client, env.connection, relay.config),
      createBulkRetries(relay.db),
      running.launcher.sendAll,
      relay.config,
      // Every open delivery counts as overdue at once, and two checks need no time between them.
      { ageMs: 0 },
    )
    const { receive } = await running.createRoutes(names.map((name) => ({ name, config: { url: `${target.origin}/${name}` } })))
    const received = await Promise.all(Array.from({ length: documents }, (_, number) => receive(`document ${number}`)))
    // As if the dispatcher had begun them long ago.
    const deliveries = () =>
      relay.db('deliveries').whereIn(
        'document_id',
        received.map(({ id }) => id),
      )
    await deliveries().update({ begin_at: null, next_attempt_at: new Date(0) })
    let checked = 0
    const areDelivered = async () => {
      checked += (await reconcile()).checked
      return (await Promise.all(received.map(({ status }) => status()))).every((status) => status === 'delivered')
    }
    await until('all are delivered', areDelivered)
    expect(checked).toBeGreaterThan(documents * names.length)
    for (const document of received) {
      const statuses = await Promise.all(
        [undefined, ...names].map((name) =>
          until(
            'the workflow has closed',
            async () => (await document.handle(name).describe()).status.name,
            (status) => status !== 'RUNNING',
          ),
        ),
      )
      expect(statuses).toEqual(['COMPLETED', 'COMPLETED', 'COMPLETED', 'COMPLETED'])
    }
  })
  expect(target.arrivals.map(({ url, body }) => `${url} ${body.toString()}`).toSorted()).toEqual(
    names.flatMap((name) => Array.from({ length: documents }, (_, number) => `/${name} document ${number}`)).toSorted(),
  )
}, 240_000)
