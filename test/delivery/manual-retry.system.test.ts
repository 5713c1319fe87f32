import { createRetry } from '../../src/delivery/retry.ts'
import type { DeliveryActivities } from '../../workflows/messages.ts'
import { testConfig } from '../support/factories.ts'
import { until, type RelayedDocument } from '../support/relay.ts'
import { share } from '../support/share.ts'
import { answer503, hour, retrySettings, startScene } from './scene.ts'

// Rules of the specification (3, 4.5). Everything is real except the clock of the Temporal server, which skips hours.

const scene = share(await startScene())
beforeEach(scene.reset)

describe('a manual retry', () => {
  test('reaches only the one of three deliveries that failed, through the workflow that waits for it', async () => {
    scene.answer({ b: (nth) => ({ status: nth === 1 ? 403 : 200 }) })
    await scene.relay.run(async ({ createRoutes }) => {
      const { receive } = await createRoutes(scene.destinations('a', 'b', 'c'), retrySettings())
      const document = await receive()
      await scene.untilStatus(document, 'failed')
      const { json, status } = await document.retry()
      expect(status).toBe(200)
      expect(json.data.attributes.status).toBe('retrying')
      await scene.untilStatus(document, 'delivered')
      expect(await document.status()).toBe('delivered')
      expect([scene.requestCount('a'), scene.requestCount('b'), scene.requestCount('c')]).toEqual([1, 2, 1])
      expect(await document.deliveries()).toMatchObject({ a: { attempts: 1 }, b: { attempts: 2 }, c: { attempts: 1 } })
    })
  })

  test('is not lost if it is sent after the failure is recorded and before the workflow has received the outcome', async () => {
    scene.answer({ a: (nth) => ({ status: nth === 1 ? 403 : 200 }) })
    let document: RelayedDocument | undefined
    let retryStatus = 0
    const retryBeforeOutcome = ({ attemptDelivery }: DeliveryActivities): Partial<DeliveryActivities> => ({
      attemptDelivery: async (input) => {
        try {
          return await attemptDelivery(input)
        } catch (thrown) {
          // The failure is recorded, and the workflow has not received the outcome yet.
          retryStatus = (await document!.retry()).status
          await scene.relay.untilOutboxEmpty()
          throw thrown
        }
      },
    })
    await scene.relay.run(async ({ createRoutes }) => {
      document = await (await createRoutes(scene.destinations('a'), retrySettings())).receive()
      await scene.untilStatus(document, 'delivered')
      expect(retryStatus).toBe(200)
      expect(await document.status()).toBe('delivered')
      expect(scene.requestCount('a')).toBe(2)
    }, retryBeforeOutcome)
  })

  test('starts the workflow of a failed delivery again under the same id if it has closed', async () => {
    scene.answer({ b: (nth) => ({ status: nth === 1 ? 403 : 200 }) })
    await scene.relay.run(async ({ createRoutes }) => {
      const { receive } = await createRoutes(scene.destinations('a', 'b'), retrySettings())
      const document = await receive()
      await scene.untilClosed(document)
      expect(await document.status()).toBe('failed')
      const { runId } = await document.handle('b').describe()
      expect((await document.retry()).status).toBe(200)
      await until(
        scene.env,
        'the delivery workflow has a new run',
        async () => (await document.handle('b').describe()).runId !== runId,
        1_000,
      )
      await scene.untilStatus(document, 'delivered')
      expect(await document.status()).toBe('delivered')
      expect([scene.requestCount('a'), scene.requestCount('b')]).toEqual([1, 2])
      expect((await document.retry()).status).toBe(409)
    })
  })

  test('delivers once what has failed behind an open circuit, whose workflows have closed, for one document and for all', async () => {
    const { DELIVERY_CIRCUIT_FAILURES: toOpen } = scene.relay.config
    scene.answer({ a: answer503 })
    await scene.relay.run(async ({ createRoutes }) => {
      const { receive, call } = await createRoutes(scene.destinations('a'), retrySettings({ max_retries: 0 }))
      const documents: RelayedDocument[] = []
      const fail = async () => {
        const document = await receive(`document ${documents.length}`)
        documents.push(document)
        await scene.untilStatus(document, 'failed')
        return document
      }
      const stateOf = async (document: RelayedDocument) =>
        Promise.all([document.handle(), document.handle('a')].map(async (handle) => (await handle.describe()).status.name))
      for (let failure = 1; failure < toOpen; failure += 1) await fail()
      expect(await stateOf(documents[0]!)).toEqual(['RUNNING', 'RUNNING'])
      // Its failure opens the circuit, and those of the others are trials.
      const closed = [await fail()]
      for (const _ of [1, 2]) {
        await scene.relay
          .db('destination_gates')
          .where({ circuit: 'open' })
          .update({ trial_at: new Date(0) })
        closed.push(await fail())
      }
      for (const document of closed) {
        const isClosed = async () => (await stateOf(document)).every((name) => name === 'FAILED')
        await until(scene.env, 'the workflows have closed', isClosed, 100)
      }

      const requests = scene.requestCount('a')
      scene.answer({})
      expect((await closed[0]!.retry()).status).toBe(200)
      await scene.untilStatus(closed[0]!, 'delivered')
      expect(scene.requestCount('a')).toBe(requests + 1)
      expect((await call('POST', '/documents/retry', {})).status).toBe(202)
      for (const document of documents) await scene.untilStatus(document, 'delivered')
      expect(scene.requestCount('a')).toBe(requests + documents.length)
      expect(await stateOf(closed[1]!)).toEqual(['FAILED', 'COMPLETED'])
    })
  })

  test('starts one round even if it is requested several times at once', async () => {
    scene.answer({ a: () => ({ status: 403 }) })
    await scene.relay.run(async ({ createRoutes, send }) => {
      const { receive, workspaceId } = await createRoutes(scene.destinations('a'), retrySettings())
      const document = await receive()
      await scene.untilStatus(document, 'failed')
      const before = scene.requestCount('a')
      // The round goes on until all requests are answered: after its end, a late one would start another.
      const { promise: allAnswered, resolve: endRound } = Promise.withResolvers<void>()
      scene.target.answerWith((_, response) => void allAnswered.then(() => response.writeHead(403).end()))
      const answers = await Promise.all([document.retry(), document.retry(), document.retry()])
      endRound()
      expect(answers.map(({ status }) => status).filter((status) => status === 200)).toHaveLength(1)
      await scene.untilStatus(document, 'failed')
      expect(scene.requestCount('a')).toBe(before + 1)

      // The message of a retry also counts once, although the dispatcher sends it a second time.
      const request = { workspaceId, documentId: document.id, actor: { type: 'system' as const, userId: null } }
      const messages = await createRetry(scene.relay.db, testConfig()).retryDocument(request)
      for (const message of [...messages, ...messages]) await send(message)
      await until(scene.env, 'the round is complete', async () => scene.requestCount('a') === before + 2, 1_000)
      await scene.env.sleep(hour)
      expect(scene.requestCount('a')).toBe(before + 2)
    })
  })

  test.each<[string, unknown[]]>([
    ['nothing', []],
    ['an empty object', [{}]],
    ['unexpected arguments', ['again', 5]],
    ['an invalid policy', [{ policy: { maxRetries: 'many' } }]],
  ])('may be a signal with %s: the retry budget of the document applies, and the API shows the retry', async (_, args) => {
    let answer = () => {}
    scene.answer({ a: () => ({ status: 503 }) })
    await scene.relay.run(async ({ createRoutes }) => {
      const { receive } = await createRoutes(scene.destinations('a'), retrySettings({ max_retries: 1 }))
      const document = await receive()
      await scene.untilStatus(document, 'failed')
      await until(scene.env, 'the delivery workflow is failed', async () => (await document.workflowStatus('a')) === 'failed', 1_000)
      // The target does not answer until the test has read the status.
      scene.target.answerWith((_arrival, response) => {
        answer = () => response.writeHead(503).end()
      })
      await document.handle('a').signal('retry', ...args)
      await until(scene.env, 'the target received the next attempt', async () => scene.requestCount('a') === 3, 10)
      expect(await document.status()).toBe('retrying')
      expect(await document.workflowStatus('a')).toBe('retrying')
      scene.target.answerWith((_arrival, response) => response.writeHead(503).end())
      answer()
      await scene.untilStatus(document, 'failed')
      expect(scene.requestCount('a')).toBe(4)
    })
  })
})

describe('a delivery whose workflow an operator ends', () => {
  test('can be retried if the run that a retry had started was terminated', async () => {
    scene.answer({ a: answer503 })
    await scene.relay.run(async ({ createRoutes }) => {
      const { receive } = await createRoutes(scene.destinations('a'), retrySettings({ max_retries: 0 }))
      const document = await receive()
      await scene.untilClosed(document)
      await document.call('PATCH', '/settings', { max_retries: 5 })
      await document.retry()
      await until(scene.env, 'the delivery has 2 attempts', async () => (await document.deliveries())['a']!.attempts === 2, 10)
      expect(await document.retry('a')).toMatchObject({ status: 409 })
      // The server would never skip time again if a workflow was terminated while one of its activities runs.
      const isWaiting = async () => (await document.handle('a').describe()).raw.pendingActivities?.[0]?.attempt === 2
      await until(scene.env, 'the server waits for the next attempt', isWaiting, 10)
      await document.handle('a').terminate()
      expect(await document.status()).toBe('retrying')
      scene.answer({ a: () => ({ status: 200 }) })
      expect(await document.retry('a')).toMatchObject({ status: 200 })
      await scene.untilStatus(document, 'delivered')
      expect(await document.status()).toBe('delivered')
    })
  })
})
