import type { Database, Transaction } from '../db/database.ts'

// The circuit of a destination (src/domain/circuit.ts) in SQL: a row of destination_gates. test/delivery/circuit.ts states the same rules as
// pure functions, and a test compares the two.

/** SQL: no attempt starts now unless it is the trial, which is due at `trial_at`. */
export const isBehindCircuit = `circuit <> 'closed' and :circuitFailures::integer > 0`

/** SQL: an attempt may start, as one of many or as the trial. */
export const passesCircuit = `(circuit = 'closed' or trial_at <= clock_timestamp() or :circuitFailures::integer = 0)`

/** SQL: the assignments when an attempt starts that passes. A lost trial is replaced when its lease has run out. */
export const startedAttempt = `
      circuit = case when circuit = 'closed' then circuit else 'half_open' end,
      circuit_since = case when circuit = 'open' then now() else circuit_since end,
      trial_at = case when circuit <> 'closed' then now() + :leaseMs::integer * interval '1 millisecond' end,
      trial_id = case when circuit <> 'closed' then :attemptId end`

// The circuit can be switched off, for all destinations.
const counts = `(:signal = 'failed' and :circuitFailures::integer > 0)`
const opens = `(${counts} and (trial_id = :id or (circuit = 'closed' and failures + 1 >= :circuitFailures::integer)))`
const pause = `case when trial_id = :id then least(2 * pause_ms, :maxPauseMs::integer) else :pauseMs::integer end`

// An attempt that was broken off says nothing about the destination, unless it was the last one. A cancelled delivery may have lost its
// destination, whose error is not kept then.
const succeeds = `:outcome = 'delivered'`
const fails = `(
      :errorMessage::text is not null
      and (select status from delivery) <> 'cancelled'
      and (:signal <> 'unknown' or (select status from delivery) = 'failed')
    )`
const kept = (column: string, value: string) => `case when ${succeeds} then null when ${fails} then ${value} else ${column} end`

/**
 * SQL: the end of an attempt, and whether it closes the circuit. All attempts at a destination share the row, so that it is written only after a
 * failure or if it changes. It is locked before the destination, as by a change of the destination.
 */
export const endedAttempt = `
    update destination_gates
    set
      failures = case when :signal = 'answered' then 0 when ${counts} then failures + 1 else failures end,
      failing_since = case when :signal = 'answered' then null when ${counts} then coalesce(failing_since, now()) else failing_since end,
      circuit = case when :signal = 'answered' then 'closed' when ${opens} then 'open' else circuit end,
      circuit_since = case when (:signal = 'answered' and circuit <> 'closed') or ${opens} then now() else circuit_since end,
      pause_ms = case when :signal = 'answered' then 0 when ${opens} then ${pause} else pause_ms end,
      trial_at = case
        when :signal = 'answered' then null
        when ${opens} then now() + ${pause} * interval '1 millisecond'
        when :signal = 'unknown' and trial_id = :id then now()
        else trial_at
      end,
      trial_id = case when :signal = 'answered' or ${opens} then null else trial_id end,
      failed_attempts = case when ${succeeds} then 0 when ${fails} then failed_attempts + 1 else failed_attempts end,
      last_error = ${kept('last_error', ':errorMessage')},
      last_error_code = ${kept('last_error_code', ':errorCode')},
      last_error_at = ${kept('last_error_at', 'now()')}
    where destination_id = :destinationId
      and (
        case :signal when 'answered' then failures > 0 or circuit <> 'closed' when 'failed' then ${counts} else trial_id = :id end
        or ${fails}
        or (${succeeds} and last_error is not null)
      )
    returning circuit = 'closed' and circuit_since = now() as closes`

/** Closes the circuit of a destination, which a successful test has shown to work, and forgets its last error. */
export const closeCircuit = async (db: Database, destinationId: string): Promise<void> => {
  await db.raw(
    `
    update destination_gates
    set
      circuit = 'closed', circuit_since = case when circuit = 'closed' then circuit_since else now() end, failures = 0,
      failing_since = null, pause_ms = 0, trial_at = null, trial_id = null, failed_attempts = 0, last_error = null, last_error_code = null,
      last_error_at = null
    where destination_id = :destinationId
      and (circuit <> 'closed' or failures > 0 or last_error is not null)
    `,
    { destinationId },
  )
}

/** Lets the next delivery try each of these destinations whose circuit is open: something may have been repaired. */
export const endPause = async (trx: Transaction, destinationIds: string[]): Promise<void> => {
  await trx.raw(
    `
    update destination_gates
    set trial_at = now()
    where destination_id = any (:destinationIds)
      and circuit = 'open'
      and trial_at > now()
    `,
    { destinationIds },
  )
}

/** Returns the time until the circuit of a destination lets a trial through. Null if it is not open, or the destination was deleted. */
export const circuitOpenMs = async (db: Database, destinationId: string): Promise<number | null> => {
  const { rows } = await db.raw<{ rows: { ms: number }[] }>(
    `
    select ceil(extract(epoch from trial_at - now()) * 1000)::float8 as ms
    from destination_gates
    join destinations on destinations.id = destination_id
    where destination_id = :destinationId
      and circuit = 'open'
      and trial_at > now()
      and deleted_at is null
    `,
    { destinationId },
  )
  return rows[0]?.ms ?? null
}
