import { until } from '../support/relay.ts'
import { down, hour, minute, settings, startScene } from './scene.ts'

// The rules of the specification (1, 3, 8.4), hours of them in moments: everything is real but the server's clock.

const scene = await startScene()
beforeEach(scene.reset)
afterAll(scene.stop)

describe('a document that fans out to several destinations', () => {
  it('reaches each independently: a failure at one does not stop delivery to the others', async () => {
    scene.answer({ b: down })
    await scene.relay.run(async ({ wire }) => {
      const { receive } = await wire(scene.at('a', 'b', 'c'), settings())
      const document = await receive()
      await scene.untilStatus(document, 'retrying')
      await until(scene.env, 'the others are delivered', async () => scene.came('a') + scene.came('c') === 2, 1_000)
      expect(await document.deliveries()).toMatchObject({
        a: { status: 'delivered' },
        b: { status: 'retrying' },
        c: { status: 'delivered' },
      })
      expect(await document.told('b')).toBe('retrying')
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
  it('ends by count: the first try and max_retries more, each after twice the time', async () => {
    scene.answer({ a: down })
    await scene.relay.run(async ({ wire }) => {
      const { receive } = await wire(scene.at('a'), settings({ max_retries: 3 }))
      const document = await receive()
      await scene.untilStatus(document, 'failed')
      expect(scene.came('a')).toBe(4)
      const starts = await scene.startsOf(document, 'a')
      const waits = starts.slice(1).map((start, index) => (start - starts[index]!) / minute)
      for (const [index, least] of [10, 20, 40].entries()) {
        expect(waits[index]).toBeGreaterThanOrEqual(least - 0.1)
        expect(waits[index]).toBeLessThanOrEqual(least * 1.1 + 0.2)
      }
      await until(scene.env, 'the workflow has heard of it', async () => (await document.told('a')) === 'failed', 1_000)
    })
  })

  it('ends by time: no try begins after retry_ttl_seconds', async () => {
    scene.answer({ a: down })
    await scene.relay.run(async ({ wire }) => {
      const { receive } = await wire(scene.at('a'), settings({ max_retries: 100, retry_ttl_seconds: 3_600 }))
      const document = await receive()
      await scene.untilStatus(document, 'failed')
      // at 0, 10 and 30 minutes; the next one would be at 70
      expect(scene.came('a')).toBe(3)
    })
  })

  it('is spent at once on what no retry can mend', async () => {
    scene.answer({ a: () => ({ status: 404 }) })
    await scene.relay.run(async ({ wire }) => {
      const { receive } = await wire(scene.at('a'), settings())
      const document = await receive()
      await scene.untilStatus(document, 'failed')
      expect(scene.came('a')).toBe(1)
      expect(await document.outcomes()).toEqual(['permanent'])
    })
  })

  it.each<[string, () => string]>([
    ['seconds', () => '1800'],
    ['a date', () => new Date(Date.now() + 30 * minute).toUTCString()],
  ])('waits as long as the target asks for by Retry-After as %s', async (_, retryAfter) => {
    scene.answer({ a: (nth) => (nth === 1 ? { status: 429, headers: { 'retry-after': retryAfter() } } : { status: 200 }) })
    await scene.relay.run(async ({ wire }) => {
      const { receive } = await wire(scene.at('a'), settings())
      const document = await receive()
      await scene.untilStatus(document, 'delivered')
      const [first, second] = await scene.startsOf(document, 'a')
      expect((second! - first!) / minute).toBeGreaterThanOrEqual(29.9)
      expect((second! - first!) / minute).toBeLessThanOrEqual(33.2)
    })
  })

  it('does not let a target ask for more than the longest interval', async () => {
    scene.answer({ a: (nth) => (nth === 1 ? { status: 503, headers: { 'retry-after': '86400' } } : { status: 200 }) })
    await scene.relay.run(async ({ wire }) => {
      const { receive } = await wire(scene.at('a'), settings())
      const document = await receive()
      await scene.untilStatus(document, 'delivered')
      const [first, second] = await scene.startsOf(document, 'a')
      expect((second! - first!) / hour).toBeLessThanOrEqual(1.11)
    })
  })

  it('is the one of the receipt; a retry by hand has the one of its own moment, and attempts count on', async () => {
    scene.answer({ a: down })
    await scene.relay.run(async ({ wire }) => {
      const { receive, call } = await wire(scene.at('a'), settings({ max_retries: 1 }))
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
