import { ApplicationFailure } from '@temporalio/activity'

interface Outcome {
  status: string
  /** Message of the error of a `retrying` or `failed` outcome. */
  error?: string
  errorCode?: string
  /** Milliseconds until the next attempt of a `retrying` outcome. */
  delayMs?: number
}

/**
 * Lets Temporal repeat an activity. An outcome that ends an attempt without ending the work becomes a failure of the activity, with the time of
 * the next attempt: operators see the number of the attempt, the last error and that time at the pending activity. The attempt is recorded and
 * logged by the relay, so the SDK need not log it as a fault.
 * @returns the outcome, unless it is `retrying` or `failed`
 * @throws ApplicationFailure with the outcome as its only detail. A `failed` outcome is not repeated
 */
export const repeat = <Ended extends Outcome>(outcome: Ended): Ended => {
  const { status, error = '', errorCode, delayMs } = outcome
  if (status !== 'retrying' && status !== 'failed') return outcome
  throw ApplicationFailure.create({
    message: errorCode === undefined ? error : `${errorCode}: ${error}`,
    type: errorCode ?? 'attempt_failed',
    category: 'BENIGN',
    details: [outcome],
    ...(status === 'failed' ? { nonRetryable: true } : delayMs !== undefined && { nextRetryDelay: delayMs }),
  })
}
