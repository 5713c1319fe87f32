import { until } from '../support/relay.ts'
import { share } from '../support/share.ts'
import { answer503, minute, retrySettings, startScene } from './scene.ts'

// Rules of the specification (1, 3, 8.4). Everything is real except the clock of the Temporal server, which skips hours.

// Added to upper limits of waits, because time passes as usual while an attempt runs, and a busy machine takes long for one.
const attemptMaxMinutes = 1

const scene = share(await startScene())
beforeEach(scene.reset)

describe('a document that fans out to several destinations', () => {
  test('is delivered to each independently: a failure at one does not stop delivery to the others', async () => {
    scene.answer({ b: answer503 })
    await scene.relay.run(async ({ createRoutes }) => {
      const { receive } = await createRoutes(scene.destinations('a', 'b', 'c'), retrySettings())
      const document = await receive()
      await scene.untilStatus(document, 'retrying')
      await until(
        scene.env,
        'the other destinations received the document',
        async () => scene.requestCount('a') + scene.requestCount('c') === 2,
        1_000,
      )
      expect(await document.deliveries()).toMatchObject({
        a: { status: 'delivered' },
        b: { status: 'retrying' },
        c: { status: 'delivered' },
      })
      expect(await document.workflowStatus('b')).toBe('retrying')
      await scene.untilStatus(document, 'failed')
      expect(await document.deliveries()).toMatchObject({
        a: { status: 'delivered', attempts: 1 },
        b: { status: 'failed', attempts: 4 },
        c: { status: 'delivered', attempts: 1 },
      })
    })
  })
})

describe('the retry budget', () => {
  test('ends after the first attempt and max_retries retries, with waits that double', async () => {
    scene.answer({ a: answer503 })
    await scene.relay.run(async ({ createRoutes }) => {
      const { receive } = await createRoutes(scene.destinations('a'), retrySettings({ max_retries: 3 }))
      const document = await receive()
      await scene.untilStatus(document, 'failed')
      expect(scene.requestCount('a')).toBe(4)
      expect(new Set(scene.target.arrivals.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
      const starts = scene.attemptTimes('a')
      const waits = starts.slice(1).map((start, index) => (start - starts[index]!) / minute)
      for (const [index, minimum] of [10, 20, 40].entries()) {
        expect(waits[index]).toBeGreaterThanOrEqual(minimum - 0.1)
        expect(waits[index]).toBeLessThanOrEqual(minimum * 1.1 + attemptMaxMinutes)
      }
      await until(scene.env, 'the delivery workflow is failed', async () => (await document.workflowStatus('a')) === 'failed', 1_000)
    })
  })

  test('ends after retry_ttl_seconds: no attempt starts later', async () => {
    scene.answer({ a: answer503 })
    await scene.relay.run(async ({ createRoutes }) => {
      const { receive } = await createRoutes(scene.destinations('a'), retrySettings({ max_retries: 100, retry_ttl_seconds: 3_600 }))
      const document = await receive()
      await scene.untilStatus(document, 'failed')
      // Attempts at 0, 10 and 30 minutes. The next attempt would be at 70 minutes.
      expect(scene.requestCount('a')).toBe(3)
    })
  })

  test('is not used for a permanent error: the delivery fails after one attempt', async () => {
    scene.answer({ a: () => ({ status: 404 }) })
    await scene.relay.run(async ({ createRoutes }) => {
      const { receive } = await createRoutes(scene.destinations('a'), retrySettings())
      const document = await receive()
      await scene.untilStatus(document, 'failed')
      expect(scene.requestCount('a')).toBe(1)
      expect(await document.outcomes()).toEqual(['permanent'])
    })
  })

  test.each<[string, () => string]>([
    ['seconds', () => '1800'],
    ['a date', () => new Date(Date.now() + 30 * minute).toUTCString()],
  ])('waits as long as the target requests by a Retry-After in the form of %s', async (_, retryAfter) => {
    scene.answer({ a: (nth) => (nth === 1 ? { status: 429, headers: { 'retry-after': retryAfter() } } : { status: 200 }) })
    await scene.relay.run(async ({ createRoutes }) => {
      const { receive } = await createRoutes(scene.destinations('a'), retrySettings())
      const document = await receive()
      await scene.untilStatus(document, 'delivered')
      const [first, second] = scene.attemptTimes('a')
      expect((second! - first!) / minute).toBeGreaterThanOrEqual(29.9)
      expect((second! - first!) / minute).toBeLessThanOrEqual(33 + attemptMaxMinutes)
    })
  })

  test('limits Retry-After to retry_max_interval_seconds', async () => {
    scene.answer({ a: (nth) => (nth === 1 ? { status: 503, headers: { 'retry-after': '86400' } } : { status: 200 }) })
    await scene.relay.run(async ({ createRoutes }) => {
      const { receive } = await createRoutes(scene.destinations('a'), retrySettings())
      const document = await receive()
      await scene.untilStatus(document, 'delivered')
      const [first, second] = scene.attemptTimes('a')
      expect((second! - first!) / minute).toBeLessThanOrEqual(66 + attemptMaxMinutes)
    })
  })

  test('is fixed when the document is received; a manual retry uses the current settings and continues the count of attempts', async () => {
    scene.answer({ a: answer503 })
    await scene.relay.run(async ({ createRoutes }) => {
      const { receive, call } = await createRoutes(scene.destinations('a'), retrySettings({ max_retries: 1 }))
      const document = await receive()
      await call('PATCH', '/settings', { max_retries: 4 })
      await scene.untilStatus(document, 'failed')
      expect(await document.deliveries()).toMatchObject({ a: { attempts: 2 } })
      expect((await document.retry()).status).toBe(200)
      await scene.untilStatus(document, 'failed')
      expect(await document.deliveries()).toMatchObject({ a: { attempts: 2 + 5 } })
    })
  })
})
