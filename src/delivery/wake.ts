import { startablesOf, startInputOf, type DeliveryTermsConfig, type StartableDelivery } from '../archive/delivery-input.ts'
import { logFailure } from '../base/failure-log.ts'
import { newId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import type { Database, Transaction } from '../db/database.ts'
import { createOnItsOwn } from '../db/on-its-own.ts'
import { addMessages, type WakeDelivery } from '../db/outbox.ts'
import { isBehindCircuit } from './circuit.ts'
import { catchUpMs, limitsOf } from './slots.ts'
import type { DeliveryRef } from './transition.ts'

// A delivery that finds no free slot at its destination, or a circuit that is not closed, waits in line: its workflow sleeps without a
// timer, and costs nothing. Whatever makes room calls the next ones in line, in the order of their documents: the end of an attempt, and
// a delivery that has just joined the line. While no delivery may start (a trial or the next start of the minute is not due), only the
// first in line has a timer. A job looks every minute for lines that were not called.

export type WakeConfig = DeliveryTermsConfig &
  Pick<Config, 'DELIVERY_CIRCUIT_FAILURES' | 'DELIVERY_MAX_CONCURRENT_PER_DESTINATION' | 'DELIVERY_MAX_PER_MINUTE_PER_DESTINATION'>

// Lines that one transaction calls. If the transaction fails, each line is called in a transaction of its own.
const linesPerCall = 100

/** A call that has not led to a start within this time does not keep a place any more. */
const callMs = 30_000

// The first in line has a timer of its own if it is due this soon after the moment from which it may start.
const timerToleranceMs = 5_000

/**
 * SQL: when the first in line may start, if no delivery may start now (`opens_at`); else the number of places.
 * @param id SQL of the id of the destination
 */
const roomAt = (id: string) => `
  select
    opens_at,
    case when opens_at is not null then 1 else (
      select count(*)
      from destination_slots
      where destination_id = ${id}
        and number <= max_concurrent
        and leased_until < now()
    ) end - (
      select count(*)
      from deliveries
      where destination_id = ${id}
        and waiting = 'called'
        and next_attempt_at > now() - :callMs::integer * interval '1 millisecond'
    ) as places
  from (
    select
      max_concurrent,
      case
        when ${isBehindCircuit} then trial_at
        when max_per_minute > 0 and next_start_at > now() + :catchUpMs::integer * interval '1 millisecond' then next_start_at
      end as opens_at
    from (select ${limitsOf('destinations')} from destinations where id = ${id}) as limits
    join destination_gates on destination_id = ${id}
  ) as gate`

// The first in line has no timer of its own yet, or one that is too late.
const isCallable = `opens_at is null or next_attempt_at > opens_at + :timerToleranceMs::integer * interval '1 millisecond'`

const roomValues = (config: WakeConfig) => ({
  callMs,
  timerToleranceMs,
  catchUpMs,
  circuitFailures: config.DELIVERY_CIRCUIT_FAILURES,
  maxConcurrent: config.DELIVERY_MAX_CONCURRENT_PER_DESTINATION,
  maxPerMinute: config.DELIVERY_MAX_PER_MINUTE_PER_DESTINATION,
})

/**
 * Calls the next deliveries that wait for a destination, as many as may start.
 * @returns the messages that wake their workflows, added to the outbox
 */
export const callNext = (trx: Transaction, destinationId: string, config: WakeConfig): Promise<WakeDelivery[]> =>
  callNextOf(trx, [destinationId], config)

const callNextOf = async (trx: Transaction, destinationIds: string[], config: WakeConfig): Promise<WakeDelivery[]> => {
  const { rows } = await trx.raw<{ rows: StartableDelivery[] }>(
    `
    with room as materialized (
      select line.id, opens_at, places
      from unnest(:destinationIds::text[]) as line (id)
      cross join lateral (${roomAt('line.id')}) as room
      where places > 0
    ), next as (
      select document_id, destination_id, opens_at
      from room
      cross join lateral (
        select document_id, destination_id
        from deliveries
        where destination_id = room.id
          and waiting = 'in_line'
        order by document_id
        limit places
        for update skip locked
      ) as first
    ), called as (
      update deliveries
      set waiting = 'called', next_attempt_at = now()
      from next
      where deliveries.document_id = next.document_id
        and deliveries.destination_id = next.destination_id
        and (${isCallable})
      returning deliveries.document_id, deliveries.destination_id
    )
    ${startablesOf('called')}
    `,
    { destinationIds, ...roomValues(config) },
  )
  return addWakes(trx, rows, config)
}

/** Adds the messages that wake deliveries. @param more whether this also ends the time before the next attempt */
export const addWakes = async (
  trx: Transaction,
  deliveries: StartableDelivery[],
  config: DeliveryTermsConfig,
  more: Pick<WakeDelivery, 'endsBackOff'> = {},
): Promise<WakeDelivery[]> => {
  const requestId = newId()
  const messages = deliveries.map((each): WakeDelivery => ({ kind: 'wakeDelivery', requestId, input: startInputOf(each, config), ...more }))
  await addMessages(trx, messages)
  return messages
}

/** Adds the messages that wake these deliveries, whose workflows sleep. @returns the messages */
export const wakeDeliveries = async (trx: Transaction, deliveries: DeliveryRef[], config: DeliveryTermsConfig): Promise<WakeDelivery[]> => {
  if (deliveries.length === 0) return []
  const { rows } = await trx.raw<{ rows: StartableDelivery[] }>(
    `
    with asleep as (
      select "documentId" as document_id, "destinationId" as destination_id
      from jsonb_to_recordset(:deliveries::jsonb) as found ("documentId" text, "destinationId" text)
    )
    ${startablesOf('asleep')}
    `,
    { deliveries: JSON.stringify(deliveries.map(({ documentId, destinationId }) => ({ documentId, destinationId }))) },
  )
  return addWakes(trx, rows, config)
}

/**
 * Creates the function that calls the next deliveries in the line of a destination, and never throws: what it cannot do, a job does within
 * a minute.
 * @param launch sends committed messages
 */
export const createWakeNext =
  (db: Database, config: WakeConfig, launch: (messages: WakeDelivery[]) => void, log: Pick<Log, 'warn'>) =>
  async (destinationId: string): Promise<void> => {
    try {
      const messages = await db.transaction((trx) => callNext(trx, destinationId, config))
      if (messages.length > 0) launch(messages)
    } catch (thrown) {
      logFailure(log, thrown, 'failed to call the next deliveries in line, a job will call them', { destination_id: destinationId })
    }
  }

export type WakeNext = ReturnType<typeof createWakeNext>

/**
 * Calls the next deliveries of every line whose first one could start: a process may have been lost before it has called them.
 * @returns the number of lines
 */
export const createCallLines =
  (db: Database, config: WakeConfig, launch: (messages: WakeDelivery[]) => void, onItsOwn = createOnItsOwn().onItsOwn) =>
  async (): Promise<number> => {
    const call = async (lines: string[]): Promise<void> => {
      const messages = await db.transaction((trx) => callNextOf(trx, lines, config))
      if (messages.length > 0) launch(messages)
    }
    const lines = await listLines(db, config)
    for (let next = 0; next < lines.length; next += linesPerCall) {
      const some = lines.slice(next, next + linesPerCall)
      try {
        await call(some)
      } catch {
        for (const line of some) await onItsOwn('call-lines', { destination_id: line }, () => call([line]))
      }
    }
    return lines.length
  }

export type CallLines = ReturnType<typeof createCallLines>

/**
 * Finds the destinations in whose line the first delivery has to be called. The query steps from one destination for which something waits to the
 * next, in the index deliveries_in_line, however many wait there and however many destinations there are.
 */
export const listLines = async (db: Database, config: WakeConfig): Promise<string[]> => {
  const { rows } = await db.raw<{ rows: { id: string }[] }>(
    `
    with recursive waited_for as (
      select min(destination_id) as id
      from deliveries
      where waiting is not null
      union all
      select (
        select min(destination_id)
        from deliveries
        where waiting is not null
          and destination_id > waited_for.id
      )
      from waited_for
      where id is not null
    )
    select id
    from waited_for
    cross join lateral (
      select next_attempt_at
      from deliveries
      where destination_id = waited_for.id
        and waiting = 'in_line'
      order by document_id
      limit 1
    ) as first
    cross join lateral (${roomAt('waited_for.id')}) as room
    where places > 0
      and (${isCallable})
    order by id
    `,
    roomValues(config),
  )
  return rows.map(({ id }) => id)
}
