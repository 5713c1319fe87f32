import { deliveryWorkflowId } from '../../workflows/ids.ts'
import { wakeSignal } from '../../workflows/messages.ts'
import { deliveryOptions } from '../../workflows/options.ts'
import { share } from '../support/share.ts'
import { createTimeSkippingTemporal, withWorker } from '../support/temporal.ts'
import { until } from '../support/until.ts'
import { documentTo, hour, scriptedActivities } from './scripted-activities.ts'

const env = share(await createTimeSkippingTemporal())

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
      await handle.signal(wakeSignal)
      await until('the delivery has asked again', () => attempts.length === 2)
      await handle.result()
    })
    expect(attempts.map(({ input }) => input.isCalled)).toEqual([undefined, true, undefined])
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
