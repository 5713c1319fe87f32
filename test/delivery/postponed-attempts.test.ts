import { postponeAttempts } from '../../activities/delivery.ts'
import type { AttemptInput } from '../../workflows/messages.ts'
import { createActivityEnvironment } from '../support/activity-environment.ts'

const { attemptDelivery } = postponeAttempts({ attemptDelivery: async () => ({ status: 'delivered' as const }) })
const run = (attempt: number, delay: { delayMs?: number } = { delayMs: 60_000 }) =>
  createActivityEnvironment({ attempt }).run(attemptDelivery, delay as AttemptInput)

test('the first run of a postponed attempt ends with the delay after which Temporal runs it again', async () => {
  await expect(run(1)).rejects.toMatchObject({ type: 'NotDue', nextRetryDelay: 60_000, category: 'BENIGN' })
})

test('a later run makes the attempt', async () => {
  expect(await run(2)).toEqual({ status: 'delivered' })
})

test('an attempt without a delay is made by the first run', async () => {
  expect(await run(1, {})).toEqual({ status: 'delivered' })
})
