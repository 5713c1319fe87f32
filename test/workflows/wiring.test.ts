import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { deliveryWorkflowId, type BatchActivities } from '../../workflows/messages.ts'
import { startHttpTarget, type HttpTarget } from '../support/http-target.ts'
import { startRelay, type Running, type StartedRelay } from '../support/relay.ts'
import { createTimeSkippingTemporal, startTemporalDevServer } from '../support/temporal.ts'
import { until } from '../support/until.ts'
import { createScene, type Scene } from './scene.ts'

// Through the API, to a real target; the same on both servers.

describe.each([
  ['the time-skipping server', createTimeSkippingTemporal],
  ['the dev server', startTemporalDevServer],
])('on %s', (_, startTemporal) => {
  let env: TestWorkflowEnvironment
  let relay: StartedRelay
  let target: HttpTarget
  /** Bodies of requests that were broken off before they were answered. */
  let brokenOff: string[]

  beforeAll(async () => {
    env = await startTemporal()
    relay = await startRelay(env, { DELIVERY_BATCH_SIZE: '2', DELIVERY_HEARTBEAT_TIMEOUT_MS: '1000' })
    target = await startHttpTarget()
  })
  afterAll(async () => {
    await target.stop()
    await relay.stop()
    await env.teardown()
  })
  beforeEach(() => {
    target.arrivals.length = 0
    brokenOff = []
    // a document's text says how the target takes it
    target.answerWith(({ body }, response) => {
      const text = body.toString()
      if (text.startsWith('hang')) {
        response.on('close', () => brokenOff.push(text))
        return
      }
      response.statusCode = text.startsWith('busy') ? 503 : text.startsWith('refused') ? 400 : 200
      response.end()
    })
  })

  const story = (tell: (scene: Scene, running: Running) => Promise<void>, wrap?: Parameters<StartedRelay['run']>[1]) =>
    relay.run(async (running) => tell(await createScene(relay, running), running), wrap)

  const receiveAll = async (scene: Scene, count: number) => {
    const ids: string[] = []
    for (let made = 0; made < count; made += 1) ids.push(await scene.receive(`document ${made}`))
    return ids
  }
  const statuses = (scene: Scene, ids: string[]) =>
    Promise.all(ids.map(async (id) => (await scene.statusOf(id)).deliveries.join())).then((all) => all.toSorted())
  const all = (scene: Scene, ids: string[], status: string) =>
    until(`all are ${status}`, async () => (await statuses(scene, ids)).every((each) => each === status))
  const texts = () => target.arrivals.map(({ body }) => body.toString()).toSorted()
  const runOf = async (workflowId: string) => env.client.workflow.getHandle(workflowId).describe()
  const resultOf = (workflowId: string) => env.client.workflow.getHandle(workflowId).result()

  describe('an inactive connection', () => {
    it('holds what arrives, and what it held goes on its way when it is activated', async () => {
      await story(async (scene) => {
        const connectionId = await scene.connect([await scene.destination('archive', target.origin)], { is_active: false })
        const ids = await receiveAll(scene, 5)
        expect(await scene.statusOf(ids[0]!)).toEqual({ document: 'pending', deliveries: ['held'] })
        expect(target.arrivals).toEqual([])

        await scene.change(connectionId, { is_active: true })
        await all(scene, ids, 'delivered')
        expect(texts()).toEqual(ids.map((_id, index) => `document ${index}`))
        expect(await resultOf(`release/${connectionId}`)).toBe('released 5')
        expect(await scene.statusOf(ids[0]!)).toEqual({ document: 'delivered', deliveries: ['delivered'] })
        expect(await relay.db('outbox').select('key')).toEqual([])
      })
    })

    it('that skips keeps on holding; an operator releases one by hand, or all by letting it forward', async () => {
      await story(async (scene) => {
        const destinationId = await scene.destination('archive', target.origin)
        const connectionId = await scene.connect([destinationId], { is_active: false, settings: { on_resume: 'skip' } })
        const ids = await receiveAll(scene, 3)
        await scene.change(connectionId, { is_active: true })
        const later = await scene.receive('later')
        await all(scene, [later], 'delivered')
        expect(await statuses(scene, ids)).toEqual(['held', 'held', 'held'])
        expect(await relay.held.settleStragglers()).toEqual([])

        const byHand = () => scene.acme.call('POST', `/documents/${ids[1]}/deliveries/${destinationId}/retry`)
        expect((await byHand()).status).toBe(200)
        await all(scene, [ids[1]!], 'delivered')
        expect((await byHand()).status).toBe(409)
        expect(await statuses(scene, ids)).toEqual(['delivered', 'held', 'held'])

        await scene.change(connectionId, { settings: { on_resume: 'forward' } })
        await all(scene, ids, 'delivered')
        expect(texts()).toEqual(['document 0', 'document 1', 'document 2', 'later'])
      })
    })

    it('that is switched off again stops in mid-release: what is left stays held until the next time', async () => {
      const switchedOff = Promise.withResolvers<void>()
      let batches = 0
      const midway = ({ workOffBatch }: BatchActivities): BatchActivities => ({
        workOffBatch: async (subject) => {
          batches += 1
          if (batches > 1) await switchedOff.promise
          return workOffBatch(subject)
        },
      })
      await story(async (scene) => {
        const connectionId = await scene.connect([await scene.destination('archive', target.origin)], { is_active: false })
        const ids = await receiveAll(scene, 7)
        await scene.change(connectionId, { is_active: true })
        await until('the release has begun', () => batches > 1)
        await scene.change(connectionId, { is_active: false })
        switchedOff.resolve()

        const told = (await resultOf(`release/${connectionId}`)) as string
        const [, released] = /^released (\d+), then stopped: the connection was switched off$/.exec(told)!
        expect(Number(released)).toBeLessThan(ids.length)
        await until('what was released is delivered', () => target.arrivals.length === Number(released))
        const left = (await statuses(scene, ids)).filter((status) => status === 'held')
        expect(left).toHaveLength(ids.length - Number(released))

        await scene.change(connectionId, { is_active: true })
        await all(scene, ids, 'delivered')
        expect(target.arrivals).toHaveLength(ids.length)
      }, midway)
    })

    it('adds nothing where an active one leads to the same destination', async () => {
      await story(async (scene) => {
        const destinationId = await scene.destination('archive', target.origin)
        const inactive = await scene.connect([destinationId], { is_active: false })
        await scene.connect([destinationId])
        const ids = await receiveAll(scene, 2)
        await all(scene, ids, 'delivered')
        await scene.change(inactive, { is_active: true })
        expect(await resultOf(`release/${inactive}`)).toBe('released 0')
        expect(texts()).toEqual(['document 0', 'document 1'])
      })
    })
  })

  describe('a receipt that read the wiring before it changed', () => {
    it('is released though its connection was activated meanwhile', async () => {
      await story(async (scene, { launcher }) => {
        const connectionId = await scene.connect([await scene.destination('archive', target.origin)], { is_active: false })
        const source = await scene.findSource()
        await scene.change(connectionId, { is_active: true })
        expect(await resultOf(`release/${connectionId}`)).toBe('released 0')
        const id = await scene.commit(source, 'late')
        expect(await statuses(scene, [id])).toEqual(['held'])

        await launcher.sendAll(await relay.held.settleStragglers())
        await all(scene, [id], 'delivered')
        expect(await relay.held.settleStragglers()).toEqual([])
      })
    })

    it('is cancelled where its connection was deleted meanwhile', async () => {
      await story(async (scene, { launcher }) => {
        const connectionId = await scene.connect([await scene.destination('archive', target.origin)], { is_active: false })
        const source = await scene.findSource()
        await scene.acme.call('DELETE', `/connections/${connectionId}`)
        const id = await scene.commit(source, 'late')
        await launcher.sendAll(await relay.held.settleStragglers())
        await all(scene, [id], 'cancelled')
        expect(await resultOf(`cancel/${connectionId}`)).toBe('cancelled 1')
      })
    })
  })

  describe('a deleted destination', () => {
    it('cancels an attempt under way, a back-off, a wait for a retry and what is held; what has arrived stays', async () => {
      await story(async (scene) => {
        const destinationId = await scene.destination('archive', target.origin)
        const other = await scene.destination('other', target.origin)
        const connectionId = await scene.connect([destinationId])
        const arrived = await scene.receive('arrived')
        const running = await scene.receive('hang')
        const backingOff = await scene.receive('busy')
        const failed = await scene.receive('refused')
        await all(scene, [arrived], 'delivered')
        await all(scene, [backingOff], 'retrying')
        await all(scene, [failed], 'failed')
        await until('the attempt is under way', () => texts().includes('hang'))
        await scene.change(connectionId, { is_active: false, destination_ids: [destinationId, other] })
        const held = await scene.receive('held')
        const sent = target.arrivals.length

        expect((await scene.acme.call('DELETE', `/destinations/${destinationId}`)).status).toBe(204)
        await all(scene, [running, backingOff, failed], 'cancelled')
        // the connection that held it for the other destination, too, has gone with this one
        await all(scene, [held], 'cancelled,cancelled')
        expect(await scene.statusOf(arrived)).toEqual({ document: 'delivered', deliveries: ['delivered'] })

        for (const id of [running, backingOff, failed]) {
          await until(
            'its workflow is cancelled',
            async () => (await runOf(deliveryWorkflowId(id, destinationId))).status.name === 'CANCELLED',
          )
          // what the document's own workflow tells is what the API tells: nothing was delivered
          await until('its document is closed', async () => (await runOf(`document/${id}`)).status.name === 'FAILED')
          expect(await scene.statusOf(id)).toEqual({ document: 'failed', deliveries: ['cancelled'] })
        }
        expect((await runOf(deliveryWorkflowId(arrived, destinationId))).status.name).toBe('COMPLETED')
        expect(brokenOff).toEqual(['hang'])
        expect(target.arrivals).toHaveLength(sent)
        expect(await relay.db('delivery_attempts').where({ document_id: running })).toEqual([])
      })
    })

    it('leaves the deliveries to other destinations alone', async () => {
      await story(async (scene) => {
        const [good, slow] = [await scene.destination('good', target.origin), await scene.destination('slow', target.origin)]
        await scene.connect([good, slow])
        target.answerWith(({ headers }, response) => {
          if (String(headers['webhook-id']).endsWith(slow)) return
          response.end()
        })
        const id = await scene.receive('both')
        await until('one has it', async () => (await scene.statusOf(id)).deliveries.includes('delivered'))
        await until('the other hangs', () => target.arrivals.length === 2)
        await scene.acme.call('DELETE', `/destinations/${slow}`)
        await until('the document is settled', async () => (await runOf(`document/${id}`)).status.name === 'COMPLETED')
        expect(await scene.statusOf(id)).toMatchObject({ document: 'delivered' })
      })
    })

    it('cancels a batch with the request and the rest by a workflow', async () => {
      await story(async (scene) => {
        const destinationId = await scene.destination('archive', target.origin)
        const connectionId = await scene.connect([destinationId], { is_active: false })
        const ids = await receiveAll(scene, 7)
        await scene.acme.call('DELETE', `/destinations/${destinationId}`)
        expect((await statuses(scene, ids)).filter((status) => status === 'cancelled').length).toBeGreaterThanOrEqual(2)
        await all(scene, ids, 'cancelled')
        expect(await resultOf(`cancel/${destinationId}`)).toMatch(/^cancelled [0-5]$/)
        expect((await scene.acme.call('GET', `/connections/${connectionId}`)).status).toBe(404)
      })
    })
  })

  describe('a deleted connection', () => {
    it('cancels what it held and lets go on what it has forwarded', async () => {
      await story(async (scene) => {
        const connectionId = await scene.connect([await scene.destination('archive', target.origin)])
        let release: (() => void) | undefined
        target.answerWith((_arrival, response) => {
          release = () => void response.end()
        })
        const forwarded = await scene.receive('forwarded')
        await until('the attempt is under way', () => release !== undefined)
        await scene.change(connectionId, { is_active: false })
        const ids = await receiveAll(scene, 5)
        expect((await scene.acme.call('DELETE', `/connections/${connectionId}`)).status).toBe(200)
        release!()
        await all(scene, ids, 'cancelled')
        await all(scene, [forwarded], 'delivered')
        expect(texts()).toEqual(['forwarded'])
      })
    })
  })

  describe('a deleted repository', () => {
    it('stops receipts only: what was received before is still released', async () => {
      await story(async (scene) => {
        const destinationId = await scene.destination('archive', target.origin)
        const skipping = await scene.connect([destinationId], { is_active: false, settings: { on_resume: 'skip' } })
        const ids = await receiveAll(scene, 3)
        await scene.change(skipping, { is_active: true })
        await scene.acme.call('DELETE', `/repositories/${scene.repositoryId}`)
        expect(await statuses(scene, ids)).toEqual(['held', 'held', 'held'])
        await scene.change(skipping, { settings: {} })
        await all(scene, ids, 'delivered')
      })
    })
  })
})
