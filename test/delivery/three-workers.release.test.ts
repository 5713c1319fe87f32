import { setTimeout as delay } from 'node:timers/promises'
import { catchUpMs } from '../../src/delivery/slots.ts'
import { deliveryWorkflowId } from '../../workflows/ids.ts'
import { documentKeyOf } from '../support/factories.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { createInstallation } from '../support/installation.ts'
import { routeTo } from '../support/relay-process.ts'
import { share } from '../support/share.ts'

// The limits of a destination hold across all workers of the installation.

const target = share(await startHttpTarget())
const { database, env, start } = share(await createInstallation())
const api = await start('api')
await Promise.all([start('worker'), start('worker'), start('worker')])

/** Sends documents to a destination with these limits, all at once. @returns their ids, when all are delivered */
const relay = async (limits: object, documents: number): Promise<{ ids: string[]; destinationId: string }> => {
  const { send, untilDelivered, destinationId } = await routeTo(database, 'webhook', { url: target.origin, ...limits }, {})
  await Promise.all(Array.from({ length: documents }, (_, index) => send(api, `DOC${index}`)))
  return { ids: await untilDelivered(documents), destinationId }
}

/** Returns the workers that took part in the deliveries. */
const workersOf = async (ids: string[], destinationId: string): Promise<Set<string>> => {
  const identities = new Set<string>()
  for (const id of ids) {
    const delivery = env.client.workflow.getHandle(deliveryWorkflowId(await documentKeyOf(database.db, id), destinationId))
    for (const { activityTaskStartedEventAttributes: started } of (await delivery.fetchHistory()).events ?? []) {
      if (started?.identity) identities.add(started.identity)
    }
  }
  return identities
}

test('three workers reach the limit of concurrent deliveries together, and never exceed it', async () => {
  const limit = 4
  let open = 0
  let maxOpen = 0
  const full = Promise.withResolvers<void>()
  target.answerWith((_, response) => {
    open += 1
    maxOpen = Math.max(maxOpen, open)
    if (open >= limit) full.resolve()
    // Once the limit is reached, there is time to exceed it.
    void full.promise
      .then(() => delay(300))
      .then(() => {
        open -= 1
        response.end()
      })
  })
  const { ids, destinationId } = await relay({ max_concurrent_deliveries: limit }, 24)
  expect(maxOpen).toBe(limit)
  expect((await workersOf(ids, destinationId)).size).toBeGreaterThan(1)
}, 300_000)

test('three workers together never exceed the limit of deliveries per minute', async () => {
  const [perMinute, documents] = [120, 18]
  const arrivedAt: number[] = []
  target.answerWith((_, response) => {
    arrivedAt.push(performance.now())
    response.end()
  })
  const startedAt = performance.now()
  const { ids, destinationId } = await relay({ max_deliveries_per_minute: perMinute }, documents)
  expect(arrivedAt).toHaveLength(documents)
  // A request arrives after the limit has allowed it, however slow the machine is.
  for (const [index, at] of arrivedAt.entries()) {
    const allowed = ((at - startedAt + catchUpMs) / (60_000 + catchUpMs)) * perMinute + 1
    expect(index + 1).toBeLessThanOrEqual(allowed)
  }
  expect((await workersOf(ids, destinationId)).size).toBeGreaterThan(1)
}, 300_000)
