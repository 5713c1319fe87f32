import { randomUUID } from 'node:crypto'
import { activityInfo } from '@temporalio/activity'
import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { deliveryWorkflowId } from '../../workflows/ids.ts'
import { checkAgainSignal, wakeSignal, type WakeActivities } from '../../workflows/messages.ts'
import { deliveryOptions, wakeOptions } from '../../workflows/options.ts'
import { createTimeSkippingTemporal, withWorker } from '../support/temporal.ts'
import { until } from '../support/until.ts'
import { documentTo, hour, scriptedActivities } from './scripted-activities.ts'

let env: TestWorkflowEnvironment

beforeAll(async () => {
  env = await createTimeSkippingTemporal()
}, 120_000)
afterAll(() => env.teardown())

const unregistered = { registered: false }

const deliveryInput = () => {
  const { destinations, ...terms } = documentTo('archive')
  return { ...terms, destination: destinations[0]! }
}

describe('a delivery that waits', () => {
  test('asks again when its time has come, or at once when it is woken', async () => {
    // The time is an hour.
    const { activities, attempts } = scriptedActivities((_, attempt) => (attempt < 3 ? 'busy' : 'delivered'))
    await withWorker(env, activities, async (taskQueue) => {
      const input = deliveryInput()
      const handle = await env.client.workflow.start('delivery', { ...deliveryOptions(input, unregistered), taskQueue })
      await until('the delivery has asked', () => attempts.length === 1)
      // This server skips time only while a test awaits a result, so the time has not come.
      await handle.signal(wakeSignal, 1_000_000)
      await until('the delivery has asked again', () => attempts.length === 2)
      await handle.result()
    })
    expect(attempts.map(({ input }) => [input.waits, input.wake])).toEqual([
      [0, undefined],
      [1, 1_000_000],
      [2, undefined],
    ])
    const [first, woken, last] = attempts.map(({ atMs }) => atMs) as [number, number, number]
    expect(woken - first).toBeLessThan(hour / 2)
    expect(last - woken).toBeGreaterThanOrEqual(hour)
  }, 180_000)

  test('is not affected by a wake during its back-off', async () => {
    const { activities, attempts } = scriptedActivities((_, attempt) => (attempt === 1 ? 'down' : 'delivered'))
    await withWorker(env, activities, async (taskQueue) => {
      const input = deliveryInput()
      await env.client.workflow.start('delivery', { ...deliveryOptions(input, unregistered), taskQueue })
      const handle = env.client.workflow.getHandle(deliveryWorkflowId(input, 'archive'))
      await until('the delivery is retrying', async () => (await handle.query<{ status: string }>('status')).status === 'retrying')
      await handle.signal(wakeSignal)
      await handle.result()
    })
    expect(attempts).toHaveLength(2)
    expect(attempts[1]!.atMs - attempts[0]!.atMs).toBeGreaterThanOrEqual(hour)
  }, 180_000)
})

/**
 * Runs a wake whose pages have these sizes.
 * @param lastFrom number of the first page after which no delivery is left
 */
const runWake = async (counts: number[], { signalIn = 0, lastFrom = counts.length } = {}) => {
  const pages: { atMs: number; startedAt: number; after: string | undefined }[] = []
  const options = wakeOptions({ workspace: 'acme/invoices', destination: { id: randomUUID(), name: 'archive' } })
  const signal = () => env.client.workflow.getHandle(options.workflowId).signal(checkAgainSignal)
  const activities: WakeActivities = {
    wakeNextPage: async ({ startedAt, position }) => {
      pages.push({ atMs: activityInfo().scheduledTimestampMs, startedAt, after: position?.after })
      const page = pages.length
      if (page === signalIn) await signal()
      return { position: { after: String(page), last: 'Z' }, count: counts[page - 1]!, isLast: page >= lastFrom }
    },
  }
  const summary = await withWorker(env, activities, (taskQueue) => env.client.workflow.execute('wakeDeliveries', { ...options, taskQueue }))
  return { pages, summary }
}

describe('a wake', () => {
  test('goes on page by page, more slowly while the destination takes little', async () => {
    const { pages, summary } = await runWake([200, 10, 0, 0, 0, 0, 0, 150, 20])
    expect(summary).toBe('woke 380 deliveries')
    expect(pages.map(({ after }) => after)).toEqual([undefined, '1', '2', '3', '4', '5', '6', '7', '8'])
    expect(new Set(pages.map(({ startedAt }) => startedAt)).size).toBe(1)
    const pauses = pages.slice(1).map(({ atMs }, index) => (atMs - pages[index]!.atMs) / 1_000)
    for (const [index, seconds] of [1, 2, 4, 8, 16, 30, 30, 1].entries()) expect(pauses[index]).toBeGreaterThanOrEqual(seconds)
  }, 180_000)

  test('starts over if the circuit has closed once more', async () => {
    const { pages } = await runWake([200, 50, 200, 50], { signalIn: 2 })
    expect(pages.map(({ after }) => after)).toEqual([undefined, '1', undefined, '3'])
    expect(pages[2]!.startedAt).toBeGreaterThan(pages[0]!.startedAt)
    expect(pages[3]!.startedAt).toBe(pages[2]!.startedAt)
  }, 180_000)

  test('that was asked for during its last page starts over', async () => {
    const { pages } = await runWake([3, 5], { signalIn: 1, lastFrom: 1 })
    expect(pages.map(({ after }) => after)).toEqual([undefined, undefined])
  }, 180_000)
})
