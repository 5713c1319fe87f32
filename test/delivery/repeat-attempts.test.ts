import { repeatAttempts } from '../../activities/delivery.ts'
import type { AttemptOutcome } from '../../src/domain/delivery-run.ts'
import type { AttemptInput } from '../../workflows/messages.ts'
import { createActivityEnvironment } from '../support/activity-environment.ts'

const run = (outcome: AttemptOutcome) =>
  createActivityEnvironment().run(repeatAttempts({ attemptDelivery: async () => outcome }).attemptDelivery, {} as AttemptInput)

const failure = { error: 'the target answered 503', errorCode: 'http_503' }

test('an attempt that is repeated fails with its error and the time of the next one', async () => {
  await expect(run({ status: 'retrying', delayMs: 60_000, failures: 2, ...failure })).rejects.toMatchObject({
    message: 'http_503: the target answered 503',
    type: 'http_503',
    nextRetryDelay: 60_000,
    nonRetryable: false,
    category: 'BENIGN',
  })
})

test('an attempt that is not repeated fails for good, with its outcome', async () => {
  const outcome: AttemptOutcome = { status: 'failed', ...failure, remedy: 'Repair the target.' }
  await expect(run(outcome)).rejects.toMatchObject({ type: 'http_503', nonRetryable: true, details: [outcome] })
})

test.each<AttemptOutcome>([{ status: 'delivered' }, { status: 'held' }, { status: 'cancelled' }, { status: 'waiting' }])(
  'an attempt that is $status returns so',
  async (outcome) => {
    expect(await run(outcome)).toEqual(outcome)
  },
)
