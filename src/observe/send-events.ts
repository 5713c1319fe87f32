import { createConcurrencyLimit } from '../base/concurrency-limit.ts'
import { AppError } from '../base/errors.ts'
import type { Config } from '../config/config.ts'
import { callTarget, type CallTargetDeps } from '../connectors/call-target.ts'
import { DeliveryError } from '../connectors/connector.ts'
import { createOpenCredentials } from '../connectors/target.ts'
import type { Database } from '../db/database.ts'
import { dueInMs } from '../db/due.ts'
import { eventIdOf, eventPositionOf, eventTypes, type EventName, type EventPosition } from '../domain/events.ts'
import { decideRetry } from '../domain/retry.ts'
import { retryPolicyOf, workspaceSettings } from '../domain/settings.ts'
import type { KeyRing } from '../security/seal.ts'
import { createEvents, type EventsPage } from './events.ts'

// A webhook should store an event and answer.
const requestTimeoutMs = 20_000
// Afterwards, other subscriptions have the place.
const runMs = 20_000
const pageEvents = 100
// Until a place is free.
const busyMs = 2_000
// Longer than a run and one request more.
const claimMs = 90_000

export interface SendEventsDeps extends Omit<CallTargetDeps, 'openCredentials'> {
  db: Database
  keyRing: KeyRing
  config: CallTargetDeps['config'] & Pick<Config, 'TEMPORAL_MAX_CONCURRENT_ATTEMPTS'>
}

interface Job extends EventPosition {
  id: string
  workspaceId: string
  workspace: string
  settings: object
  events: EventName[]
  version: number
  attempts: number
  lastError: string | null
  lastErrorCode: string | null
  /** Time until the next attempt. Null if it is due. */
  dueInMs: number | null
  circuitOpenMs: number | null
  destination: { id: string; connector: string; config: Record<string, unknown> }
  credentialsSealed: Buffer
}

/** Outcome of a run. `idle`: everything was sent. `more`: there is more. `gone`: nothing is to be sent any more. */
export type SentEvents = { status: 'idle' | 'more' | 'gone' } | { status: 'retrying'; delayMs: number; error: string }

const load = async (db: Database, subscriptionId: string, dueBy: string | null): Promise<Job | undefined> => {
  const { rows } = await db.raw<{ rows: Job[] }>(
    `
    with claimed as (
      update event_subscriptions
      set claimed_until = greatest(claimed_until, now() + :claimMs::integer * interval '1 millisecond')
      where id = :subscriptionId
        and is_active
      returning *
    )
    select
      claimed.id, claimed.workspace_id as "workspaceId", user_slug || '/' || workspace_slug as workspace, settings, claimed.events,
      claimed.version, claimed.attempts, claimed.last_error as "lastError", claimed.last_error_code as "lastErrorCode",
      ${dueInMs('claimed.next_attempt_at')} as "dueInMs", claimed.epoch, claimed.transaction, claimed.number, credentials_sealed as "credentialsSealed",
      (
        select extract(epoch from trial_at - now()) * 1000
        from destination_gates
        where destination_gates.destination_id = claimed.destination_id
          and circuit = 'open'
          and trial_at > now()
      )::float8 as "circuitOpenMs",
      jsonb_build_object('id', destinations.id, 'connector', connector_type, 'config', config) as destination
    from claimed
    join destinations on destinations.id = claimed.destination_id
    join workspaces on workspaces.id = claimed.workspace_id
    where deleted_at is null
    `,
    { subscriptionId, claimMs, dueBy },
  )
  return rows[0]
}

/** Stores how far a subscription is, unless it was set to another place meanwhile. @returns false if it was */
const store = async (
  db: Database,
  { id, version }: Pick<Job, 'id' | 'version'>,
  { position, sent, error, attempts, claimedMs }: Stored,
): Promise<boolean> => {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `
    update event_subscriptions
    set
      epoch = :epoch,
      transaction = :transaction,
      number = :number,
      claimed_until = case when :claimedMs::float8 is null then '-infinity' else now() + :claimedMs::float8 * interval '1 millisecond' end,
      attempts = :attempts,
      failing_since = case when :attempts::integer > 0 then case when attempts > 0 and not :sent then failing_since else now() end end,
      next_attempt_at = case when :attempts::integer > 0 then now() + :delayMs::float8 * interval '1 millisecond' end,
      last_error = :message,
      last_error_code = :code,
      last_sent_at = case when :sent then now() else last_sent_at end
    where id = :id
      and version = :version
    returning 1
    `,
    {
      id,
      version,
      ...position,
      sent,
      attempts,
      claimedMs: claimedMs ?? null,
      delayMs: error?.delayMs ?? 0,
      message: error?.message ?? null,
      code: error?.code ?? null,
    },
  )
  return rows.length > 0
}

interface Stored {
  position: EventPosition
  sent: boolean
  attempts: number
  error?: { code: string; message: string; delayMs: number }
  claimedMs?: number
}

/** Returns when a failure is repeated: never the last time, since all later events wait behind the one that fails. */
const delayOf = ({ settings }: Job, failures: number, { retryAfterMs }: DeliveryError): number => {
  const policy = { ...retryPolicyOf(workspaceSettings(settings)), maxRetries: Infinity }
  const decision = decideRetry(policy, { failures, remainingMs: Infinity, retryAfterMs }, Math.random())
  return decision.retry ? decision.delayMs : policy.maxIntervalMs
}

/**
 * Creates the activity that sends the events of a subscription, one after the other. A run that is broken off and repeated sends events again
 * that it has sent, with the same ids. If a failure is recorded and Temporal has not heard of it, nothing is sent before its retry is due.
 */
export const createSendEvents = (deps: SendEventsDeps) => {
  const { db, keyRing, config } = deps
  const events = createEvents(db)
  // Subscriptions share the places of a worker with deliveries. Receivers that hang must leave most of them.
  const total = Math.max(1, Math.floor(config.TEMPORAL_MAX_CONCURRENT_ATTEMPTS / 5))
  const places = createConcurrencyLimit(() => ({ total, perWorkspace: Math.ceil(total / 2) }))

  /** Reads the next page. Of events that retention has removed before they were sent, nothing is left to be sent. */
  const read = async ({ workspaceId, events: types }: Job, position: EventPosition): Promise<EventsPage> => {
    try {
      return await events.list(workspaceId, { after: eventIdOf(position), types, limit: pageEvents })
    } catch (thrown) {
      if (!(thrown instanceof AppError) || thrown.code !== 'gone') throw thrown
      return events.list(workspaceId, { types, limit: pageEvents })
    }
  }

  const callDeps = { ...deps, openCredentials: createOpenCredentials(keyRing) }

  /** Sends an event. A failure of the receiver is returned. @throws as `callTarget` */
  const sendOne = (
    job: Job,
    { id, event, createdAt, data }: EventsPage['items'][number],
    cancelled: AbortSignal,
  ): Promise<DeliveryError | undefined> =>
    callTarget(callDeps, job, { timeoutMs: requestTimeoutMs, cancelled }, async (connector, target, context) => {
      if (!connector.sendNotice) throw new DeliveryError('connector_unknown', `destinations of the type ${connector.kind} get no events`)
      const subject = eventTypes[event].summary
      const { workspace } = job
      await connector.sendNotice(
        { id, workspace, subject, text: subject, event: { type: event, timestamp: createdAt.toISOString(), data } },
        target,
        context,
      )
      return undefined
    })

  const sendRun = async (job: Job, cancelled: AbortSignal): Promise<SentEvents> => {
    let position: EventPosition = job
    let [sent, attempts] = [false, job.attempts]
    const endsAt = performance.now() + runMs
    try {
      for (;;) {
        const page = await read(job, position)
        for (const event of page.items) {
          const failure = await sendOne(job, event, cancelled)
          if (failure) {
            const { code, message } = failure
            const delayMs = delayOf(job, attempts + 1, failure)
            const error = { code, message, delayMs }
            const isStored = await store(db, job, { position, sent, attempts: attempts + 1, error, claimedMs: delayMs + claimMs })
            return isStored ? { status: 'retrying', delayMs, error: `${code}: ${message}` } : { status: 'gone' }
          }
          position = eventPositionOf(event.id)
          sent = true
          attempts = 0
          if (performance.now() >= endsAt) {
            return (await store(db, job, { position, sent, attempts, claimedMs: claimMs })) ? { status: 'more' } : { status: 'gone' }
          }
        }
        position = eventPositionOf(page.nextCursor)
        if (!page.hasMore) return (await store(db, job, { position, sent, attempts: 0 })) ? { status: 'idle' } : { status: 'gone' }
        if (!(await store(db, job, { position, sent, attempts, claimedMs: claimMs }))) return { status: 'gone' }
      }
    } catch (thrown) {
      if (!cancelled.aborted) throw thrown
      await store(db, job, { position, sent, attempts, claimedMs: claimMs })
      throw cancelled.reason
    }
  }

  /**
   * @param dueBy a retry that was planned for this time or earlier is due: a timestamp, or `infinity`. By default, the clock of the database
   * decides
   * @throws the reason of `cancelled`, and failures of the relay itself
   */
  return async (subscriptionId: string, cancelled: AbortSignal, dueBy?: string): Promise<SentEvents> => {
    const job = await load(db, subscriptionId, dueBy ?? null)
    if (!job) return { status: 'gone' }
    if (job.dueInMs !== null) return { status: 'retrying', delayMs: job.dueInMs, error: `${job.lastErrorCode}: ${job.lastError}` }
    if (job.circuitOpenMs !== null) {
      const delayMs = Math.max(job.circuitOpenMs, busyMs)
      return { status: 'retrying', delayMs, error: 'circuit_open: deliveries to the destination fail' }
    }
    const leave = places.begin(job.workspaceId)
    if (!leave) return { status: 'retrying', delayMs: busyMs, error: 'busy: other subscriptions are sending' }
    try {
      return await sendRun(job, cancelled)
    } finally {
      leave()
    }
  }
}

export type SendEvents = ReturnType<typeof createSendEvents>

/** A subscription that has something to send. */
export interface DueSubscription {
  subscriptionId: string
  /** `{userSlug}/{workspaceSlug}` */
  workspace: string
  name: string
}

// Events of other types that one look passes over.
const lookRows = 1_000
// A start that is lost is made again.
const startMs = 10_000

/**
 * Finds subscriptions that have something to send and that no workflow sends. Those before which only events of other types lie are moved
 * behind these.
 */
export const createFindDue = (db: Database) => async (): Promise<DueSubscription[]> => {
  const { rows } = await db.raw<{ rows: (DueSubscription & { isDue: boolean })[] }>(
    `
    with due as (
      select id, workspace_id, events, epoch, transaction, number
      from event_subscriptions
      where is_active
        and claimed_until <= now()
    ), looked as (
      select due.id, seen.is_due, seen.last
      from due
      cross join lateral (
        select
          bool_or(type = any(due.events)) as is_due,
          (array_agg(array[scanned.epoch, scanned.transaction, scanned.number] order by scanned.epoch desc, scanned.transaction desc, scanned.number desc))[1:1] as last
        from (
          select events.epoch, events.transaction, events.number, type
          from events
          where events.workspace_id = due.workspace_id
            and (events.epoch, events.transaction, events.number) > (due.epoch, due.transaction, due.number)
            and (events.epoch, events.transaction) < ((select current_event_epoch()), (select event_horizon()))
          order by events.epoch, events.transaction, events.number
          limit :lookRows
        ) as scanned
      ) as seen
      where seen.is_due is not null
    )
    update event_subscriptions
    set
      claimed_until = case when is_due then now() + :startMs::integer * interval '1 millisecond' else claimed_until end,
      epoch = case when is_due then epoch else last[1][1] end,
      transaction = case when is_due then transaction else last[1][2] end,
      number = case when is_due then number else last[1][3] end
    from looked, workspaces
    where event_subscriptions.id = looked.id
      and workspaces.id = event_subscriptions.workspace_id
      and claimed_until <= now()
    returning
      event_subscriptions.id as "subscriptionId", user_slug || '/' || workspace_slug as workspace, event_subscriptions.name,
      looked.is_due as "isDue"
    `,
    { lookRows, startMs },
  )
  return rows.filter(({ isDue }) => isDue).map(({ subscriptionId, workspace, name }) => ({ subscriptionId, workspace, name }))
}
