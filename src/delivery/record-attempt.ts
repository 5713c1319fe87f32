import { timeOfId } from '../base/ids.ts'
import type { Config } from '../config/config.ts'
import type { DeliveryResult, TargetAnswer } from '../connectors/connector.ts'
import { storable, type Database } from '../db/database.ts'
import { outboxKey, type OutboxMessage } from '../db/outbox.ts'
import { createStatement } from '../db/statement.ts'
import type { CircuitSignal } from '../domain/circuit.ts'
import { transitions, type DeliveryEnd, type DeliveryStatus } from '../domain/delivery-states.ts'
import type { AttemptOutcomeName } from './attempt-log.ts'
import type { DeliveryJob } from './delivery-job.ts'
import { leaseMs } from './leases.ts'
import type { DeliveryRef } from './transition.ts'
import { wakeMessage } from './wake.ts'

/** The end of an attempt. */
export interface AttemptEnd {
  /** Tells when the attempt was started. */
  id: string
  operation: 'attemptDelivered' | 'attemptRetryable' | 'attemptFailed'
  outcome: AttemptOutcomeName
  durationMs: number
  bytesSent: number
  /** If the document arrived. */
  result?: DeliveryResult
  error?: { code: string; message: string; answer?: TargetAnswer | undefined }
  /** Delay until the retry, if one follows. */
  retryDelayMs?: number
  /** Why no retry follows, if the operation is `attemptFailed`. */
  endedBy?: DeliveryEnd
  /** Says whether the target has answered. Default `unknown`. */
  signal?: CircuitSignal
  /** Lost attempts up to now that the workflow does not learn of, because the same activity goes on. Default 0. */
  lostAttempts?: number
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

type RecordConfig = Pick<
  Config,
  'DELIVERY_HEARTBEAT_TIMEOUT_MS' | 'DELIVERY_CIRCUIT_FAILURES' | 'DELIVERY_CIRCUIT_PAUSE_MS' | 'DELIVERY_CIRCUIT_MAX_PAUSE_MS'
>

/**
 * Records an attempt, and what follows for the delivery and the health of the destination; a trigger derives the status of the document.
 * A delivery that has been delivered already stays so, and its attempt is not recorded again. An attempt that another worker has recorded
 * as lost, because this one was frozen, stays so unless it delivered the document.
 * @param launch sends the committed message that wakes other deliveries. By default, it is left to the sweep
 */
export const createRecordAttempt =
  (db: Database, config: RecordConfig, launch: (messages: OutboxMessage[]) => void = () => {}) =>
  async ({ documentId, destinationId }: DeliveryRef, job: DeliveryJob, attempt: AttemptEnd): Promise<Recorded> => {
    const { from, to } = transitions[attempt.operation]
    const answer = attempt.result?.answer ?? attempt.error?.answer
    const { id, name } = job.destination
    const wake = wakeMessage({ workspace: job.workspace, destination: { id, name } }, attempt.id)
    const [row] = await writeAttempt(db, {
      id: attempt.id,
      lostAttempts: attempt.lostAttempts ?? 0,
      keepsSlot: attempt.keepsSlot ?? false,
      leaseMs: leaseMs(config),
      signal: attempt.signal ?? 'unknown',
      circuitFailures: config.DELIVERY_CIRCUIT_FAILURES,
      pauseMs: config.DELIVERY_CIRCUIT_PAUSE_MS,
      maxPauseMs: config.DELIVERY_CIRCUIT_MAX_PAUSE_MS,
      documentId,
      destinationId,
      contentId: job.content.id,
      sizeBytes: job.content.sizeBytes,
      overwrites: job.overwrites,
      from: [...from],
      to,
      outdatedTo: transitions.attemptOutdated.to,
      outcome: attempt.outcome,
      location: attempt.result?.path ?? null,
      startedAt: timeOfId(attempt.id),
      durationMs: attempt.durationMs,
      errorCode: attempt.error?.code ?? null,
      // A target's text may hold characters that PostgreSQL refuses. An attempt that cannot be recorded would be repeated for ever.
      errorMessage: attempt.error ? storable(attempt.error.message) : null,
      answer: answer ? JSON.stringify(answer, (_, value: unknown) => (typeof value === 'string' ? storable(value) : value)) : null,
      bytesSent: attempt.bytesSent,
      endedBy: attempt.endedBy ?? null,
      retryDelayMs: attempt.retryDelayMs ?? 0,
      wakeKey: outboxKey(wake),
      wake: JSON.stringify(wake),
    })
    // The workspace was deleted meanwhile.
    if (!row) return { status: 'cancelled', superseded: false, attempts: 0 }
    const { closesCircuit, ...recorded } = row
    if (closesCircuit) launch([wake])
    return recorded
  }

export type RecordAttempt = ReturnType<typeof createRecordAttempt>

// Parts of the assignments to the circuit.
const opens = `(:signal = 'failed' and (trial_id = :id or (circuit = 'closed' and failures + 1 >= :circuitFailures::integer)))`
const pause = `case when trial_id = :id then least(2 * pause_ms, :maxPauseMs::integer) else :pauseMs::integer end`

const writeAttempt = createStatement<Recorded & { closesCircuit: boolean }>(
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
  ), slot as (
    update destination_slots
    set
      holder = case when :keepsSlot then holder end,
      leased_until = case when :keepsSlot then now() + :leaseMs::integer * interval '1 millisecond' else '-infinity' end
    where (destination_id, number) in (
      select destination_id, number
      from destination_slots
      where destination_id = :destinationId
        and holder = :id
      -- A slot whose lease has run out may be being taken by another attempt.
      for update skip locked
    )
  ), delivery as (
    update deliveries
    set
      attempts = attempts + case when exists (select from recorded) then 0 else 1 end,
      attempt_id = null,
      lost_attempts = :lostAttempts::integer,
      status = case
        when status <> all (:from) then status
        -- While the attempt was under way, the document was appended to, or an older document may have overwritten it at its path.
        when :to = 'delivered' and (not document.unchanged or overwrites <> :overwrites::integer) then :outdatedTo
        else :to
      end,
      location = coalesce(:location, location),
      delivered_at = case
        when :to = 'delivered' and document.unchanged and overwrites = :overwrites::integer then now()
      end,
      last_error = :errorMessage,
      last_error_code = :errorCode,
      ended_by = :endedBy,
      -- A trigger clears it if the delivery has ended.
      next_attempt_at = now() + :retryDelayMs::float8 * interval '1 millisecond'
    from document
    where document_id = :documentId
      and destination_id = :destinationId
      and status <> 'delivered'
      and (:to = 'delivered' or not exists (select from recorded))
    returning deliveries.workspace_id, attempts, status, superseded
  ), attempt as (
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
      error_message = excluded.error_message, answer = excluded.answer, bytes_sent = excluded.bytes_sent
  ), destination as (
    -- All documents that go to a destination share its row, so the row is written only if it changes.
    update destinations
    set
      status = case when delivery.status = 'failed' then 'failing' else 'connected' end,
      last_error = case when delivery.status = 'failed' then :errorMessage end,
      updated_at = case
        when destinations.status <> case when delivery.status = 'failed' then 'failing' else 'connected' end then now()
        else updated_at
      end,
      last_delivered_at = case when delivery.status = 'delivered' then now() else last_delivered_at end
    from delivery
    where destinations.id = :destinationId
      and (
        (delivery.status = 'failed' and (destinations.status <> 'failing' or last_error is distinct from :errorMessage))
        or (delivery.status = 'delivered' and :outcome = 'delivered'
          and (destinations.status <> 'connected' or last_delivered_at is null or last_delivered_at < now() - interval '1 minute'))
      )
  ), gate as (
    -- test/delivery/circuit.ts states the rules. All attempts at a destination share the row, so that it is written only after a failure or if
    -- it changes. A change of the destination also locks the destination first.
    update destination_gates
    set
      failures = case :signal when 'answered' then 0 when 'failed' then failures + 1 else failures end,
      circuit = case when :signal = 'answered' then 'closed' when ${opens} then 'open' else circuit end,
      circuit_since = case when (:signal = 'answered' and circuit <> 'closed') or ${opens} then now() else circuit_since end,
      pause_ms = case when :signal = 'answered' then 0 when ${opens} then ${pause} else pause_ms end,
      trial_at = case
        when :signal = 'answered' then null
        when ${opens} then now() + ${pause} * interval '1 millisecond'
        when :signal = 'unknown' then now()
        else trial_at
      end,
      trial_id = case when :signal = 'answered' or ${opens} then null else trial_id end
    where destination_id = :destinationId
      and case :signal
        when 'answered' then failures > 0 or circuit <> 'closed'
        when 'failed' then :circuitFailures::integer > 0
        else trial_id = :id
      end
    returning circuit = 'closed' and circuit_since = now() as closes
  ), wake as (
    insert into outbox (key, message)
    select :wakeKey, :wake::jsonb
    from gate
    where closes
    on conflict do nothing
    returning key
  )
  select status, superseded, attempts, exists (select from wake) as "closesCircuit"
  from delivery
  union all
  select status, false, attempts, exists (select from wake)
  from deliveries
  where document_id = :documentId
    and destination_id = :destinationId
    and not exists (select from delivery)
`,
)
