import type { AttemptInput } from '../../workflows/messages.ts'
import { messageOf } from '../base/errors.ts'
import { timeOfId } from '../base/ids.ts'
import { DeliveryError, type DeliveryResult, type FindConnector } from '../connectors/connector.ts'
import { errorClassOf, remedyFor } from '../connectors/error-codes.ts'
import type { Database } from '../db/database.ts'
import { businessObjectOf } from '../domain/business-object.ts'
import type { AttemptOutcome } from '../domain/delivery-run.ts'
import { decideRetry } from '../domain/retry.ts'
import type { DeliveryJob } from './delivery-job.ts'
import type { Progress } from './progress.ts'
import type { AttemptEnd, RecordAttempt } from './record-attempt.ts'
import type { RedeliverNewer } from './redeliver.ts'
import { expire } from './transition.ts'

// What the end of an attempt means: it is recorded, and the outcome tells the workflow how to go on.

export interface ConcludeDeps {
  db: Database
  recordAttempt: RecordAttempt
  redeliverNewer: RedeliverNewer
  findConnector: FindConnector
}

/** Returns true if the destination keeps one document per path, which a later document replaces. */
export const replacesByPath = ({ findConnector }: ConcludeDeps, { destination }: DeliveryJob) =>
  !findConnector(destination.connector)?.isMessage

/** Input of an attempt, with the time at which its time to live ends. */
export type TimedInput = AttemptInput & { expiresAt: number }

type Sent = Pick<Progress, 'attemptId' | 'bytesSent'>

export const endOf = ({ attemptId, bytesSent }: Sent): Pick<AttemptEnd, 'id' | 'durationMs' | 'bytesSent'> => ({
  id: attemptId,
  durationMs: Math.max(0, Date.now() - timeOfId(attemptId).getTime()),
  bytesSent,
})

// Appends rarely come alone.
const repeatDelayMs = 10_000

export const recordDelivery = async (
  deps: ConcludeDeps,
  input: AttemptInput,
  job: DeliveryJob,
  progress: Progress,
  result: DeliveryResult,
): Promise<AttemptOutcome> => {
  const { status, superseded } = await deps.recordAttempt(input, job, {
    operation: 'attemptDelivered',
    outcome: 'delivered',
    ...endOf(progress),
    bytesSent: result.bytesSent,
    result,
    // If the document was changed meanwhile.
    retryDelayMs: repeatDelayMs,
    signal: 'answered',
  })
  if (superseded && replacesByPath(deps, job)) await deps.redeliverNewer(input)
  if (status !== 'retrying') return { status: 'delivered' }
  const error = 'the document, or the content of its path, was changed while it was sent'
  return { status, delayMs: repeatDelayMs, failures: input.failures, error }
}

/** Records a failed attempt. @param more what the record says if a retry follows */
export const recordFailure = async (
  deps: ConcludeDeps,
  { failures, expiresAt, ...input }: TimedInput,
  job: DeliveryJob,
  sent: Sent,
  failure: DeliveryError,
  more: Pick<AttemptEnd, 'lostAttempts' | 'keepsSlot'> = {},
): Promise<AttemptOutcome> => {
  const state = { failures, remainingMs: expiresAt - Date.now(), retryAfterMs: failure.retryAfterMs }
  const decision = decideRetry(input.policy, state, Math.random())
  const isRetried = decision.retry && !failure.permanent
  const message = clip(failure.message)
  const { status } = await deps.recordAttempt(input, job, {
    operation: isRetried ? 'attemptRetryable' : 'attemptFailed',
    outcome: failure.code === 'interrupted' ? 'interrupted' : failure.permanent ? 'permanent' : 'retryable',
    ...endOf(sent),
    error: { code: failure.code, message, answer: failure.answer },
    // A lost attempt whose upload goes on is repeated at once.
    ...(decision.retry && !more.keepsSlot && { retryDelayMs: decision.delayMs }),
    signal: errorClassOf(failure.code) === 'relay' ? 'unknown' : failure.permanent ? 'answered' : 'failed',
    ...(isRetried && more),
    ...(!isRetried && { endedBy: failure.permanent || decision.retry ? 'permanent_error' : limits[decision.exhausted] }),
  })
  if (status === 'cancelled' || status === 'delivered') return { status }
  const facts = { errorCode: failure.code, ...businessObjectOf(job) }
  if (isRetried && status !== 'failed') return { status: 'retrying', delayMs: decision.delayMs, failures, error: message, ...facts }
  return {
    status: 'failed',
    error: decision.retry || failure.permanent ? message : `${message} (${reasonOf(decision.exhausted, { ...input, failures })})`,
    remedy: remedyFor(failure.code, job.destination.name),
    ...facts,
  }
}

/** The setting that ends a round of attempts. */
const limits = { count: 'max_retries', time: 'retry_ttl_seconds' } as const

/** Returns why no retry follows, for operators. */
const reasonOf = (exhausted: keyof typeof limits, { policy, failures }: Pick<AttemptInput, 'policy' | 'failures'>): string => {
  const limit = exhausted === 'count' ? policy.maxRetries : policy.ttlMs / 1_000
  return `gave up after ${failures} ${failures === 1 ? 'attempt' : 'attempts'}: ${limits[exhausted]} is ${limit}`
}

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
  const lostAttempts = job.lostAttempts + 1
  const more = goesOn ? { lostAttempts, keepsSlot: true } : {}
  const loss = new DeliveryError('interrupted', 'the worker was lost during the attempt')
  return recordFailure(deps, { ...input, failures: input.failures + lostAttempts }, job, lost, loss, more)
}

/**
 * Records an attempt that was broken off, because the worker stops or the delivery was cancelled. It uses up no retry: another run of the
 * activity makes the attempt anew. The next run records an attempt that was lost in another way.
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
    lostAttempts: job.lostAttempts,
    keepsSlot: progress.savedUpload !== undefined,
  })
}

/** Messages by the reason of an activity's cancellation. */
const interruptions: Record<string, string | undefined> = {
  WORKER_SHUTDOWN: 'the worker was stopped during the attempt',
  CANCELLED: 'the delivery was cancelled during the attempt',
}

const messageMaxCharacters = 1_000
const clip = (text: string) => (text.length > messageMaxCharacters ? `${text.slice(0, messageMaxCharacters)}...` : text)

/** Fails a delivery whose time to live has ended before its next attempt. */
export const failExpired = async (deps: ConcludeDeps, input: AttemptInput, job: DeliveryJob): Promise<AttemptOutcome> => {
  await expire(deps.db, input)
  return {
    status: 'failed',
    error: `${job.lastError ?? 'not delivered'} (${reasonOf('time', input)})`,
    remedy: remedyFor(job.lastErrorCode ?? 'unexpected', job.destination.name),
    ...(job.lastErrorCode !== null && { errorCode: job.lastErrorCode }),
    ...businessObjectOf(job),
  }
}
