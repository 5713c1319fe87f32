import { AppError } from '../base/errors.ts'
import { callTarget, type CallTargetDeps } from '../connectors/call-target.ts'
import { DeliveryError } from '../connectors/connector.ts'
import { createOpenCredentials } from '../connectors/target.ts'
import type { Database } from '../db/database.ts'
import { createClaimDue, createRunQueue, type ClaimDue, type RunEnd, type RunQueue } from '../db/side-work.ts'
import { circuitOpenMs } from '../delivery/circuit.ts'
import { eventIdOf, eventPositionOf, eventTypes, goneReceiver, type EventName, type EventPosition } from '../domain/events.ts'
import { decideRetry } from '../domain/retry.ts'
import { retryPolicyOf, workspaceSettings } from '../domain/settings.ts'
import type { KeyRing } from '../security/seal.ts'
import { createEvents, type EventsPage } from './event-log.ts'
import { stopGoneSubscription } from './subscriptions.ts'

// A webhook should store an event and answer.
const requestTimeoutMs = 20_000
// Afterwards, other subscriptions have the place.
const runMs = 20_000
const pageEvents = 100

export interface SendEventsDeps extends Omit<CallTargetDeps, 'openCredentials'> {
  db: Database
  keyRing: KeyRing
}

interface Job extends EventPosition {
  id: string
  workspaceId: string
  workspace: string
  settings: object
  events: EventName[]
  version: number
  attempts: number
  destination: { id: string; connector: string; config: Record<string, unknown> }
  credentialsSealed: Buffer
}

const load = async (db: Database, subscriptionId: string): Promise<Job | undefined> => {
  const { rows } = await db.raw<{ rows: Job[] }>(
    `
    select
      subscription.id, subscription.workspace_id as "workspaceId", user_slug || '/' || workspace_slug as workspace, settings, subscription.events,
      version, attempts, epoch, transaction, number, credentials_sealed as "credentialsSealed",
      jsonb_build_object('id', destinations.id, 'connector', connector_type, 'config', config) as destination
    from event_subscriptions as subscription
    join destinations on destinations.id = subscription.destination_id
    join workspaces on workspaces.id = subscription.workspace_id
    where subscription.id = :subscriptionId
      and is_active
      and deleted_at is null
    `,
    { subscriptionId },
  )
  return rows[0]
}

/** Stores how far a subscription is, unless it has been set to another place. @returns false if it was */
const store = async (
  db: Database,
  { id, version }: Pick<Job, 'id' | 'version'>,
  { position, sent, error, attempts }: Stored,
): Promise<boolean> => {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `
    update event_subscriptions
    set
      epoch = :epoch,
      transaction = :transaction,
      number = :number,
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
}

/** Returns when a failure is repeated: never the last time, since all later events wait behind the one that fails. */
const delayOf = ({ settings }: Job, failures: number, { retryAfterMs }: DeliveryError): number => {
  const policy = { ...retryPolicyOf(workspaceSettings(settings)), maxRetries: Infinity }
  const decision = decideRetry(policy, { failures, remainingMs: Infinity, retryAfterMs }, Math.random())
  return decision.retry ? decision.delayMs : policy.maxIntervalMs
}

/**
 * Creates the activity that sends the events of a subscription, one after the other. A run that is broken off and repeated sends events again
 * that it has sent, with the same ids.
 */
export const createSendEvents = (deps: SendEventsDeps): RunQueue => {
  const { db, keyRing } = deps
  const events = createEvents(db)

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

  const sendRun = async (job: Job, cancelled: AbortSignal): Promise<RunEnd> => {
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
            const isStored = await store(db, job, { position, sent, attempts: attempts + 1, error })
            if (isStored && code === goneReceiver) {
              await stopGoneSubscription(db, job)
              return { status: 'gone' }
            }
            return isStored ? { status: 'retrying', delayMs, error: `${code}: ${message}` } : { status: 'gone' }
          }
          position = eventPositionOf(event.id)
          sent = true
          attempts = 0
          if (performance.now() >= endsAt) {
            return (await store(db, job, { position, sent, attempts })) ? { status: 'more' } : { status: 'gone' }
          }
        }
        position = eventPositionOf(page.nextCursor)
        if (!page.hasMore) return (await store(db, job, { position, sent, attempts: 0 })) ? { status: 'idle' } : { status: 'gone' }
        if (!(await store(db, job, { position, sent, attempts }))) return { status: 'gone' }
      }
    } catch (thrown) {
      if (!cancelled.aborted) throw thrown
      await store(db, job, { position, sent, attempts })
      throw cancelled.reason
    }
  }

  return createRunQueue(db, 'events', async (subscriptionId, _, cancelled) => {
    const job = await load(db, subscriptionId)
    if (!job) return { status: 'gone' }
    const delayMs = await circuitOpenMs(db, job.destination.id)
    if (delayMs !== null) return { status: 'retrying', delayMs, error: 'circuit_open: deliveries to the destination fail' }
    return sendRun(job, cancelled)
  })
}

// Events of other types that one look passes over.
const lookRows = 1_000
/**
 * Claims the subscriptions that have something to send and that no workflow sends. Those before which only events of other types lie are moved
 * behind these.
 */
export const createFindDue = (db: Database): ClaimDue =>
  createClaimDue(
    db,
    'events',
    `
    looked as (
      select subscription.id, workspace_id, name, version, seen.*
      from event_subscriptions as subscription
      cross join lateral (
        select
          bool_or(type = any(subscription.events)) as is_due, min(created_at) as since,
          (array_agg(array[scanned.epoch, scanned.transaction, scanned.number] order by scanned.epoch desc, scanned.transaction desc, scanned.number desc))[1:1] as last
        from (
          select events.epoch, events.transaction, events.number, type, created_at
          from events
          where events.workspace_id = subscription.workspace_id
            and (events.epoch, events.transaction, events.number) > (subscription.epoch, subscription.transaction, subscription.number)
            and (events.epoch, events.transaction) < ((select current_event_epoch()), (select event_horizon()))
          order by events.epoch, events.transaction, events.number
          limit :lookRows
        ) as scanned
      ) as seen
      where is_active
        and subscription.id not in (select id from claimed_queues)
        and seen.is_due is not null
    ), moved as (
      update event_subscriptions
      set epoch = last[1][1], transaction = last[1][2], number = last[1][3]
      from looked
      where event_subscriptions.id = looked.id
        and not looked.is_due
        and event_subscriptions.version = looked.version
    ), due as (
      select id, workspace_id, name, since
      from looked
      where is_due
    )`,
    { lookRows },
  )
