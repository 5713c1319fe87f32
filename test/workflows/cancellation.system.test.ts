import { deliveryWorkflowId } from '../../workflows/ids.ts'
import { retrySignal } from '../../workflows/messages.ts'
import { documentOptions } from '../../workflows/options.ts'
import { share } from '../support/share.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { withWorker } from '../support/temporal.ts'
import { until } from '../support/until.ts'
import { documentTo, scriptedActivities } from './scripted-activities.ts'

// A real server: the one that skips time hangs if a workflow whose cancellation was requested continues as new.

const env = share(await startTemporalServer())

test('a delivery is attempted again if its retry is requested while its cancellation is being recorded', async () => {
  const input = documentTo('archive')
  const { activities, attemptsTo } = scriptedActivities((_, attempt) => (attempt === 1 ? 'down' : 'delivered'))
  const delivery = env.client.workflow.getHandle(deliveryWorkflowId(input, 'archive'))
  const recordCancellation = async () => {
    await delivery.signal(retrySignal, { requestId: 'R1', policy: input.policy })
    return 'failed' as const
  }
  await withWorker(env, { ...activities, recordCancellation }, async (taskQueue) => {
    const document = await env.client.workflow.start('document', { ...documentOptions(input, { registered: true }), taskQueue })
    await until('one attempt was made', () => attemptsTo('archive').length > 0)
    await delivery.cancel()
    expect(await document.result()).toEqual([{ destinationId: 'archive', status: 'delivered' }])
  })
  expect(attemptsTo('archive')).toHaveLength(2)
})
