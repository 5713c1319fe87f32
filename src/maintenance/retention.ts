import { idPrefixAt } from '../base/ids.ts'
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import { isLockTimeout } from '../db/errors.ts'
import { listPartitions } from '../db/partitions.ts'
import type { Tier } from '../domain/bounds.ts'
import { auditDaysOf, workspaceSettings, type WorkspaceSettings } from '../domain/settings.ts'

export type RetentionConfig = Pick<Config, 'RETENTION_ATTEMPTS_DAYS' | 'RETENTION_DOCUMENTS_DAYS' | 'RETENTION_INCIDENTS_DAYS'>

interface Rule {
  table: 'captured_bodies' | 'captured_requests' | 'audit_logs' | 'delivery_attempts'
  /** The column of ULIDs that the table is partitioned by. An id contains the time of its row. */
  id: 'id' | 'request_id'
  /** Retention in days; null keeps rows indefinitely. */
  days(workspace: Pick<WorkspaceRetention, 'settings' | 'tier'>, config: RetentionConfig): number | null
}

// Bodies come first: every reader can handle a request without its body.
const rules: Rule[] = [
  { table: 'captured_bodies', id: 'request_id', days: ({ settings }) => settings.capturedBodiesDays },
  { table: 'captured_requests', id: 'id', days: ({ settings }) => settings.capturedRequestsDays },
  { table: 'audit_logs', id: 'id', days: ({ settings, tier }) => auditDaysOf(settings, tier) },
  { table: 'delivery_attempts', id: 'id', days: (_, config) => config.RETENTION_ATTEMPTS_DAYS },
]

/** Result of a run. */
export interface Removed {
  rows: Record<Rule['table'], number>
  /** Names of dropped partitions, which held nothing that any workspace keeps. */
  partitions: string[]
  /** Documents whose content was removed. */
  contents: number
  /** Documents that were removed with their deliveries. */
  documents: number
  /** Contents without a document that captured bodies no longer refer to. */
  capturedContents: number
  /** Expired idempotency keys. */
  idempotencyKeys: number
  /** Closed incidents, with their notices. */
  incidents: number
  events: number
}

interface WorkspaceRetention {
  id: string
  tier: Tier
  settings: WorkspaceSettings
}

const dayMs = 86_400_000
const daysBefore = (now: Date, days: number) => new Date(now.getTime() - days * dayMs)

// Rows per statement: locks and transactions stay short, and far below the limit of a statement. 500 documents of 3,000,000 have taken 3 s on
// two busy processors.
const defaultBatchRows = 1_000
// Other statements queue behind the wait for the lock to drop a partition.
const defaultDropLockTimeoutMs = 1_000

// Statements that change up to `:limit` rows of a workspace that are from before `:before`.

const removeRows = `
  delete from :table:
  where :id: in (
    select :id:
    from :table:
    where workspace_id = :workspaceId
      and :id: < :before
    order by :id:
    limit :limit
  )
    and :id: < :before
`

/**
 * SQL: nothing is left to be done with a document. It is delivered, goes nowhere, is acknowledged, or all its deliveries are cancelled. An
 * operator could retry the last two, for as long as their content is kept.
 */
const isSettled = (document: string) => `(
      ${document}.status in ('delivered', 'discarded')
      or (${document}.status = 'failed' and (
        ${document}.acknowledged_at is not null
        or not exists (
          select
          from deliveries
          where document_id = ${document}.id
            and status <> 'cancelled'
        )
      ))
    )`

/**
 * Removes events up to the first one that is kept, and notes how far: a reader that has not come so far is told.
 */
const removeEvents = `
  with oldest as (
    select epoch, transaction, number, bool_and(created_at < :before) over (order by epoch, transaction, number) as is_old
    from (
      select epoch, transaction, number, created_at
      from events
      where workspace_id = :workspaceId
      order by epoch, transaction, number
      limit :limit
    ) as first_events
  ), noted as (
    update workspaces
    set events_removed_to = last.id
    from (
      select lpad(to_hex(epoch), 4, '0') || lpad(to_hex(transaction), 12, '0') || lpad(to_hex(number), 12, '0') as id
      from oldest
      where is_old
      order by epoch desc, transaction desc, number desc
      limit 1
    ) as last
    where workspaces.id = :workspaceId
      and last.id > events_removed_to
  )
  delete from events
  using oldest
  where is_old
    and events.workspace_id = :workspaceId
    and events.epoch = oldest.epoch
    and events.transaction = oldest.transaction
    and events.number = oldest.number
`

/** Disowns the content of settled documents. The job remove-orphans removes the bytes later, so that readers may finish. */
const disownContents = `
  with expired as (
    select id, content_id
    from documents
    where workspace_id = :workspaceId
      and status in ('delivered', 'discarded', 'failed')
      and content_id is not null
      and received_at < :before
      and ${isSettled('documents')}
      -- A document of the upstream that was delivered nowhere is kept here only.
      and (origin = 'source' or exists (
        select
        from deliveries
        where document_id = documents.id
      ))
    order by received_at
    limit :limit
    for no key update skip locked
  ), disowned as (
    update documents
    set content_id = null
    from expired
    where documents.id = expired.id
  ), content as (
    -- Locked in the order of their ids, as by the captures that refer to them.
    select contents.id
    from contents
    join expired on expired.content_id = contents.id
    order by contents.id
    for no key update of contents
  )
  update contents
  set owned_at = null, created_at = now()
  from content
  where contents.id = content.id
`

/**
 * Removes settled documents without content, with their deliveries, and the archive documents that have no document left. A document stays
 * while another one of its docId is not settled: if that arrives late, it finds out here that a newer one lies at its path. Removing an
 * archive document that an update has locked, or has just changed, is left out.
 */
const removeDocuments = `
  with expired as (
    select id, archive_document_id, repository_id
    from documents
    where workspace_id = :workspaceId
      and status in ('delivered', 'discarded', 'failed')
      and content_id is null
      and received_at < :before
      and ${isSettled('documents')}
      and not exists (
        select
        from documents as other
        where other.workspace_id = documents.workspace_id
          and other.repo_id = documents.repo_id
          and other.doc_id = documents.doc_id
          and not ${isSettled('other')}
      )
    order by received_at
    limit :limit
    for update skip locked
  ), archive_document as (
    select id
    from archive_documents
    where id in (select archive_document_id from expired)
      and modified_at < :before
      and not exists (
        -- By repository and docId, which have an index for superseded documents, too. With offset 0,
        -- each is looked up. Joined, all documents were read for each.
        select
        from documents
        where workspace_id = :workspaceId
          and repo_id = (select repo_id from repositories where repositories.id = archive_documents.repository_id)
          and doc_id = archive_documents.doc_id
          and archive_document_id = archive_documents.id
          and id not in (select id from expired)
        offset 0
      )
    for update skip locked
  ), removed as (
    delete from archive_documents
    using archive_document
    where archive_documents.id = archive_document.id
    returning archive_documents.repository_id, doc_id, deleted_at
  ), used_again as (
    -- The source system had deleted an earlier document of the docId, and has this one.
    update upstream_deletions
    set by_source = false
    from removed
    where upstream_deletions.repository_id = removed.repository_id
      and upstream_deletions.doc_id = removed.doc_id
      and removed.deleted_at is null
  ), counted as (
    -- A document that was never kept has no archive document, and was not counted.
    insert into repository_counts (repository_id, shard, documents)
    select repository_id, 0, -count(*)
    from expired
    where archive_document_id is not null
    group by repository_id
    on conflict (repository_id, shard) do update
    set documents = repository_counts.documents + excluded.documents
  )
  delete from documents
  using expired
  where documents.id = expired.id
`

/**
 * Releases the contents without a document that captured bodies of a later day do not refer to. The job remove-orphans removes the bytes
 * later, so that readers may finish.
 */
const releaseCapturedContents = `
  with content as (
    select id
    from contents
    where workspace_id = :workspaceId
      and owned_at is null
      and captured_on < (:before::timestamptz at time zone 'UTC')::date
    order by captured_on
    limit :limit
    for no key update skip locked
  )
  update contents
  set captured_on = null, created_at = now()
  from content
  where contents.id = content.id
`

/** Removes the counters of attempts by whole hours, together with the attempts that they count. */
const removeAttemptCounters = `
  delete from counters
  where ctid = any (array(
    select ctid
    from counters
    where workspace_id = :workspaceId
      and kind in ('attempts', 'all_attempts')
      and period in ('hour', 'day')
      and since < date_trunc(period, :before::timestamptz, 'UTC')
    limit :limit
  ))
`

/** A workspace, and the time or the id before which something of it has expired. */
interface Expiry {
  workspaceId: string
  before: Date | string
}

// Conditions, in SQL, under which a statement above may find something in a workspace `expiry` ("workspaceId", before). Most workspaces have
// nothing to remove in most hours, and one statement for all of them takes much less time than one for each.

const endedBefore = `
  select
  from documents
  where workspace_id = expiry."workspaceId"
    and status in ('delivered', 'discarded', 'failed')
    and received_at < expiry.before::timestamptz`

const mayFind = {
  // The latest time lets the planner leave the partitions of later times out.
  rows: `exists (select from :table: where workspace_id = expiry."workspaceId" and :id: < expiry.before and :id: < :latest)`,
  attemptCounters: `exists (
    select
    from counters
    cross join lateral (select date_trunc(period, expiry.before::timestamptz, 'UTC') as start) as first_kept
    where workspace_id = expiry."workspaceId"
      and kind in ('attempts', 'all_attempts')
      and period in ('hour', 'day')
      and since < start
  )`,
  contents: `exists (${endedBefore} and content_id is not null)`,
  documents: `exists (${endedBefore} and content_id is null)`,
  events: `(
    select created_at
    from events
    where workspace_id = expiry."workspaceId"
    order by epoch, transaction, number
    limit 1
  ) < expiry.before::timestamptz`,
  capturedContents: `exists (
    select
    from contents
    where workspace_id = expiry."workspaceId"
      and owned_at is null
      and captured_on < (expiry.before::timestamptz at time zone 'UTC')::date
  )`,
}

export const createRetention = (
  db: Database,
  config: RetentionConfig,
  { batchRows = defaultBatchRows, dropLockTimeoutMs = defaultDropLockTimeoutMs } = {},
) => {
  const listWorkspaces = async (): Promise<WorkspaceRetention[]> => {
    const rows = await db('workspaces')
      .select<{ id: string; isCompliance: boolean; settings: object }[]>('id', 'compliance_tier as isCompliance', 'settings')
      .orderBy('id')
    return rows.map(({ id, isCompliance, settings }) => ({
      id,
      tier: isCompliance ? 'compliance' : 'standard',
      settings: workspaceSettings(settings),
    }))
  }

  /** Removes rows batch by batch, so that locks are short. */
  const inBatches = async (signal: AbortSignal, removeBatch: () => Promise<number>): Promise<number> => {
    for (let total = 0; ;) {
      signal.throwIfAborted()
      const count = await removeBatch()
      total += count
      if (count < batchRows) return total
    }
  }

  /** Drops a partition. @returns false if the table stays in use for longer than the lock timeout; the next run tries again */
  const drop = async (partition: string): Promise<boolean> => {
    try {
      await db.transaction(async (trx) => {
        await trx.raw(`select set_config('lock_timeout', ?, true)`, [`${dropLockTimeoutMs}ms`])
        await trx.raw('drop table ??', [partition])
      })
      return true
    } catch (thrown) {
      if (isLockTimeout(thrown)) return false
      throw thrown
    }
  }

  const dropPartitions = async ({ table, days }: Rule, workspaces: WorkspaceRetention[], now: Date): Promise<string[]> => {
    // Rows of deleted workspaces are kept as long as the defaults say.
    const deleted = { tier: 'standard', settings: workspaceSettings({}) } as const
    const all = [deleted, ...workspaces].map((workspace) => days(workspace, config))
    if (all.includes(null)) return []
    const oldest = idPrefixAt(daysBefore(now, Math.max(...all.map(Number))))
    const dropped: string[] = []
    for (const { name, to } of await listPartitions(db, table)) {
      if (to <= oldest && (await drop(name))) dropped.push(name)
    }
    return dropped
  }

  /** Runs a statement in the workspaces in which it may find something. @returns the number of changed rows */
  const inWorkspaces = async (
    statement: string,
    condition: string,
    expiries: Expiry[],
    signal: AbortSignal,
    rule: Partial<Rule> = {},
  ): Promise<number> => {
    if (expiries.length === 0) return 0
    const latest = expiries.map(({ before }) => before).reduce((one, other) => (one > other ? one : other))
    const { rows } = await db.raw<{ rows: Expiry[] }>(
      `select * from jsonb_to_recordset(:expiries::jsonb) as expiry ("workspaceId" text, before text) where ${condition}`,
      { ...rule, expiries: JSON.stringify(expiries), latest },
    )
    let total = 0
    for (const expiry of rows) {
      total += await inBatches(
        signal,
        async () => (await db.raw<{ rowCount: number }>(statement, { ...rule, ...expiry, limit: batchRows })).rowCount,
      )
    }
    return total
  }

  const removeIdempotencyKeys = (signal: AbortSignal) =>
    inBatches(signal, async () => {
      const expired = db('idempotency_keys')
        .select('workspace_id', 'owner', 'key')
        .where('expires_at', '<=', db.fn.now())
        .orderBy('expires_at')
        .limit(batchRows)
      return db('idempotency_keys').whereIn(['workspace_id', 'owner', 'key'], expired).where('expires_at', '<=', db.fn.now()).delete()
    })

  const removeIncidents = (now: Date, signal: AbortSignal) =>
    inBatches(signal, async () => {
      const before = daysBefore(now, config.RETENTION_INCIDENTS_DAYS)
      const old = db('incidents').select('id').where('closed_at', '<', before).orderBy('closed_at').limit(batchRows)
      return db('incidents').whereIn('id', old).delete()
    })

  return {
    /** Removes everything that is past its retention. Safe to run concurrently; the next run continues an interrupted one. */
    removeExpired: async (now: Date, signal: AbortSignal): Promise<Removed> => {
      const workspaces = await listWorkspaces()
      const removed: Removed = {
        rows: { captured_bodies: 0, captured_requests: 0, audit_logs: 0, delivery_attempts: 0 },
        partitions: [],
        contents: 0,
        documents: 0,
        capturedContents: 0,
        idempotencyKeys: await removeIdempotencyKeys(signal),
        incidents: await removeIncidents(now, signal),
        events: 0,
      }
      for (const rule of rules) {
        const { table, id } = rule
        removed.partitions.push(...(await dropPartitions(rule, workspaces, now)))
        const expired = workspaces.flatMap((workspace) => {
          const days = rule.days(workspace, config)
          return days === null ? [] : [{ workspaceId: workspace.id, before: daysBefore(now, days) }]
        })
        const byId = expired.map(({ workspaceId, before }) => ({ workspaceId, before: idPrefixAt(before) }))
        removed.rows[table] = await inWorkspaces(removeRows, mayFind.rows, byId, signal, { table, id })
        if (table === 'delivery_attempts') await inWorkspaces(removeAttemptCounters, mayFind.attemptCounters, expired, signal)
      }
      const expiriesOf = (daysOf: (settings: WorkspaceSettings) => number | null) =>
        workspaces.flatMap(({ id: workspaceId, settings }) => {
          const days = daysOf(settings)
          return days === null ? [] : [{ workspaceId, before: daysBefore(now, days) }]
        })
      const remove = (statement: string, condition: string, daysOf: (settings: WorkspaceSettings) => number | null) =>
        inWorkspaces(statement, condition, expiriesOf(daysOf), signal)
      const documentDays = config.RETENTION_DOCUMENTS_DAYS > 0 ? config.RETENTION_DOCUMENTS_DAYS : null
      removed.contents = await remove(disownContents, mayFind.contents, ({ contentDays }) => contentDays)
      removed.documents = await remove(removeDocuments, mayFind.documents, () => documentDays)
      removed.events = await remove(removeEvents, mayFind.events, ({ eventsDays }) => eventsDays)
      removed.capturedContents = await remove(releaseCapturedContents, mayFind.capturedContents, (settings) => settings.capturedBodiesDays)
      return removed
    },
  }
}
