import { addPostponedAttempts } from '../../activities/delivery.ts'
import type { AttemptInput } from '../../workflows/messages.ts'
import { createActivityEnvironment } from '../support/activity-environment.ts'

const { attemptDeliveryLater } = addPostponedAttempts({ attemptDelivery: async () => ({ status: 'delivered' }) })
const run = (attempt: number) =>
  createActivityEnvironment({ attempt }).run(attemptDeliveryLater, { delayMs: 60_000 } as AttemptInput & { delayMs: number })

test('the first run of a postponed attempt ends with the delay after which Temporal runs it again', async () => {
  await expect(run(1)).rejects.toMatchObject({ type: 'NotDue', nextRetryDelay: 60_000, category: 'BENIGN' })
})

test('a later run makes the attempt', async () => {
  expect(await run(2)).toEqual({ status: 'delivered' })
})
