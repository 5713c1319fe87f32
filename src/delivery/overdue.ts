import type { DocumentKey } from '../../workflows/ids.ts'
import type { Config } from '../config/config.ts'
import type { Database, Transaction } from '../db/database.ts'
import type { DeliveryStatus } from '../domain/delivery-states.ts'
import { nextStuckRun } from './stuck-run.ts'
import type { DeliveryRef } from './transition.ts'

/** An open delivery that should have shown a sign of life. */
export interface Overdue {
  documentId: string
  destinationId: string
  status: DeliveryStatus
  statusSince: Date
  /** Time of the last sign of life, with microseconds. It changes whenever the delivery does. */
  due: string
  revision: number
  isContentKept: boolean
  /** True if an operator has erased the content, as long as the audit log says so. */
  isErased: boolean
  /** What the last check has noted of a run that could not go on: see stuck-run.ts. */
  stuckRun: string | null
  document: DocumentKey
}

/**
 * SQL: true if a delivery is overdue: it is open, the dispatcher has begun it, and it has shown no sign of life for `:ageMs`. The reconciler,
 * the metric, `relay doctor` and the alert use the same rule.
 */
const isOverdue = `
        status in ('pending', 'retrying')
        and begin_at is null
        and greatest(next_attempt_at, checked_at) <= now() - :ageMs::float8 * interval '1 millisecond'`

/** Up to this number, overdue deliveries are counted exactly. */
export const maxCountedOverdue = 10_000

/** Number of deliveries of a full page. */
export const pageSize = 500

/**
 * Returns the time without a sign of life after which a delivery is overdue. Half of the interval: a younger one may still be on its way to
 * Temporal, and the run after the next finds it at the latest.
 */
export const overdueAfterMs = ({ RECONCILE_INTERVAL_MS }: Pick<Config, 'RECONCILE_INTERVAL_MS'>): number => RECONCILE_INTERVAL_MS / 2

interface Position {
  due: string
  documentId: string
  destinationId: string
}

/** Finds the next overdue deliveries, those that have shown no sign of life for the longest time first. */
export const findOverdue = async (db: Database, ageMs: number, after: Position | undefined): Promise<Overdue[]> => {
  const { rows } = await db.raw<{ rows: Overdue[] }>(
    `
    with overdue as materialized (
      select document_id, destination_id, status, status_since, stuck_run, greatest(next_attempt_at, checked_at) as due
      from deliveries
      where ${isOverdue}
        and (greatest(next_attempt_at, checked_at), document_id, destination_id)
          > (:due::timestamptz, :documentId::text collate "C", :destinationId::text collate "C")
      order by greatest(next_attempt_at, checked_at), document_id, destination_id
      limit :pageSize
    )
    select
      document_id as "documentId", destination_id as "destinationId", overdue.status, status_since as "statusSince", due::text,
      revision, content_id is not null as "isContentKept",
      content_id is null and exists (
        select
        from audit_logs
        where audit_logs.workspace_id = documents.workspace_id
          and subject_id = documents.id
          and event = 'document.erased'
        -- Looked up in the index for each. Without it, the planner may read the whole audit log.
        offset 0
      ) as "isErased",
      stuck_run as "stuckRun",
      jsonb_build_object(
        'documentId', document_id, 'workspace', user_slug || '/' || workspace_slug, 'repoId', repo_id, 'docId', doc_id,
        'compId', comp_id) as document
    from overdue
    join documents on documents.id = document_id
    join workspaces on workspaces.id = documents.workspace_id
    order by overdue.due, document_id, destination_id
    `,
    { ageMs, pageSize, ...(after ?? { due: '-infinity', documentId: '', destinationId: '' }) },
  )
  return rows
}

/** An overdue delivery, and what Temporal has said about it. */
export interface Checked extends Overdue {
  /** An operator has paused it. */
  isPaused: boolean
  /** What this check notes of a run that cannot go on. */
  stuckRun: string | null
}

/**
 * Notes that deliveries have been checked. Deliveries that have changed since they were found, or that are being changed, are left out: this is
 * a sign of life. A document is locked before its deliveries, as by every statement that changes some.
 */
export const noteChecked = async (trx: Transaction, deliveries: Checked[]): Promise<DeliveryRef[]> => {
  const { rows } = await trx.raw<{ rows: DeliveryRef[] }>(
    `
    with picked as (
      select document_id, destination_id, "isPaused", "stuckRun"
      from jsonb_to_recordset(:deliveries::jsonb)
        as found ("documentId" text, "destinationId" text, status text, due timestamptz, "isPaused" boolean, "stuckRun" text)
      join documents on documents.id = "documentId"
      join deliveries on document_id = "documentId" and destination_id = "destinationId"
      where deliveries.status = found.status
        and begin_at is null
        and greatest(next_attempt_at, checked_at) = found.due
      order by document_id, destination_id
      for no key update of documents, deliveries skip locked
    )
    update deliveries
    set
      checked_at = clock_timestamp(),
      waiting = case when "isPaused" then 'paused' else nullif(waiting, 'paused') end,
      stuck_run = ${nextStuckRun('picked."stuckRun"')}
    from picked
    where deliveries.document_id = picked.document_id
      and deliveries.destination_id = picked.destination_id
    returning deliveries.document_id as "documentId", deliveries.destination_id as "destinationId"
    `,
    { deliveries: JSON.stringify(deliveries) },
  )
  return rows
}

/** Counts deliveries that the reconciler should have checked twice by now, up to `maxCountedOverdue`. */
export const countOverdue = async (db: Database, config: Pick<Config, 'RECONCILE_INTERVAL_MS'>): Promise<number> => {
  const { rows } = await db.raw<{ rows: { count: number }[] }>(
    `
    select count(*) as count
    from (
      select
      from deliveries
      where ${isOverdue}
      limit :limit
    ) as overdue
    `,
    { ageMs: overdueAfterMs(config) + 2 * config.RECONCILE_INTERVAL_MS, limit: maxCountedOverdue },
  )
  return rows[0]!.count
}
