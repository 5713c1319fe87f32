import type { Config } from '../config.ts'
import { workspaceSettings, type WorkspaceSettings } from '../domain/settings.ts'
import { idPrefixAt } from '../ids.ts'
import { isLockTimeout, type Database } from './database.ts'
import { listPartitions } from './partitions.ts'

export type RetentionConfig = Pick<Config, 'RETENTION_BATCH_SIZE' | 'RETENTION_LOCK_TIMEOUT_MS' | 'RETENTION_ATTEMPTS_DAYS'>

interface Rule {
  table: 'captured_bodies' | 'captured_requests' | 'audit_logs' | 'delivery_attempts'
  /** The column of ULIDs that the table is partitioned by: an id tells its row's age. */
  id: 'id' | 'request_id'
  /** Null: indefinitely. */
  days(settings: WorkspaceSettings, config: RetentionConfig): number | null
}

// bodies first: a request without its body is a state that every reader knows
const rules: Rule[] = [
  { table: 'captured_bodies', id: 'request_id', days: (settings) => settings.capturedBodiesDays },
  { table: 'captured_requests', id: 'id', days: (settings) => settings.capturedRequestsDays },
  { table: 'audit_logs', id: 'id', days: (settings) => settings.auditDays },
  { table: 'delivery_attempts', id: 'id', days: (_, config) => config.RETENTION_ATTEMPTS_DAYS },
]

/** What a run has ended. */
export interface Removed {
  rows: Record<Rule['table'], number>
  /** Whole partitions, by name: no workspace needed anything in them. */
  partitions: string[]
  /** Documents whose bytes were let go. */
  contents: number
}

interface Kept {
  id: string
  settings: WorkspaceSettings
}

const dayMs = 86_400_000
const daysBefore = (now: Date, days: number) => new Date(now.getTime() - days * dayMs)

export const createRetention = (db: Database, config: RetentionConfig) => {
  const listWorkspaces = async (): Promise<Kept[]> => {
    const rows = await db('workspaces').select<{ id: string; settings: object }[]>('id', 'settings').orderBy('id')
    return rows.map(({ id, settings }) => ({ id, settings: workspaceSettings(settings) }))
  }

  /** One batch after another: no lock is held for longer than one of them takes. */
  const inBatches = async (signal: AbortSignal, removeBatch: () => Promise<number>): Promise<number> => {
    for (let total = 0; ;) {
      signal.throwIfAborted()
      const count = await removeBatch()
      total += count
      if (count < config.RETENTION_BATCH_SIZE) return total
    }
  }

  /** @returns false where somebody is using the table for longer than we make others wait behind us: the next run will find it */
  const drop = async (partition: string): Promise<boolean> => {
    try {
      await db.transaction(async (trx) => {
        await trx.raw(`select set_config('lock_timeout', ?, true)`, [`${config.RETENTION_LOCK_TIMEOUT_MS}ms`])
        await trx.raw('drop table ??', [partition])
      })
      return true
    } catch (thrown) {
      if (isLockTimeout(thrown)) return false
      throw thrown
    }
  }

  const dropPartitions = async ({ table, days }: Rule, workspaces: Kept[], now: Date): Promise<string[]> => {
    // rows of workspaces that are gone end with the defaults
    const all = [workspaceSettings({}), ...workspaces.map(({ settings }) => settings)].map((settings) => days(settings, config))
    if (all.includes(null)) return []
    const oldest = idPrefixAt(daysBefore(now, Math.max(...all.map(Number))))
    const dropped: string[] = []
    for (const { name, to } of await listPartitions(db, table)) {
      if (to <= oldest && (await drop(name))) dropped.push(name)
    }
    return dropped
  }

  const removeRows = (table: Rule['table'], id: Rule['id'], workspaceId: string, before: Date, signal: AbortSignal) =>
    inBatches(signal, async () => {
      const { rowCount } = await db.raw<{ rowCount: number }>(
        `
        delete from ??
        where ?? in (
          select ??
          from ??
          where workspace_id = ?
            and ?? < ?
          order by ??
          limit ?
        )
          and ?? < ?
        `,
        [table, id, id, table, workspaceId, id, idPrefixAt(before), id, config.RETENTION_BATCH_SIZE, id, idPrefixAt(before)],
      )
      return rowCount
    })

  /** Delivered documents only; the bytes go with the next removal of orphans, so that whoever reads them may finish. */
  const letContentGo = (workspaceId: string, before: Date, signal: AbortSignal) =>
    inBatches(signal, async () => {
      const { rowCount } = await db.raw<{ rowCount: number }>(
        `
        with expired as (
          select id, content_id
          from documents
          where workspace_id = :workspaceId
            and status = 'delivered'
            and content_id is not null
            and received_at < :before
          order by received_at
          limit :limit
          for no key update skip locked
        ), let_go as (
          update documents
          set content_id = null
          from expired
          where documents.id = expired.id
        )
        update contents
        set owned_at = null, created_at = now()
        from expired
        where contents.id = expired.content_id
        `,
        { workspaceId, before, limit: config.RETENTION_BATCH_SIZE },
      )
      return rowCount
    })

  return {
    /** Ends what is older than its workspace keeps it. Two runs at once do no harm; one that is cut off goes on with the next. */
    removeExpired: async (now: Date, signal: AbortSignal): Promise<Removed> => {
      const workspaces = await listWorkspaces()
      const removed: Removed = {
        rows: { captured_bodies: 0, captured_requests: 0, audit_logs: 0, delivery_attempts: 0 },
        partitions: [],
        contents: 0,
      }
      for (const rule of rules) {
        removed.partitions.push(...(await dropPartitions(rule, workspaces, now)))
        for (const { id, settings } of workspaces) {
          const days = rule.days(settings, config)
          if (days !== null) removed.rows[rule.table] += await removeRows(rule.table, rule.id, id, daysBefore(now, days), signal)
        }
      }
      for (const { id, settings } of workspaces) {
        if (settings.contentDays !== null) removed.contents += await letContentGo(id, daysBefore(now, settings.contentDays), signal)
      }
      return removed
    },
  }
}
