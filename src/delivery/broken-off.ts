import type { AttemptInput } from '../../workflows/messages.ts'
import { messageOf } from '../base/errors.ts'
import { DeliveryError } from '../connectors/connector.ts'
import type { AttemptOutcome } from '../domain/delivery-run.ts'
import type { DeliveryJob } from './delivery-job.ts'
import type { Progress } from './progress.ts'
import { endOf, recordFailure, type ConcludeDeps, type Sent, type TimedInput } from './record-attempt.ts'

// Attempts that did not come to their end: their worker was lost or stopped, or the delivery was cancelled.

/**
 * Records an attempt whose worker was lost. It counts as failed, and its retry waits like any other: a document that kills its workers
 * must not do so in quick succession.
 * @param goesOn the connector has saved an upload, which this activity alone knows: a retry follows at once, in the same slot
 */
export const recordLoss = (
  deps: ConcludeDeps,
  input: TimedInput,
  job: DeliveryJob,
  lost: Sent,
  goesOn: boolean,
): Promise<AttemptOutcome> => {
  const loss = new DeliveryError('interrupted', 'the worker was lost during the attempt')
  return recordFailure(deps, input, job, lost, loss, goesOn ? { keepsSlot: true } : {})
}

/**
 * Records an attempt that was broken off, because the worker stops or the delivery was cancelled. It uses up no retry: the next run repeats
 * the attempt; it records any other lost attempt as interrupted.
 */
export const recordInterruption = async (
  deps: ConcludeDeps,
  input: AttemptInput,
  job: DeliveryJob,
  signal: AbortSignal,
  progress: Progress,
): Promise<void> => {
  const message = interruptions[messageOf(signal.reason)]
  if (message === undefined) return
  await deps.recordAttempt(input, job, {
    operation: 'attemptRetryable',
    outcome: 'interrupted',
    ...endOf(progress),
    error: { code: 'interrupted', message },
    keepsSlot: progress.savedUpload !== undefined,
  })
}

/** Messages by the reason of an activity's cancellation. */
const interruptions: Record<string, string | undefined> = {
  WORKER_SHUTDOWN: 'the worker was stopped during the attempt',
  CANCELLED: 'the delivery was cancelled during the attempt',
  PAUSED: 'an operator paused the activity in Temporal during the attempt',
  RESET: 'an operator reset the activity in Temporal during the attempt',
}
