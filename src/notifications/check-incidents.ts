import { isDeepStrictEqual } from 'node:util'
import { consoleUrlOf } from '../base/console-url.ts'
import { newId } from '../base/ids.ts'
import { storableJson } from '../base/text.ts'
import type { Config } from '../config/config.ts'
import { recordAll } from '../db/audit.ts'
import { rowsPerInsert, type Database, type Transaction } from '../db/database.ts'
import { createOnItsOwn, type OnItsOwn } from '../db/on-its-own.ts'
import { addMessages, type StartNotice } from '../db/outbox.ts'
import { toCamelCase, toSnakeCase } from '../domain/casing.ts'
import { incidentEventNames, noticeData, type IncidentEvent, type NoticeData, type Transition } from '../domain/notices.ts'
import {
  conditionLimits,
  detailsSchema,
  findOperatorWorkspace,
  findWatched,
  type Condition,
  type ConditionConfig,
  type ConditionLimits,
  type IncidentDetails,
  type FindConditions,
  type Watched,
} from './condition.ts'
import { findHoldingConnections } from './connection-conditions.ts'
import { findExpiringCredentials, findFailedDeliveries, findFailingDestinations } from './destination-conditions.ts'
import { findFailingEnrichments } from './enrichment-conditions.ts'
import { findAlteredContents } from './home-conditions.ts'
import { findRefusedSources } from './refused-sources.ts'
import { findExpiringCertificates, findFailingUpstreams, findNotConnected, findSilentSources } from './repository-conditions.ts'
import { findFailingSubscriptions } from './subscription-conditions.ts'
import { consolePathOf, summaryOf } from './text.ts'

/** Result of a check. */
export interface Checked {
  opened: number
  closed: number
  notices: number
  /** Committed messages that start the workflows of the notices, and of notices whose workflow was lost. */
  messages: StartNotice[]
}

interface Incident {
  id: string
  workspaceId: string
  event: IncidentEvent
  subject: string
  count: number
  details: IncidentDetails
}

// Without undefined values, as the database returns it.
const stored = (details: IncidentDetails) => toSnakeCase(detailsSchema, details)

// Maximum duration of one attempt to send a notice.
const attemptTimeoutMs = 60_000
// A notice whose attempt is due for this long has lost its workflow. The margin is the time for which its message may wait in the outbox.
const overdueAfterMs = attemptTimeoutMs + 30_000
// Incidents of one kind that a check announces. The next check announces the rest.
const maxNoticesPerCheck = 1_000

const nothing: Checked = { opened: 0, closed: 0, notices: 0, messages: [] }

/**
 * Opens, updates and closes incidents, and writes a notice for each transition and notification, together with the message that starts its
 * delivery. Each kind of incident is checked on its own, in a transaction of its own. Of two checks of a kind at the same time, one does
 * nothing.
 */
export const createCheckIncidents = (
  db: Database,
  config: ConditionConfig & Pick<Config, 'RELAY_OPERATOR_WORKSPACE'>,
  { onItsOwn = createOnItsOwn().onItsOwn, ...changedLimits }: Partial<ConditionLimits & { onItsOwn: OnItsOwn }> = {},
) => {
  const limits: ConditionLimits = { ...conditionLimits, ...changedLimits }

  /** Returns true if a notification is active, or something of an earlier one is left. */
  const isNeeded = async (): Promise<boolean> => {
    const { rows } = await db.raw<{ rows: { needed: boolean }[] }>(`
      select
        exists (select from notifications where is_active)
        or exists (select from incidents where closed_at is null)
        or exists (select from notices where status = 'pending') as needed
    `)
    return rows[0]!.needed
  }

  const findOpen = async (trx: Transaction, event: IncidentEvent): Promise<Map<string, Incident>> => {
    const rows: Incident[] = await trx('incidents')
      .select('id', 'workspace_id as workspaceId', 'event', 'subject', 'count', 'details')
      .where({ event })
      .whereNull('closed_at')
    return new Map(rows.map((row) => [keyOf(row), row]))
  }

  const open = async (trx: Transaction, event: IncidentEvent, conditions: Condition[], now: Date): Promise<void> => {
    if (conditions.length === 0) return
    const opened = conditions.map((condition) => ({ ...condition, id: newId(), event }))
    await trx.batchInsert(
      'incidents',
      opened.map(({ id, workspaceId, subject, count, since, details }) => ({
        id,
        workspace_id: workspaceId,
        event,
        subject,
        count,
        details: storableJson(stored(details)),
        opened_at: since === null || since > now ? now : since,
        last_seen_at: now,
      })),
      rowsPerInsert,
    )
    await recordTransitions(trx, opened, 'opened')
  }

  const update = async (trx: Transaction, changed: { id: string; count: number; details: unknown }[], now: Date): Promise<void> => {
    if (changed.length === 0) return
    await trx.raw(
      `
      update incidents
      set count = changed.count, details = changed.details, last_seen_at = :now
      from jsonb_to_recordset(:changed::jsonb) as changed (id text, count bigint, details jsonb)
      where incidents.id = changed.id
      `,
      { changed: storableJson(changed), now },
    )
  }

  const close = async (trx: Transaction, incidents: Incident[], now: Date): Promise<void> => {
    if (incidents.length === 0) return
    await trx('incidents').whereIn('id', idsOf(incidents)).update({ closed_at: now })
    await recordTransitions(trx, incidents, 'closed')
  }

  const recordTransitions = (trx: Transaction, incidents: Incident[], transition: Transition) =>
    recordAll(
      trx,
      incidents.map((incident) => ({
        workspaceId: incident.workspaceId,
        event: `incident.${transition}`,
        subjectId: incident.id,
        description: summaryOf(incident.event, transition, { ...incident.details, count: countText(incident) }),
        metadata: { event: incident.event, subject: incident.subject, count: incident.count },
      })),
    )

  const readDetails = <Row extends Incident>(rows: Row[]): Row[] =>
    rows.map((row) => ({ ...row, details: toCamelCase(detailsSchema, row.details as never) }))

  // The failed attempts of a destination or subscription are counted there, and documents of an enrichment and refused requests up to a limit of their own.
  const countText = ({ event, count }: Pick<Incident, 'event' | 'count'>) =>
    !['destination.failing', 'enrichment.failing', 'event_subscription.failing', 'source.refused'].includes(event) &&
    count >= limits.maxCount
      ? `at least ${count}`
      : String(count)

  /** A notice to write: an incident, and the notification that announces its beginning or its end. */
  interface Due extends Incident {
    workspace: string
    notificationId: string
    /** That of the notification: the operator's, if it announces what happens in another one. */
    noticeWorkspace: { id: string; name: string }
    openedAt: Date
    closedAt: Date | null
  }

  const dueColumns = `
    incidents.id, incidents.workspace_id as "workspaceId", incidents.event, subject, count, details, opened_at as "openedAt",
    closed_at as "closedAt", notifications.id as "notificationId", user_slug || '/' || workspace_slug as workspace,
    (
      select jsonb_build_object('id', id, 'name', user_slug || '/' || workspace_slug)
      from workspaces as own
      where own.id = notifications.workspace_id
    ) as "noticeWorkspace"
  `
  const announcing = `
    notifications.workspace_id in (incidents.workspace_id, :operatorWorkspaceId) and is_active and incidents.event = any (events)`

  /**
   * Reads the notices of one incident. `offset 0` keeps the planner from reading those of a notification instead, which are all, wherever it
   * expects few: four thousand incidents took 7 seconds.
   */
  const noticesOf = (incident: string) =>
    `lateral (select notification_id, created_at from notices where incident_id = ${incident}.id offset 0) as notices`

  /**
   * Finds the open incidents that are not announced, unless the notification waits for longer silence, or is to be quiet about them. Both
   * look-ups are made for each incident (`offset 0`).
   */
  const findUnannounced = async (trx: Transaction, event: IncidentEvent, operatorWorkspaceId: string | null, now: Date): Promise<Due[]> => {
    const { rows } = await trx.raw<{ rows: Due[] }>(
      `
      select ${dueColumns}
      from incidents
      join notifications on ${announcing}
      join workspaces on workspaces.id = incidents.workspace_id
      where closed_at is null
        and incidents.event = :event
        and (
          incidents.event <> 'source.silent'
          or (details ->> 'last_request_at')::timestamptz <= :now::timestamptz - silence_hours * interval '1 hour'
        )
        and not exists (
          select
          from ${noticesOf('incidents')}
          where notification_id = notifications.id
          offset 0
        )
        and not exists (
          select
          from incidents as earlier, ${noticesOf('earlier')}
          where earlier.workspace_id = incidents.workspace_id
            and earlier.event = incidents.event
            and earlier.subject = incidents.subject
            and notification_id = notifications.id
            and notices.created_at > :now::timestamptz - quiet_seconds * interval '1 second'
          offset 0
        )
      order by incidents.id
      limit :limit
      `,
      { event, operatorWorkspaceId, now, limit: maxNoticesPerCheck },
    )
    return readDetails(rows)
  }

  /** Finds the notifications that have announced the beginning of incidents, which have just been closed. */
  const findRecovered = async (trx: Transaction, incidents: Incident[], operatorWorkspaceId: string | null): Promise<Due[]> => {
    if (incidents.length === 0) return []
    const { rows } = await trx.raw<{ rows: Due[] }>(
      `
      select ${dueColumns}
      from notices
      join incidents on incidents.id = incident_id
      join notifications on notifications.id = notification_id and ${announcing}
      join workspaces on workspaces.id = incidents.workspace_id
      where incident_id = any (:ids)
        and transition = 'opened'
      order by incidents.id
      `,
      { ids: idsOf(incidents), operatorWorkspaceId },
    )
    return readDetails(rows)
  }

  const write = async (trx: Transaction, due: Due[], transition: Transition, now: Date): Promise<StartNotice[]> => {
    if (due.length === 0) return []
    const notices = due.map((incident) => ({ ...incident, noticeId: newId(), data: dataOf(incident, transition) }))
    await trx.batchInsert(
      'notices',
      notices.map(({ noticeId, noticeWorkspace, notificationId, id, data }) => ({
        id: noticeId,
        workspace_id: noticeWorkspace.id,
        notification_id: notificationId,
        incident_id: id,
        transition,
        data: storableJson(toSnakeCase(noticeData, data)),
        next_attempt_at: now,
        created_at: now,
      })),
      rowsPerInsert,
    )
    const messages = notices.map(({ noticeId, noticeWorkspace }) => startOf(noticeId, noticeWorkspace.name))
    await addMessages(trx, messages)
    return messages
  }

  const dataOf = ({ id, workspace, event, count, details, openedAt, closedAt }: Due, transition: Transition): NoticeData => ({
    workspace,
    incidentId: id,
    summary: summaryOf(event, transition, { ...details, count: countText({ event, count }) }),
    openedAt: openedAt.toISOString(),
    closedAt: closedAt?.toISOString(),
    consoleUrl: consoleUrlOf(config.RELAY_BASE_URL, consolePathOf(event, details), workspace),
    count,
    ...details,
  })

  const startOf = (noticeId: string, workspace: string): StartNotice => ({
    kind: 'startNotice',
    input: { noticeId, workspace, attemptTimeoutMs },
  })

  /** Finds the notices whose workflow should have made an attempt by now. Starting one that runs has no effect. */
  const findOverdue = async (now: Date): Promise<StartNotice[]> => {
    const { rows } = await db.raw<{ rows: { id: string; workspace: string }[] }>(
      `
      select notices.id, user_slug || '/' || workspace_slug as workspace
      from notices
      join workspaces on workspaces.id = workspace_id
      where status = 'pending'
        and next_attempt_at < :now::timestamptz - :ageMs::bigint * interval '1 millisecond'
      order by next_attempt_at
      limit :limit
      `,
      { now, ageMs: overdueAfterMs, limit: maxNoticesPerCheck },
    )
    return rows.map(({ id, workspace }) => startOf(id, workspace))
  }

  /** @param watched undefined if no active notification names the event: its incidents are closed */
  const check = async (trx: Transaction, event: IncidentEvent, watched: Watched | undefined, now: Date): Promise<Checked> => {
    const openIncidents = await findOpen(trx, event)
    const conditions = watched ? await findConditions[event](trx, { ...config, ...limits, ...watched }, now) : []
    const operatorWorkspaceId = watched?.operatorWorkspaceId ?? null
    const keys = conditions.map((condition) => keyOf({ ...condition, event }))
    const added = conditions.filter((_, index) => !openIncidents.has(keys[index]!))
    const changed = conditions.flatMap(({ count, details }, index) => {
      const known = openIncidents.get(keys[index]!)
      const wanted = stored(details)
      return known && (known.count !== count || !isDeepStrictEqual(known.details, wanted)) ? [{ id: known.id, count, details: wanted }] : []
    })
    await open(trx, event, added, now)
    await update(trx, changed, now)
    for (const key of keys) openIncidents.delete(key)
    const ended = readDetails([...openIncidents.values()])
    await close(trx, ended, now)
    const messages = [
      ...(await write(trx, await findUnannounced(trx, event, operatorWorkspaceId, now), 'opened', now)),
      ...(await write(trx, await findRecovered(trx, ended, operatorWorkspaceId), 'closed', now)),
    ]
    return { opened: added.length, closed: ended.length, notices: messages.length, messages }
  }

  const checkAlone = (event: IncidentEvent, watched: Watched | undefined, now: Date): Promise<Checked> =>
    db.transaction(async (trx) => {
      const { rows } = await trx.raw<{ rows: { locked: boolean }[] }>('select pg_try_advisory_xact_lock(hashtext(?)) as locked', [
        `incidents/${event}`,
      ])
      return rows[0]!.locked ? check(trx, event, watched, now) : nothing
    })

  /** @param now the time of the check, by the workflow's clock. An incident begins at it if no record says when it began. */
  return async (now: Date): Promise<Checked> => {
    if (!(await isNeeded())) return nothing
    const watched = await findWatched(db, await findOperatorWorkspace(db, config))
    let total = nothing
    for (const event of incidentEventNames) {
      const checked = await onItsOwn('incidents', { event }, () => checkAlone(event, watched.get(event), now))
      if (checked) total = sumOf(total, checked)
    }
    return { ...total, messages: [...total.messages, ...(await findOverdue(now))] }
  }
}

const sumOf = (one: Checked, other: Checked): Checked => ({
  opened: one.opened + other.opened,
  closed: one.closed + other.closed,
  notices: one.notices + other.notices,
  messages: [...one.messages, ...other.messages],
})

export type CheckIncidents = ReturnType<typeof createCheckIncidents>

const keyOf = ({ workspaceId, event, subject }: Pick<Incident, 'workspaceId' | 'event' | 'subject'>) => `${event}/${workspaceId}/${subject}`

const idsOf = (incidents: Incident[]) => incidents.map(({ id }) => id)

/** Describes a check for operators. */
export const describeChecked = ({ opened, closed, notices }: Checked): string =>
  `${opened} incidents opened, ${closed} closed, ${notices} notices written`

/** Finds what each kind of incident exists for, in the workspaces with an active notification for it. */
const findConditions: Record<IncidentEvent, FindConditions> = {
  'destination.failing': findFailingDestinations,
  'delivery.failed': findFailedDeliveries,
  'source.silent': findSilentSources,
  'source.refused': findRefusedSources,
  'certificate.expiring': async (...args) => [...(await findExpiringCertificates(...args)), ...(await findExpiringCredentials(...args))],
  'repository.not_connected': findNotConnected,
  'connection.holding': findHoldingConnections,
  'enrichment.failing': findFailingEnrichments,
  'upstream.failing': findFailingUpstreams,
  'content.altered': findAlteredContents,
  'event_subscription.failing': findFailingSubscriptions,
}
