import { setTimeout as sleep } from 'node:timers/promises'
import type { AttemptInput } from '../../workflows/messages.ts'
import { dayOf, endOfDay } from '../base/day.ts'
import { timeOfId } from '../base/ids.ts'
import { storable, storableJson } from '../base/text.ts'
import type { Config } from '../config/config.ts'
import { DeliveryError, plainAnswer, type TargetAnswer } from '../connectors/connector.ts'
import { errorClassOf } from '../connectors/error-codes.ts'
import { createStatement, type Database } from '../db/database.ts'
import { isLostRace, isOutage } from '../db/errors.ts'
import { withPartitionOf } from '../db/partitions.ts'
import type { CircuitSignal } from '../domain/circuit.ts'
import type { AttemptOutcome } from '../domain/delivery-run.ts'
import { transitions, type DeliveryEnd, type DeliveryStatus } from '../domain/delivery-states.ts'
import { decideRetry } from '../domain/retry.ts'
import type { AttemptOutcomeName } from './attempt-log.ts'
import { endedAttempt } from './circuit.ts'
import type { DeliveryJob } from './delivery-job.ts'
import { noteDelivered, type LateDataNotes } from './late-data.ts'
import { backOff, failureOf, limits } from './outcome.ts'
import type { Progress } from './progress.ts'
import { receiptOf, type Delivered } from './receipt.ts'
import type { RedeliverNewer } from './redeliver.ts'
import { leaseMs } from './slots.ts'
import { expire, type DeliveryRef } from './transition.ts'
import type { WakeNext } from './wake.ts'

// What the end of an attempt means: it is recorded, and the outcome tells the workflow how to go on.

export interface ConcludeDeps extends LateDataNotes {
  recordAttempt: RecordAttempt
  redeliverNewer: RedeliverNewer
}

/** Returns true if a destination of this kind keeps one document per path, which a later document replaces. */
export const replacesByPath = ({ findConnector }: Pick<ConcludeDeps, 'findConnector'>, connector: string): boolean =>
  !findConnector(connector)?.isMessage

/** Input of an attempt, with what is left of the budget of its round. */
export interface TimedInput extends AttemptInput {
  /** Failed attempts of the round before this one. */
  failures: number
  /** When the time to live ends, in milliseconds by the clock of this process. */
  expiresAt: number
}

/** @param delayMs time until the next attempt is due */
const budgetOf = ({ round, expiresAt }: TimedInput, failures: number, delayMs: number) => ({
  round,
  failures,
  remainingMs: expiresAt - Date.now() - delayMs,
})

export type Sent = Pick<Progress, 'attemptId' | 'bytesSent'>

export const endOf = ({ attemptId, bytesSent }: Sent): Pick<AttemptEnd, 'id' | 'durationMs' | 'bytesSent'> => ({
  id: attemptId,
  durationMs: Math.max(0, Date.now() - timeOfId(attemptId).getTime()),
  bytesSent,
})

// Appends usually arrive in bursts.
const repeatDelayMs = 10_000

/** @param isContinued true if an earlier run has begun the upload, maybe with older data */
export const recordDelivery = async (
  deps: ConcludeDeps,
  input: TimedInput,
  job: DeliveryJob,
  progress: Progress,
  result: Delivered,
  isContinued: boolean,
): Promise<AttemptOutcome> => {
  const { status, superseded } = await deps.recordAttempt(input, job, {
    operation: 'attemptDelivered',
    outcome: 'delivered',
    ...endOf(progress),
    bytesSent: result.bytesSent,
    result,
    // The document was changed during the attempt.
    retryDelayMs: repeatDelayMs,
    budget: budgetOf(input, input.failures, repeatDelayMs),
    signal: 'answered',
  })
  const hasProperties = result.propertiesError === undefined
  if (status === 'delivered' && (job.isEnriched || !hasProperties)) await noteDelivered(deps, input, job, hasProperties && !isContinued)
  if (superseded && replacesByPath(deps, job.destination.connector)) await deps.redeliverNewer(input)
  if (status !== 'retrying') return { status: 'delivered' }
  return backOff({ ...job, failures: input.failures, lastError: null, lastErrorCode: null }, repeatDelayMs)
}

/** Records a failed attempt. @param more what the record says if a retry follows */
export const recordFailure = async (
  deps: ConcludeDeps,
  input: TimedInput,
  job: DeliveryJob,
  sent: Sent,
  failure: DeliveryError,
  more: Pick<AttemptEnd, 'keepsSlot'> = {},
): Promise<AttemptOutcome> => {
  const failures = input.failures + 1
  const state = { failures, remainingMs: input.expiresAt - Date.now(), retryAfterMs: failure.retryAfterMs }
  const decision = decideRetry(input.policy, state, Math.random())
  const isRetried = decision.retry && !failure.permanent
  const { message } = failure
  const endedBy: DeliveryEnd | null = isRetried
    ? null
    : failure.permanent || decision.retry
      ? 'permanent_error'
      : limits[decision.exhausted]
  const { status } = await deps.recordAttempt(input, job, {
    operation: isRetried ? 'attemptRetryable' : 'attemptFailed',
    outcome: failure.code === 'interrupted' ? 'interrupted' : failure.permanent ? 'permanent' : 'retryable',
    ...endOf(sent),
    error: { code: failure.code, message, answer: failure.answer },
    // A lost attempt whose upload goes on is repeated at once.
    ...(decision.retry && !more.keepsSlot && { retryDelayMs: decision.delayMs }),
    budget: budgetOf(input, failures, decision.retry ? decision.delayMs : 0),
    signal: errorClassOf(failure.code) === 'relay' ? 'unknown' : failure.permanent ? 'answered' : 'failed',
    ...(isRetried && more),
    ...(endedBy && { endedBy }),
  })
  if (status === 'cancelled' || status === 'delivered') return { status }
  const recorded = { ...job, failures, endedBy, lastError: message, lastErrorCode: failure.code }
  return isRetried && status !== 'failed' ? backOff(recorded, decision.delayMs) : failureOf(deps.db, input, recorded)
}

/** Fails a delivery whose time to live has ended before its next attempt. */
export const failExpired = async (deps: ConcludeDeps, input: AttemptInput, job: DeliveryJob): Promise<AttemptOutcome> => {
  await expire(deps.db, input)
  return failureOf(deps.db, input, { ...job, endedBy: limits.time })
}

/** The end of an attempt. */
export interface AttemptEnd {
  /** Tells when the attempt was started. */
  id: string
  operation: 'attemptDelivered' | 'attemptRetryable' | 'attemptFailed'
  outcome: AttemptOutcomeName
  durationMs: number
  bytesSent: number
  /** If the document arrived. */
  result?: Delivered
  error?: { code: string; message: string; answer?: TargetAnswer | undefined }
  /** Delay until the retry, if one follows. */
  retryDelayMs?: number
  /** Why no retry follows, if the operation is `attemptFailed`. */
  endedBy?: DeliveryEnd
  /** Says whether the target has answered. Default `unknown`. */
  signal?: CircuitSignal
  /** What is left of the retry budget of the round when the next attempt is due. By default, that stays as it is. */
  budget?: { round: string; failures: number; remainingMs: number }
  /** The next attempt of the same activity inherits the slot. */
  keepsSlot?: boolean
}

interface Recorded {
  /** Status of the delivery after the attempt. */
  status: DeliveryStatus
  /** True if the document has been superseded by now. */
  superseded: boolean
  /** Number of recorded attempts of the delivery. */
  attempts: number
}

type RecordConfig = Pick<Config, 'DELIVERY_HEARTBEAT_TIMEOUT_MS' | 'DELIVERY_CIRCUIT_FAILURES' | 'DELIVERY_CIRCUIT_PAUSE_MS'>

// Bounds of the pause between two tries to record an attempt. If the process dies before the record, the attempt is repeated; so the tries
// go on for long enough for a restart or a failover of PostgreSQL, and the heartbeats continue.
const recordPausesMs = { first: 250, longest: 5_000 }
const recordingMaxMs = 120_000

/** Repeats a statement while the database is unavailable or another transaction is in the way: what has been sent must not be sent again. */
const persistently = async <T>(write: () => Promise<T>): Promise<T> => {
  const endsAt = performance.now() + recordingMaxMs
  for (let pauseMs = recordPausesMs.first; ; pauseMs = Math.min(2 * pauseMs, recordPausesMs.longest)) {
    try {
      return await write()
    } catch (thrown) {
      if (!(isOutage(thrown) || isLostRace(thrown)) || performance.now() + pauseMs > endsAt) throw thrown
      await sleep(pauseMs)
    }
  }
}

// The longest pause of a circuit, in first pauses: a minute by default.
const longestPause = 6

/**
 * Records an attempt, and what follows for the delivery and the health of the destination; a trigger derives the status of the document.
 * A delivery that has been delivered already stays so, and its attempt is not recorded again. An attempt that another worker has recorded
 * as lost, because this one was frozen, stays so unless it delivered the document.
 */
export const createRecordAttempt =
  (db: Database, config: RecordConfig, wakeNext: WakeNext = async () => {}, maxPauses = longestPause) =>
  async ({ documentId, destinationId }: DeliveryRef, job: DeliveryJob, attempt: AttemptEnd): Promise<Recorded> => {
    const { from, to } = transitions[attempt.operation]
    const answer = attempt.result?.answer ?? attempt.error?.answer
    const startedAt = timeOfId(attempt.id)
    const answeredAt = new Date(startedAt.getTime() + attempt.durationMs)
    const values = {
      id: attempt.id,
      round: attempt.budget?.round ?? null,
      remainingMs: attempt.budget?.remainingMs ?? null,
      failures: attempt.budget?.failures ?? null,
      keepsSlot: attempt.keepsSlot ?? false,
      leaseMs: leaseMs(config),
      signal: attempt.signal ?? 'unknown',
      circuitFailures: config.DELIVERY_CIRCUIT_FAILURES,
      pauseMs: config.DELIVERY_CIRCUIT_PAUSE_MS,
      maxPauseMs: maxPauses * config.DELIVERY_CIRCUIT_PAUSE_MS,
      documentId,
      destinationId,
      contentId: job.content.id,
      sizeBytes: job.content.sizeBytes,
      overwrites: job.overwrites,
      from: [...from],
      to,
      outdatedTo: transitions.attemptOutdated.to,
      outcome: attempt.outcome,
      // An attempt that cannot be recorded would be repeated for ever.
      location: attempt.result ? storable(attempt.result.path) : null,
      receipt: attempt.result ? storableJson(receiptOf(attempt.result, attempt.id, answeredAt)) : null,
      // The manifest of a day has the documents whose ids were made on it.
      dayEndsAt: endOfDay(dayOf(timeOfId(documentId))),
      startedAt,
      durationMs: attempt.durationMs,
      errorCode: attempt.error?.code ?? null,
      errorMessage: attempt.error?.message ?? null,
      answer: answer ? storableJson(plainAnswer(answer)) : null,
      bytesSent: attempt.bytesSent,
      endedBy: attempt.endedBy ?? null,
      retryDelayMs: attempt.retryDelayMs ?? 0,
      maxConcurrent: job.limits.maxConcurrent,
    }
    const [row] = await persistently(() => withPartitionOf(db, 'delivery_attempts', attempt.id, () => writeAttempt(db, values)))
    // The workspace has been deleted.
    if (!row) return { status: 'cancelled', superseded: false, attempts: 0 }
    const { mayWake, ...recorded } = row
    if (mayWake) await wakeNext(destinationId)
    return recorded
  }

export type RecordAttempt = ReturnType<typeof createRecordAttempt>

/**
 * SQL: the slot of the attempt becomes free, or is kept for the next one of the same activity. An attempt that saw the slot free before it was
 * leased keeps it locked until its statement ends, and is waited for.
 */
const returnedSlot = `
    update destination_slots
    set
      holder = case when :keepsSlot then holder end,
      leased_until = case when :keepsSlot then now() + :leaseMs::integer * interval '1 millisecond' else '-infinity' end
    where destination_id = :destinationId
      and holder = :id
      and (
        leased_until >= now()
        or number in (
          select number
          from destination_slots
          where destination_id = :destinationId
            and holder = :id
            and leased_until < now()
          -- A slot whose lease has run out may be being taken by another attempt.
          for update skip locked
        )
      )`

/** SQL: the delivery, unless it has been delivered before, or a late worker reports an attempt that counts as lost. */
const endedDelivery = `
    update deliveries
    set
      attempts = attempts + case when exists (select from recorded) then 0 else 1 end,
      attempt_id = null,
      begin_at = null,
      round = coalesce(:round, round),
      round_remaining_ms = coalesce(:remainingMs::float8::bigint, round_remaining_ms),
      round_expires_at = coalesce(
        now() + (:retryDelayMs::float8 + :remainingMs::float8) * interval '1 millisecond', round_expires_at),
      failures = coalesce(:failures::integer, failures),
      status = case
        when status <> all (:from) then status
        -- While the attempt was under way, the document was appended to, or an older document may have overwritten it at its path.
        when :to = 'delivered' and (not document.unchanged or overwrites <> :overwrites::integer) then :outdatedTo
        else :to
      end,
      location = coalesce(:location, location),
      delivered_at = case
        when :to = 'delivered' and document.unchanged is not false and overwrites = :overwrites::integer then now()
      end,
      receipt = coalesce(:receipt::jsonb, receipt),
      late_receipt_at = case
        when :receipt::jsonb is null then late_receipt_at
        else (
          select case when moment.at >= :dayEndsAt::timestamptz then moment.at end
          from (select time_in_manifest(deliveries.workspace_id) as at offset 0) as moment
        )
      end,
      last_error = :errorMessage,
      last_error_code = :errorCode,
      ended_by = case when status = any (:from) then :endedBy else ended_by end,
      -- A trigger clears it if the delivery has ended.
      next_attempt_at = now() + :retryDelayMs::float8 * interval '1 millisecond'
    from document
    where document_id = :documentId
      and destination_id = :destinationId
      and status <> 'delivered'
      and (:to = 'delivered' or not exists (select from recorded))
    returning deliveries.workspace_id, attempts, status, superseded`

/** SQL: the record of the attempt. */
const recordedAttempt = `
    insert into delivery_attempts (
      id, workspace_id, document_id, destination_id, number, started_at, duration_ms, outcome, error_code, error_message, answer,
      bytes_sent)
    select
      :id, workspace_id, :documentId, :destinationId, attempts, :startedAt::timestamptz, :durationMs::integer, :outcome, :errorCode,
      :errorMessage, :answer::jsonb, :bytesSent::bigint
    from delivery
    on conflict (id) do update
    set
      duration_ms = excluded.duration_ms, outcome = excluded.outcome, error_code = excluded.error_code,
      error_message = excluded.error_message, answer = excluded.answer, bytes_sent = excluded.bytes_sent`

/** SQL: the health of the destination. All documents that go to it share its row, so the row is written only if it changes. */
const healthOfDestination = `
    update destinations
    set
      status = case when delivery.status = 'failed' then 'failing' else 'connected' end,
      updated_at = case
        when destinations.status <> case when delivery.status = 'failed' then 'failing' else 'connected' end then now()
        else updated_at
      end,
      last_delivered_at = case when delivery.status = 'delivered' then now() else last_delivered_at end
    from delivery
    where destinations.id = :destinationId
      and (
        (delivery.status = 'failed' and destinations.status <> 'failing')
        or (delivery.status = 'delivered' and :outcome = 'delivered'
          and (destinations.status <> 'connected' or last_delivered_at is null or last_delivered_at < now() - interval '1 minute'))
      )`

/**
 * SQL: whether the end of this attempt may let others start. A delivery that joins the line at this moment is not seen here. It is seen by the
 * call that follows, if all slots are taken now.
 */
const roomForOthers = `
    select
      (select closes from gate) is true
      or exists (
        select
        from deliveries
        where destination_id = :destinationId
          and waiting = 'in_line'
      )
      or not exists (
        select
        from destination_slots
        where destination_id = :destinationId
          and number <= :maxConcurrent::integer
          and leased_until < now()
      ) as "mayWake"`

const writeAttempt = createStatement<Recorded & { mayWake: boolean }>(
  'record-attempt',
  `
  with document as (
    -- Locked, so that an append either comes first and is seen here, or comes later and sees the recorded delivery.
    select content_id = :contentId and size_bytes = :sizeBytes::bigint as unchanged, superseded_at is not null as superseded
    from documents
    where id = :documentId
    for no key update
  ), recorded as (
    select
    from delivery_attempts
    where id = :id
  ), slot as (${returnedSlot}
  ), delivery as (${endedDelivery}
  ), attempt as (${recordedAttempt}
  ), destination as (${healthOfDestination}
  ), gate as (${endedAttempt}
  ), room as (${roomForOthers}
  )
  select status, superseded, attempts, "mayWake"
  from delivery, room
  union all
  select status, false, attempts, "mayWake"
  from deliveries, room
  where document_id = :documentId
    and destination_id = :destinationId
    and not exists (select from delivery)
`,
)
