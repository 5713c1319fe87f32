import { shareHolds } from '../archive/legal-holds.ts'
import { endOfProven } from '../archive/removable.ts'
import { dayMs } from '../base/day.ts'
import { idPrefixAt } from '../base/ids.ts'
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import { noteDone } from '../db/duties.ts'
import { isLockTimeout } from '../db/errors.ts'
import { createOnItsOwn } from '../db/on-its-own.ts'
import { listPartitions } from '../db/partitions.ts'
import type { Tier } from '../domain/bounds.ts'
import { auditDaysOf, workspaceSettings, type WorkspaceSettings } from '../domain/settings.ts'
import { retentionDuty } from '../observe/aggregates.ts'
import {
  disownContents,
  lockDocuments,
  mayFind,
  releaseCapturedContents,
  removeAttemptCounters,
  removeDocuments,
  removeEvents,
  removeParts,
  removeRows,
} from './retention-statements.ts'

export type RetentionConfig = Pick<Config, 'RETENTION_ATTEMPTS_DAYS' | 'RETENTION_DOCUMENTS_DAYS' | 'RETENTION_INCIDENTS_DAYS'>

/** A number of days, or how the settings of a workspace say it; null keeps things indefinitely. */
type Days = number | null | ((settings: WorkspaceSettings, tier: Tier) => number | null)

interface Rule {
  table: 'captured_bodies' | 'captured_requests' | 'audit_logs' | 'delivery_attempts'
  /** The column of ULIDs that the table is partitioned by. An id contains the time of its row. */
  id: 'id' | 'request_id'
  days(config: RetentionConfig): Days
}

// Bodies come first: every reader can handle a request without its body.
const rules: Rule[] = [
  { table: 'captured_bodies', id: 'request_id', days: () => (settings) => settings.capturedBodiesDays },
  { table: 'captured_requests', id: 'id', days: () => (settings) => settings.capturedRequestsDays },
  { table: 'audit_logs', id: 'id', days: () => auditDaysOf },
  { table: 'delivery_attempts', id: 'id', days: (config) => config.RETENTION_ATTEMPTS_DAYS },
]

/** What retention does one after the other. A step that fails does not stop the others. */
const steps = [
  'idempotency_keys',
  'incidents',
  'captured_bodies',
  'captured_requests',
  'audit_logs',
  'delivery_attempts',
  'contents',
  'documents',
  'events',
  'captured_contents',
] as const
type Step = (typeof steps)[number]

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
  idempotencyKeys: number
  /** Closed incidents, with their notices. */
  incidents: number
  events: number
  /** Steps, or steps of a workspace, that have failed. The next run tries them again. */
  passedOver: number
}

interface WorkspaceRetention {
  id: string
  tier: Tier
  /** Null if this release cannot read them: then nothing is removed that depends on them. */
  settings: WorkspaceSettings | null
  /** The end of the last day of which there is a manifest. */
  provenTo: Date
}

const daysBefore = (now: Date, days: number) => new Date(now.getTime() - days * dayMs)

// Rows per statement: locks and transactions stay short, and far below the limit of a statement.
const defaultBatchRows = 1_000
// Other statements queue behind the wait for the lock to drop a partition.
const defaultDropLockTimeoutMs = 1_000

/** A workspace, and the time or the id before which something of it has expired. */
interface Expiry {
  workspaceId: string
  before: Date | string
  provenTo: Date | string
}

// These remove what is of a day only once its manifest is made.
const provenSteps = new Set<Step>(['contents', 'documents'])
const earlier = (one: Date, other: Date): Date => (one < other ? one : other)

/** A batch of documents to judge, and where it begins. */
type Judging = Expiry & { judgedTo: string; judgedId: string; limit: number }

/** Returns the values of a statement, also the first id of the days without a manifest. */
const provenOf = (values: Judging) => ({ ...values, provenId: idPrefixAt(new Date(values.provenTo)) }) as never

/** How far a run has judged the documents of a workspace. */
interface Judged {
  judged: number
  judgedTo: string | null
  judgedId: string | null
}

/** What a batch has removed, and whether there may be more. */
interface Batch {
  removed: number
  hasMore: boolean
}

export const createRetention = (
  db: Database,
  config: RetentionConfig,
  { batchRows = defaultBatchRows, dropLockTimeoutMs = defaultDropLockTimeoutMs, onItsOwn = createOnItsOwn().onItsOwn } = {},
) => {
  const listWorkspaces = async (now: Date): Promise<WorkspaceRetention[]> => {
    const { rows } = await db.raw<{ rows: { id: string; isCompliance: boolean; settings: object; provenTo: Date }[] }>(
      `
      select
        id, compliance_tier as "isCompliance", settings,
        ${endOfProven} as "provenTo"
      from workspaces
      order by id
      `,
      { now },
    )
    const workspaces: WorkspaceRetention[] = []
    for (const { id, isCompliance, settings, provenTo } of rows) {
      const read = await onItsOwn('retention', { workspace_id: id }, () => workspaceSettings(settings))
      workspaces.push({ id, tier: isCompliance ? 'compliance' : 'standard', settings: read ?? null, provenTo })
    }
    return workspaces
  }

  /** A run: its time, the workspaces, and what it has removed so far. */
  const createRun = (now: Date, signal: AbortSignal, workspaces: WorkspaceRetention[]) => {
    const failed = new Set<Step>()
    let passedOver = workspaces.filter(({ settings }) => settings === null).length

    /** Does a part of a step. A part that fails does not stop the others. */
    const part = async <Result>(step: Step, subject: Record<string, string>, work: () => Promise<Result>): Promise<Result | undefined> => {
      signal.throwIfAborted()
      const done = await onItsOwn('retention', { step, ...subject }, async () => ({ result: await work() }), signal)
      if (done) return done.result
      failed.add(step)
      passedOver += 1
      return undefined
    }

    /** Removes batch by batch, so that locks are short. */
    const inBatches = async (count: (removed: number) => void, removeBatch: () => Promise<Batch>): Promise<void> => {
      for (;;) {
        signal.throwIfAborted()
        const { removed, hasMore } = await removeBatch()
        count(removed)
        if (!hasMore) return
      }
    }

    /** Lists when what a step removes has expired, by workspace. */
    const expiriesOf = (step: Step, days: Days): (Expiry & { before: Date })[] =>
      workspaces.flatMap(({ id: workspaceId, settings, tier, provenTo }) => {
        if (settings === null && typeof days === 'function') {
          failed.add(step)
          return []
        }
        const kept = typeof days === 'function' ? days(settings!, tier) : days
        if (kept === null) return []
        const before = daysBefore(now, kept)
        return [{ workspaceId, provenTo, before: provenSteps.has(step) ? earlier(before, provenTo) : before }]
      })

    /** Does a step in each workspace in which it may find something, each on its own. @returns what was removed */
    const inWorkspaces = async (
      step: Step,
      expiries: Expiry[],
      { condition, rule = {} }: { condition: string; rule?: Partial<Rule> },
      createRemoveBatch: (expiry: Expiry) => () => Promise<Batch>,
    ): Promise<number> => {
      if (expiries.length === 0) return 0
      const latest = expiries.map(({ before }) => before).reduce((one, other) => (one > other ? one : other))
      const found = await part(step, {}, async () => {
        const { rows } = await db.raw<{ rows: Expiry[] }>(
          `select * from jsonb_to_recordset(:expiries::jsonb) as expiry ("workspaceId" text, before text, "provenTo" text) where ${condition}`,
          { ...rule, expiries: JSON.stringify(expiries), latest },
        )
        return rows
      })
      let total = 0
      // One workspace may be the reason why the question about all of them fails.
      for (const expiry of found ?? expiries) {
        await part(step, { workspace_id: expiry.workspaceId }, () => inBatches((removed) => (total += removed), createRemoveBatch(expiry)))
      }
      return total
    }

    /** Returns a function that runs a statement until it changes less than a batch. */
    const repeated =
      (statement: string, rule: Partial<Rule> = {}) =>
      (expiry: Expiry) =>
      async (): Promise<Batch> => {
        const { rowCount } = await db.raw<{ rowCount: number }>(statement, { ...rule, ...expiry, limit: batchRows })
        return { removed: rowCount, hasMore: rowCount >= batchRows }
      }

    /** Returns a function that judges the documents of a workspace, batch by batch, each once. */
    const judging =
      (judge: (values: Judging) => Promise<Judged & { removed: number }>) =>
      (expiry: Expiry): (() => Promise<Batch>) => {
        let position = { judgedTo: '-infinity', judgedId: '' }
        return async () => {
          const { removed, judged, judgedTo, judgedId } = await judge({ ...expiry, ...position, limit: batchRows })
          if (judgedTo !== null && judgedId !== null) position = { judgedTo, judgedId }
          return { removed, hasMore: judged >= batchRows }
        }
      }

    return { part, inBatches, expiriesOf, inWorkspaces, repeated, judging, failed, passedOver: () => passedOver }
  }

  type Run = ReturnType<typeof createRun>

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

  /** Drops the partitions that hold nothing which any workspace keeps: none, if it is not known what one keeps. */
  const dropPartitions = async (run: Run, { table, days }: Rule, workspaces: WorkspaceRetention[], now: Date): Promise<string[]> => {
    const kept = days(config)
    // Rows of deleted workspaces are kept as long as the defaults say.
    const deleted = { tier: 'standard', settings: workspaceSettings({}) } as const
    const all = [deleted, ...workspaces].map(({ settings, tier }) =>
      typeof kept !== 'function' ? kept : settings === null ? null : kept(settings, tier),
    )
    if (all.includes(null)) return []
    const oldest = idPrefixAt(daysBefore(now, Math.max(...all.map(Number))))
    const dropped: string[] = []
    for (const { name, to } of (await run.part(table, {}, () => listPartitions(db, table))) ?? []) {
      if (to > oldest) continue
      if (await run.part(table, { partition: name }, () => drop(name))) dropped.push(name)
    }
    return dropped
  }

  const removeIdempotencyKeys = async (): Promise<Batch> => {
    const expired = db('idempotency_keys')
      .select('workspace_id', 'owner', 'key')
      .where('expires_at', '<=', db.fn.now())
      .orderBy('expires_at')
      .limit(batchRows)
    const removed = await db('idempotency_keys')
      .whereIn(['workspace_id', 'owner', 'key'], expired)
      .where('expires_at', '<=', db.fn.now())
      .delete()
    return { removed, hasMore: removed >= batchRows }
  }

  const removeIncidents = async (now: Date): Promise<Batch> => {
    const before = daysBefore(now, config.RETENTION_INCIDENTS_DAYS)
    const old = db('incidents').select('id').where('closed_at', '<', before).orderBy('closed_at').limit(batchRows)
    const removed = await db('incidents').whereIn('id', old).delete()
    return { removed, hasMore: removed >= batchRows }
  }

  const judgeContents = (values: Judging) =>
    db.transaction(async (trx) => {
      await shareHolds(trx, values.workspaceId)
      const { rows } = await trx.raw<{ rows: (Judged & { removed: number })[] }>(disownContents, provenOf(values))
      return rows[0]!
    })

  const judgeDocuments = (values: Judging) =>
    db.transaction(async (trx) => {
      await shareHolds(trx, values.workspaceId)
      const { rows } = await trx.raw<{ rows: (Judged & { ids: string[] })[] }>(lockDocuments, provenOf(values))
      const { ids, ...judged } = rows[0]!
      if (ids.length > 0) {
        for (const statement of removeParts) await trx.raw(statement, { ids })
        await trx.raw(removeDocuments, { ...values, ids } as never)
      }
      return { ...judged, removed: ids.length }
    })

  /** Begins to measure how late a step is that has never been done, and forgets steps of another release. */
  const noteSteps = async (): Promise<void> => {
    await db('duties')
      .insert(steps.map((step) => ({ name: retentionDuty(step), done_at: db.fn.now() })))
      .onConflict('name')
      .ignore()
    await db('duties').whereLike('name', retentionDuty('%')).whereNotIn('name', steps.map(retentionDuty)).delete()
  }

  return {
    /**
     * Removes everything that is past its retention, by steps, and each step by workspaces: one that fails stops no other. Safe to run
     * concurrently; the next run continues an interrupted one.
     * @throws if the database is away, or the signal aborts
     */
    removeExpired: async (now: Date, signal: AbortSignal): Promise<Removed> => {
      await noteSteps()
      const workspaces = await listWorkspaces(now)
      const run = createRun(now, signal, workspaces)
      const { part, inBatches, expiriesOf, inWorkspaces, repeated, judging } = run
      const removed: Removed = {
        rows: { captured_bodies: 0, captured_requests: 0, audit_logs: 0, delivery_attempts: 0 },
        partitions: [],
        contents: 0,
        documents: 0,
        capturedContents: 0,
        idempotencyKeys: 0,
        incidents: 0,
        events: 0,
        passedOver: 0,
      }
      const end = async (step: Step) => {
        if (!run.failed.has(step)) await noteDone(db, retentionDuty(step))
      }
      /** Does a step that belongs to workspaces. @returns what was removed */
      const remove = async (step: Step, days: Days, condition: string, createRemoveBatch: (expiry: Expiry) => () => Promise<Batch>) => {
        const total = await inWorkspaces(step, expiriesOf(step, days), { condition }, createRemoveBatch)
        await end(step)
        return total
      }

      await part('idempotency_keys', {}, () => inBatches((count) => (removed.idempotencyKeys += count), removeIdempotencyKeys))
      await end('idempotency_keys')
      await part('incidents', {}, () =>
        inBatches(
          (count) => (removed.incidents += count),
          () => removeIncidents(now),
        ),
      )
      await end('incidents')
      for (const rule of rules) {
        const { table, id, days } = rule
        removed.partitions.push(...(await dropPartitions(run, rule, workspaces, now)))
        const expired = expiriesOf(table, days(config))
        const byId = expired.map((expiry) => ({ ...expiry, before: idPrefixAt(expiry.before) }))
        const names = { table, id }
        removed.rows[table] = await inWorkspaces(table, byId, { condition: mayFind.rows, rule: names }, repeated(removeRows, names))
        if (table === 'delivery_attempts') {
          await inWorkspaces(table, expired, { condition: mayFind.attemptCounters }, repeated(removeAttemptCounters))
        }
        await end(table)
      }
      const documentDays = config.RETENTION_DOCUMENTS_DAYS > 0 ? config.RETENTION_DOCUMENTS_DAYS : null
      removed.contents = await remove('contents', ({ contentDays }) => contentDays, mayFind.contents, judging(judgeContents))
      removed.documents = await remove('documents', documentDays, mayFind.documents, judging(judgeDocuments))
      removed.events = await remove('events', ({ eventsDays }) => eventsDays, mayFind.events, repeated(removeEvents))
      removed.capturedContents = await remove(
        'captured_contents',
        ({ capturedBodiesDays }) => capturedBodiesDays,
        mayFind.capturedContents,
        repeated(releaseCapturedContents),
      )
      removed.passedOver = run.passedOver()
      return removed
    },
  }
}
