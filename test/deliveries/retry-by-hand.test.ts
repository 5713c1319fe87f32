import { createRetries } from '../../src/db/retries.ts'
import type { Activities } from '../../workflows/messages.ts'
import { testConfig } from '../support/factories.ts'
import { until, type RelayedDocument } from '../support/relay.ts'
import { down, hour, settings, startScene } from './scene.ts'

// The rules of the specification (3, 4.5), hours of them in moments: everything is real but the server's clock.

const scene = await startScene()
beforeEach(scene.reset)
afterAll(scene.stop)

describe('a retry by hand', () => {
  it('of one that failed of three reaches that one alone, by the workflow that waits for it', async () => {
    scene.answer({ b: (nth) => ({ status: nth === 1 ? 403 : 200 }) })
    await scene.relay.run(async ({ wire }) => {
      const { receive } = await wire(scene.at('a', 'b', 'c'), settings())
      const document = await receive()
      await scene.untilStatus(document, 'failed')
      const { json, status } = await document.retry()
      expect(status).toBe(200)
      expect(json.data.attributes.status).toBe('retrying')
      await scene.untilStatus(document, 'delivered')
      expect(await document.status()).toBe('delivered')
      expect([scene.came('a'), scene.came('b'), scene.came('c')]).toEqual([1, 2, 1])
      expect(await document.deliveries()).toMatchObject({ a: { attempts: 1 }, b: { attempts: 2 }, c: { attempts: 1 } })
    })
  })

  it('comes in time though it is sent before the workflow knows that the attempt has failed', async () => {
    scene.answer({ a: (nth) => ({ status: nth === 1 ? 403 : 200 }) })
    let document: RelayedDocument | undefined
    let answered = 0
    const retriedInTheGap = ({ attemptDelivery }: Activities): Partial<Activities> => ({
      attemptDelivery: async (input) => {
        const outcome = await attemptDelivery(input)
        // recorded, and not told yet
        if (outcome.status === 'failed') {
          answered = (await document!.retry()).status
          await scene.relay.launched()
        }
        return outcome
      },
    })
    await scene.relay.run(async ({ wire }) => {
      document = await (await wire(scene.at('a'), settings())).receive()
      await scene.untilStatus(document, 'delivered')
      expect(answered).toBe(200)
      expect(await document.status()).toBe('delivered')
      expect(scene.came('a')).toBe(2)
    }, retriedInTheGap)
  })

  it('starts the workflow anew where it has closed, under the same id, and only for what had failed', async () => {
    scene.answer({ b: (nth) => ({ status: nth === 1 ? 403 : 200 }) })
    await scene.relay.run(async ({ wire }) => {
      const { receive } = await wire(scene.at('a', 'b'), settings())
      const document = await receive()
      // until the window closes
      await scene.untilClosed(document)
      expect(await document.status()).toBe('failed')
      const { runId } = await document.handle('b').describe()
      expect((await document.retry()).status).toBe(200)
      await until(scene.env, 'a new run', async () => (await document.handle('b').describe()).runId !== runId, 1_000)
      await scene.untilStatus(document, 'delivered')
      expect(await document.status()).toBe('delivered')
      expect([scene.came('a'), scene.came('b')]).toEqual([1, 2])
      expect((await document.retry()).status).toBe(409)
    })
  })

  it('sent twice at once counts once', async () => {
    scene.answer({ a: () => ({ status: 403 }) })
    await scene.relay.run(async ({ wire, send, launcher }) => {
      const { receive, workspaceId } = await wire(scene.at('a'), settings())
      const document = await receive()
      await scene.untilStatus(document, 'failed')
      const before = scene.came('a')
      const answered = await Promise.all([document.retry(), document.retry(), document.retry()])
      expect(answered.map(({ status }) => status).filter((status) => status === 200)).toHaveLength(1)
      await scene.untilStatus(document, 'failed')
      expect(scene.came('a')).toBe(before + 1)

      // and so does its message, which the sweep sends a second time
      const request = { workspaceId, documentId: document.id, actor: { type: 'system' as const, userId: null } }
      const retried = await createRetries(scene.relay.db, testConfig()).retryDocument(request)
      if (retried === 'unknown') throw new Error('unknown')
      for (const message of retried.messages) await send(message)
      expect(await launcher.sweep()).toBe(1)
      await until(scene.env, 'the round is over', async () => scene.came('a') === before + 2, 1_000)
      await scene.env.sleep(hour)
      expect(scene.came('a')).toBe(before + 2)
    })
  })

  it.each<[string, unknown[]]>([
    ['nothing', []],
    ['an empty object', [{}]],
    ['something else altogether', ['again', 5]],
    ['a policy that is none', [{ policy: { maxRetries: 'many' } }]],
  ])('may be a signal of an operator with %s in it: the pinned budget counts, and the API follows', async (_, sent) => {
    let go = () => {}
    scene.answer({ a: () => ({ status: 503 }) })
    await scene.relay.run(async ({ wire }) => {
      const { receive } = await wire(scene.at('a'), settings({ max_retries: 1 }))
      const document = await receive()
      await scene.untilStatus(document, 'failed')
      await until(scene.env, 'the workflow waits', async () => (await document.told('a')) === 'failed', 1_000)
      // hangs until the test has looked
      scene.target.answerWith((_arrival, response) => {
        go = () => response.writeHead(503).end()
      })
      await document.handle('a').signal('retry', ...sent)
      await until(scene.env, 'the next attempt', async () => scene.came('a') === 3, 10)
      expect(await document.status()).toBe('retrying')
      expect(await document.told('a')).toBe('retrying')
      scene.target.answerWith((_arrival, response) => response.writeHead(503).end())
      go()
      await scene.untilStatus(document, 'failed')
      expect(scene.came('a')).toBe(4)
    })
  })
})

describe('a delivery whose workflow an operator ends', () => {
  it('by cancelling it, is cancelled in the API, and the others go on', async () => {
    scene.answer({ b: down })
    await scene.relay.run(async ({ wire }) => {
      const { receive } = await wire(scene.at('a', 'b'), settings())
      const document = await receive()
      await scene.untilStatus(document, 'retrying')
      await document.handle('b').cancel()
      await scene.untilStatus(document, 'delivered')
      expect(await document.deliveries()).toMatchObject({ a: { status: 'delivered' }, b: { status: 'cancelled' } })
      expect(await document.status()).toBe('delivered')
    })
  })

  it('by terminating the run that a retry has started, can be retried all the same', async () => {
    scene.answer({ a: down })
    await scene.relay.run(async ({ wire }) => {
      const { receive } = await wire(scene.at('a'), settings({ max_retries: 0 }))
      const document = await receive()
      await scene.untilClosed(document)
      await document.call('PATCH', '/settings', { max_retries: 5 })
      await document.retry()
      await until(scene.env, 'the second attempt', async () => (await document.deliveries())['a']!.attempts === 2, 10)
      expect(await document.retry('a')).toMatchObject({ status: 409 })
      await document.handle('a').terminate()
      expect(await document.status()).toBe('retrying')
      scene.answer({ a: () => ({ status: 200 }) })
      expect(await document.retry('a')).toMatchObject({ status: 200 })
      await scene.untilStatus(document, 'delivered')
      expect(await document.status()).toBe('delivered')
    })
  })
})
