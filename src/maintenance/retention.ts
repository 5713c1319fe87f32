import { idPrefixAt } from '../base/ids.ts'
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import { isLockTimeout } from '../db/errors.ts'
import { listPartitions } from '../db/partitions.ts'
import type { Tier } from '../domain/bounds.ts'
import { auditDaysOf, workspaceSettings, type WorkspaceSettings } from '../domain/settings.ts'
import {
  disownContents,
  mayFind,
  releaseCapturedContents,
  removeAttemptCounters,
  removeDocuments,
  removeEvents,
  removeRows,
} from './retention-statements.ts'

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

/** A workspace, and the time or the id before which something of it has expired. */
interface Expiry {
  workspaceId: string
  before: Date | string
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
