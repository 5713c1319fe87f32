import { batchWorkflowId, deliveryWorkflowId, documentWorkflowId } from '../../workflows/ids.ts'
import type { BatchActivities } from '../../workflows/messages.ts'
import { documentKeyOf } from '../support/factories.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { startRelay, type Running, type StartedRelay } from '../support/relay.ts'
import { share } from '../support/share.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { until } from '../support/until.ts'
import { createScene, type Scene } from './scene.ts'

// Routes are changed through the API while documents are delivered to a real target.

const env = share(await startTemporalServer())
const relay = share(await startRelay(env, { DELIVERY_HEARTBEAT_TIMEOUT_MS: '5000' }, { batchSize: 2 }))
const target = share(await startHttpTarget())
/** Bodies of requests that the relay closed before they were answered. */
let abortedRequests: string[]

beforeEach(() => {
  target.arrivals.length = 0
  abortedRequests = []
  // The text of a document determines the answer of the target.
  target.answerWith(({ body }, response) => {
    const text = body.toString()
    if (text.startsWith('hang')) {
      response.on('close', () => abortedRequests.push(text))
      return
    }
    response.statusCode = text.startsWith('busy') ? 503 : text.startsWith('refused') ? 400 : 200
    response.end()
  })
})

const runScenario = (scenario: (scene: Scene, running: Running) => Promise<void>, wrap?: Parameters<StartedRelay['run']>[1]) =>
  relay.run(async (running) => scenario(await createScene(relay, running), running), wrap)

const receiveAll = async (scene: Scene, count: number) => {
  const ids: string[] = []
  for (let index = 0; index < count; index += 1) ids.push(await scene.receive(`document ${index}`))
  return ids
}
const statuses = (scene: Scene, ids: string[]) =>
  Promise.all(ids.map(async (id) => (await scene.statusOf(id)).deliveries.join())).then((joined) => joined.toSorted())
const untilAll = (scene: Scene, ids: string[], status: string) =>
  until(
    `all deliveries are ${status}`,
    () => statuses(scene, ids),
    (found) => found.every((each) => each === status),
  )
const handleOf = async (documentId: string) => {
  const { destination_id } = await relay.db('deliveries').where({ document_id: documentId }).first('destination_id')
  return env.client.workflow.getHandle(deliveryWorkflowId(await documentKeyOf(relay.db, documentId), destination_id))
}
const texts = () => target.arrivals.map(({ body }) => body.toString()).toSorted()
const describeDocument = async (id: string) =>
  env.client.workflow.getHandle(documentWorkflowId(await documentKeyOf(relay.db, id))).describe()
const describeDelivery = async (id: string, destinationId: string) =>
  env.client.workflow.getHandle(deliveryWorkflowId(await documentKeyOf(relay.db, id), destinationId)).describe()
const resultOf = async ({ workspace }: Scene, action: 'release' | 'cancel', id: string): Promise<string> => {
  // The API answers before the workflow is started.
  await relay.untilOutboxEmpty()
  return env.client.workflow.getHandle(batchWorkflowId({ action, workspace, id })).result()
}

describe('an inactive connection', () => {
  test('holds received documents, and forwards them when it is activated', async () => {
    await runScenario(async (scene) => {
      const connectionId = await scene.connect([await scene.destination('archive', target.origin)], { is_active: false })
      const ids = await receiveAll(scene, 5)
      expect(await scene.statusOf(ids[0]!)).toEqual({ document: 'pending', deliveries: ['held'] })
      expect(target.arrivals).toEqual([])

      await scene.change(connectionId, { is_active: true })
      await untilAll(scene, ids, 'delivered')
      expect(texts()).toEqual(ids.map((_id, index) => `document ${index}`))
      expect(await resultOf(scene, 'release', connectionId)).toBe('released 5 deliveries')
      expect(await scene.statusOf(ids[0]!)).toEqual({ document: 'delivered', deliveries: ['delivered'] })
      expect(await relay.db('outbox').select('key')).toEqual([])
    })
  })

  test('with on_resume `skip` keeps deliveries held, until a manual retry of one or a change to `forward`', async () => {
    await runScenario(async (scene) => {
      const destinationId = await scene.destination('archive', target.origin)
      const connectionId = await scene.connect([destinationId], { is_active: false, settings: { on_resume: 'skip' } })
      const ids = await receiveAll(scene, 3)
      await scene.change(connectionId, { is_active: true })
      const later = await scene.receive('later')
      await untilAll(scene, [later], 'delivered')
      expect(await statuses(scene, ids)).toEqual(['held', 'held', 'held'])
      expect(await relay.release.releaseOverdue()).toEqual([])

      const retryOne = () => scene.acme.call('POST', `/documents/${ids[1]}/deliveries/${destinationId}/retry`)
      expect((await retryOne()).status).toBe(200)
      await untilAll(scene, [ids[1]!], 'delivered')
      expect((await retryOne()).status).toBe(409)
      expect(await statuses(scene, ids)).toEqual(['delivered', 'held', 'held'])

      await scene.change(connectionId, { settings: { on_resume: 'forward' } })
      await untilAll(scene, ids, 'delivered')
      expect(texts()).toEqual(['document 0', 'document 1', 'document 2', 'later'])
    })
  })

  test('stops its release if it is deactivated again: the remaining deliveries stay held until the next activation', async () => {
    const deactivated = Promise.withResolvers<void>()
    let batches = 0
    const waitAfterFirstBatch = ({ processBatch }: BatchActivities): BatchActivities => ({
      processBatch: async (subject) => {
        batches += 1
        if (batches > 1) await deactivated.promise
        return processBatch(subject)
      },
    })
    await runScenario(async (scene) => {
      const connectionId = await scene.connect([await scene.destination('archive', target.origin)], { is_active: false })
      const ids = await receiveAll(scene, 7)
      await scene.change(connectionId, { is_active: true })
      await until('the release has processed its first batch', () => batches > 1)
      // A released delivery that is attempted only after the deactivation is held again.
      const released = async () => (await statuses(scene, ids)).filter((status) => status !== 'held')
      await until('its documents are delivered', released, (found) => found.every((status) => status === 'delivered'))
      await scene.change(connectionId, { is_active: false })
      deactivated.resolve()

      const summary = await resultOf(scene, 'release', connectionId)
      const [, count] = /^released (\d+) deliveries, then stopped: (?:.+)$/.exec(summary)!
      expect(Number(count)).toBeLessThan(ids.length)
      expect(target.arrivals).toHaveLength(Number(count))
      expect(await released()).toHaveLength(Number(count))

      await scene.change(connectionId, { is_active: true })
      await untilAll(scene, ids, 'delivered')
      expect(target.arrivals).toHaveLength(ids.length)
    }, waitAfterFirstBatch)
  })

  test('releases nothing if an active connection leads to the same destination', async () => {
    await runScenario(async (scene) => {
      const destinationId = await scene.destination('archive', target.origin)
      const inactive = await scene.connect([destinationId], { is_active: false })
      await scene.connect([destinationId])
      const ids = await receiveAll(scene, 2)
      await untilAll(scene, ids, 'delivered')
      await scene.change(inactive, { is_active: true })
      expect(await resultOf(scene, 'release', inactive)).toBe('released 0 deliveries')
      expect(texts()).toEqual(['document 0', 'document 1'])
    })
  })
})

describe('a document received with routes that were read before a change', () => {
  test('is released if its connection was activated meanwhile', async () => {
    await runScenario(async (scene, { launcher }) => {
      const connectionId = await scene.connect([await scene.destination('archive', target.origin)], { is_active: false })
      const repository = await scene.findRepository()
      await scene.change(connectionId, { is_active: true })
      expect(await resultOf(scene, 'release', connectionId)).toBe('released 0 deliveries')
      const id = await scene.commit(repository, 'late')
      expect(await statuses(scene, [id])).toEqual(['held'])

      await launcher.sendAll(await relay.release.releaseOverdue())
      await untilAll(scene, [id], 'delivered')
      expect(await relay.release.releaseOverdue()).toEqual([])
    })
  })

  test('is cancelled if its connection was deleted meanwhile', async () => {
    await runScenario(async (scene, { launcher }) => {
      const connectionId = await scene.connect([await scene.destination('archive', target.origin)], { is_active: false })
      const repository = await scene.findRepository()
      await scene.acme.call('DELETE', `/connections/${connectionId}`)
      await relay.untilOutboxEmpty()
      const id = await scene.commit(repository, 'late')
      await launcher.sendAll(await relay.release.releaseOverdue())
      await untilAll(scene, [id], 'cancelled')
      expect(await resultOf(scene, 'cancel', connectionId)).toBe('cancelled 1 deliveries')
    })
  })
})

describe('a deleted destination', () => {
  test('cancels running, retrying, failed and held deliveries, but not delivered ones', async () => {
    await runScenario(async (scene) => {
      const destinationId = await scene.destination('archive', target.origin)
      const other = await scene.destination('other', target.origin)
      // No retry comes due while the connection is inactive: it would be held.
      await scene.acme.call('PATCH', '/settings', { retry_initial_interval_seconds: 600 })
      const connectionId = await scene.connect([destinationId])
      const delivered = await scene.receive('delivered')
      const running = await scene.receive('hang')
      const backingOff = await scene.receive('busy')
      const failed = await scene.receive('refused')
      await untilAll(scene, [delivered], 'delivered')
      await untilAll(scene, [backingOff], 'retrying')
      await untilAll(scene, [failed], 'failed')
      await until('the target received the request', () => texts().includes('hang'))
      await scene.change(connectionId, { is_active: false, destination_ids: [destinationId, other] })
      const held = await scene.receive('held')
      const sent = target.arrivals.length

      expect((await scene.acme.call('DELETE', `/destinations/${destinationId}`)).status).toBe(204)
      await untilAll(scene, [running, backingOff, failed], 'cancelled')
      // The deletion also removes the connection, which held the document for the other destination.
      await untilAll(scene, [held], 'cancelled,cancelled')
      expect(await scene.statusOf(delivered)).toEqual({ document: 'delivered', deliveries: ['delivered'] })

      for (const id of [running, backingOff, failed]) {
        await until(
          'the delivery workflow is cancelled',
          async () => (await describeDelivery(id, destinationId)).status.name === 'CANCELLED',
        )
        // Nothing was delivered, so the document workflow fails, as does the document in the API.
        await until('the document workflow is failed', async () => (await describeDocument(id)).status.name === 'FAILED')
        expect(await scene.statusOf(id)).toEqual({ document: 'failed', deliveries: ['cancelled'] })
      }
      expect((await describeDelivery(delivered, destinationId)).status.name).toBe('COMPLETED')
      expect(abortedRequests).toEqual(['hang'])
      expect(target.arrivals).toHaveLength(sent)
      expect(await relay.db('delivery_attempts').where({ document_id: running })).toMatchObject([{ number: 1, outcome: 'interrupted' }])
    })
  })

  test('does not affect deliveries to other destinations', async () => {
    await runScenario(async (scene) => {
      const [good, slow] = [await scene.destination('good', target.origin), await scene.destination('slow', target.origin)]
      await scene.connect([good, slow])
      target.answerWith(({ headers }, response) => {
        if (String(headers['webhook-id']).includes(slow)) return
        response.end()
      })
      const id = await scene.receive('both')
      await until('one delivery is delivered', async () => (await scene.statusOf(id)).deliveries.includes('delivered'))
      await until('the target received both requests', () => target.arrivals.length === 2)
      await scene.acme.call('DELETE', `/destinations/${slow}`)
      await until('the document workflow is completed', async () => (await describeDocument(id)).status.name === 'COMPLETED')
      expect(await scene.statusOf(id)).toMatchObject({ document: 'delivered' })
    })
  })

  test('cancels one batch within the request and the remaining deliveries in a workflow', async () => {
    await runScenario(async (scene) => {
      const destinationId = await scene.destination('archive', target.origin)
      const connectionId = await scene.connect([destinationId], { is_active: false })
      const ids = await receiveAll(scene, 7)
      await scene.acme.call('DELETE', `/destinations/${destinationId}`)
      expect((await statuses(scene, ids)).filter((status) => status === 'cancelled').length).toBeGreaterThanOrEqual(2)
      await untilAll(scene, ids, 'cancelled')
      expect(await resultOf(scene, 'cancel', destinationId)).toMatch(/^cancelled [0-5] deliveries$/)
      expect((await scene.acme.call('GET', `/connections/${connectionId}`)).status).toBe(404)
    })
  })
})

describe('a connection that is switched off', () => {
  test('holds what is being retried from the next attempt on, and releases it with a new budget', async () => {
    await runScenario(async (scene) => {
      await scene.acme.call('PATCH', '/settings', { retry_initial_interval_seconds: 1 })
      const connectionId = await scene.connect([await scene.destination('archive', target.origin)])
      const id = await scene.receive('busy')
      await untilAll(scene, [id], 'retrying')
      await scene.change(connectionId, { is_active: false })
      await untilAll(scene, [id], 'held')
      const attempts = target.arrivals.length
      const handle = await handleOf(id)
      await until('no workflow works on the held delivery', async () => (await handle.describe()).status.name === 'COMPLETED')
      expect(target.arrivals).toHaveLength(attempts)
      target.answerWith((_arrival, response) => response.end())
      await scene.change(connectionId, { is_active: true })
      await untilAll(scene, [id], 'delivered')
      expect(target.arrivals).toHaveLength(attempts + 1)
    })
  })
})

describe('a deleted connection', () => {
  test('cancels its held deliveries and completes its forwarded ones', async () => {
    await runScenario(async (scene) => {
      const connectionId = await scene.connect([await scene.destination('archive', target.origin)])
      let answer: (() => void) | undefined
      target.answerWith((_arrival, response) => {
        answer = () => void response.end()
      })
      const forwarded = await scene.receive('forwarded')
      await until('the target received the request', () => answer !== undefined)
      await scene.change(connectionId, { is_active: false })
      const ids = await receiveAll(scene, 5)
      expect((await scene.acme.call('DELETE', `/connections/${connectionId}`)).status).toBe(200)
      answer!()
      await untilAll(scene, ids, 'cancelled')
      await untilAll(scene, [forwarded], 'delivered')
      expect(texts()).toEqual(['forwarded'])
    })
  })
})

describe('a deleted repository', () => {
  test('keeps an inactive connection, which still releases what it holds', async () => {
    await runScenario(async (scene) => {
      const connectionId = await scene.connect([await scene.destination('archive', target.origin)], { is_active: false })
      const ids = await receiveAll(scene, 3)
      await scene.acme.call('DELETE', `/repositories/${scene.repositoryId}`)
      expect(await statuses(scene, ids)).toEqual(['held', 'held', 'held'])
      await scene.change(connectionId, { is_active: true })
      await untilAll(scene, ids, 'delivered')
    })
  })

  test('deletes an active connection, and cancels what it still held', async () => {
    await runScenario(async (scene) => {
      const destinationId = await scene.destination('archive', target.origin)
      const skipping = await scene.connect([destinationId], { is_active: false, settings: { on_resume: 'skip' } })
      const ids = await receiveAll(scene, 5)
      await scene.change(skipping, { is_active: true })
      const deleted = await scene.acme.call('DELETE', `/repositories/${scene.repositoryId}`)
      expect(deleted.headers.get('x-relay-removed-connections')).toBe(skipping)
      await untilAll(scene, ids, 'cancelled')
      expect(texts()).toEqual([])
    })
  })
})
