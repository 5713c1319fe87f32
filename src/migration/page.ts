import { setTimeout as delay } from 'node:timers/promises'
import pLimit from 'p-limit'
import type { DocumentMigrationProgress } from '../../workflows/messages.ts'
import { quotaOf } from '../archive/quota.ts'
import type { ReceivingRepositories } from '../archive/receiving-repository.ts'
import { AppError, messageOf } from '../base/errors.ts'
import { plainText, storableJson } from '../base/text.ts'
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import type { MigrationVerdict } from '../domain/document-migration.ts'
import { createJudge, type JudgeDeps, type Judged, type MigrationRow, type Run } from './judge.ts'
import { judgedRows, type DocumentMigration } from './migrations.ts'

// A page ends the wait for a pause, and is judged again after a crash.
const pageRows = 50
// Seconds that a page takes at most if the number of documents per minute is limited.
const pageSeconds = 10
// Documents of a migration that are fetched at a time.
const maxConcurrent = 4

export interface MigrationPageDeps extends JudgeDeps {
  receivingRepositories: Pick<ReceivingRepositories, 'find'>
  limits: Pick<Config, 'RELAY_DOCUMENT_MAX_BYTES' | 'RELAY_WORKSPACE_MAX_BYTES'>
}

type StoredMigration = Pick<
  DocumentMigration,
  'id' | 'repoId' | 'upstreamUrl' | 'upstreamContRep' | 'mode' | 'status' | 'documentsPerMinute' | 'rows' | MigrationVerdict
> & {
  workspaceId: string
  userSlug: string
  workspaceSlug: string
}

/** The old content server, or the relay, cannot go on with any document at the moment. */
const cannotGoOn = (reason: string) => new AppError('unavailable', reason)

export const createMigrationPage = ({ receivingRepositories, limits, ...deps }: MigrationPageDeps) => {
  const { db } = deps
  const judge = createJudge(deps)

  const find = async (id: string): Promise<StoredMigration | undefined> => {
    const { rows } = await db.raw<{ rows: StoredMigration[] }>(
      `
      select
        document_migrations.id, repo_id as "repoId", upstream_url as "upstreamUrl", upstream_cont_rep as "upstreamContRep", mode, status, documents_per_minute as "documentsPerMinute", rows,
        found, copied, equal, missing, different, damaged, failed,
        workspace_id as "workspaceId", user_slug as "userSlug", workspace_slug as "workspaceSlug"
      from document_migrations
      join workspaces on workspaces.id = workspace_id
      where document_migrations.id = :id
      `,
      { id },
    )
    return rows[0]
  }

  const nextRows = (id: string, limit: number): Promise<MigrationRow[]> =>
    db('document_migration_rows')
      .select<MigrationRow[]>({
        position: 'position',
        docId: 'doc_id',
        erpObjectType: 'erp_object_type',
        erpObjectId: 'erp_object_id',
        arObject: 'ar_object',
      })
      .where({ document_migration_id: id })
      .whereNull('verdict')
      .orderBy('position')
      .limit(limit)

  /** @throws `AppError` if the repository has no old content server, or another one than when the migration was started */
  const runOf = async (migration: StoredMigration, signal: AbortSignal): Promise<Run> => {
    const { id, mode, repoId, upstreamUrl, upstreamContRep, userSlug, workspaceSlug, workspaceId } = migration
    const repository = await receivingRepositories.find(userSlug, workspaceSlug, repoId)
    const upstream = repository?.upstream
    if (!repository || !upstream) throw cannotGoOn(`the repository ${repoId} has no upstream`)
    if (upstream.url !== upstreamUrl || upstream.cont_rep !== upstreamContRep) {
      throw cannotGoOn(`the repository ${repoId} has another upstream than ${upstreamUrl} with ${upstreamContRep}: cancel, and start again`)
    }
    const { maxBytes, storedBytes } = quotaOf(repository, limits)
    const findKeeper: Run['findKeeper'] = async () => ({ repository, maxBytes: maxBytes - storedBytes })
    const documentMaxBytes = limits.RELAY_DOCUMENT_MAX_BYTES
    return { migrationId: id, mode, workspaceId, repository: { ...repository, upstream }, findKeeper, documentMaxBytes, signal }
  }

  /** Judges rows, several at a time, each not before its turn. @returns what was judged, and why the others were not */
  const judgeAll = async (rows: MigrationRow[], run: Run, perMinute: number | null): Promise<{ judged: Judged[]; failure: unknown }> => {
    const limit = pLimit(maxConcurrent)
    const judged: Judged[] = []
    let failure: unknown
    const one = async (row: MigrationRow) => {
      if (failure !== undefined) return
      try {
        judged.push(await judge(row, run))
      } catch (thrown) {
        failure ??= thrown
      }
    }
    const running: Promise<void>[] = []
    const startedAt = performance.now()
    for (const [index, row] of rows.entries()) {
      const waitMs = perMinute === null ? 0 : startedAt + (index * 60_000) / perMinute - performance.now()
      if (waitMs > 0) await delay(waitMs, undefined, { signal: run.signal })
      if (failure !== undefined) break
      running.push(limit(one, row))
    }
    await Promise.all(running)
    // The next page begins when the turn of its first row has come.
    if (perMinute !== null && failure === undefined) {
      const waitMs = startedAt + (rows.length * 60_000) / perMinute - performance.now()
      if (waitMs > 0) await delay(waitMs, undefined, { signal: run.signal })
    }
    return { judged, failure }
  }

  const progressOf = ({ status, rows, ...verdicts }: StoredMigration): DocumentMigrationProgress => ({
    status,
    rows,
    judgedRows: judgedRows(verdicts),
  })

  /**
   * Judges the next rows of a migration and records their verdicts.
   * @returns the progress, also of a migration that does not run any more
   * @throws if the old content server does not answer: the page is then tried again
   */
  return async (id: string, signal: AbortSignal): Promise<DocumentMigrationProgress> => {
    const migration = await find(id)
    // It was deleted together with its workspace or repository.
    if (!migration) return { status: 'cancelled', rows: 0, judgedRows: 0 }
    if (migration.status !== 'running') return progressOf(migration)
    const { documentsPerMinute } = migration
    const perPage = documentsPerMinute === null ? pageRows : Math.ceil((documentsPerMinute * pageSeconds) / 60)
    const rows = await nextRows(id, Math.min(pageRows, perPage))
    if (rows.length === 0) {
      await db('document_migrations').where({ id, status: 'running' }).update({ status: 'completed', ended_at: db.fn.now() })
    } else {
      const { judged, failure } = await runOf(migration, signal).then(
        (run) => judgeAll(rows, run, documentsPerMinute),
        (thrown: unknown) => ({ judged: [], failure: thrown }),
      )
      // A worker that stops is no reason: another one goes on.
      await recordVerdicts(db, id, judged, failure === undefined || signal.aborted ? null : messageOf(failure))
      if (failure !== undefined) throw failure
    }
    const after = await find(id)
    return after ? progressOf(after) : { status: 'cancelled', rows: 0, judgedRows: 0 }
  }
}

export type MigrationPage = ReturnType<typeof createMigrationPage>

/** Records verdicts and adds them up. A row keeps the verdict that it has. */
const recordVerdicts = async (db: Database, id: string, judged: Judged[], waitingReason: string | null): Promise<void> => {
  await db.raw(
    `
    with judged as (
      update document_migration_rows
      set verdict = given.verdict, reason = given.reason, components = given.components, size_bytes = given."sizeBytes", judged_at = now()
      from jsonb_to_recordset(:judged::jsonb) as given (position bigint, verdict text, reason text, components integer, "sizeBytes" bigint)
      where document_migration_id = :id
        and document_migration_rows.position = given.position
        and document_migration_rows.verdict is null
      returning document_migration_rows.verdict, document_migration_rows.size_bytes
    )
    update document_migrations
    set
      found = found + (select count(*) from judged where verdict = 'found'),
      copied = copied + (select count(*) from judged where verdict = 'copied'),
      equal = equal + (select count(*) from judged where verdict = 'equal'),
      missing = missing + (select count(*) from judged where verdict = 'missing'),
      different = different + (select count(*) from judged where verdict = 'different'),
      damaged = damaged + (select count(*) from judged where verdict = 'damaged'),
      failed = failed + (select count(*) from judged where verdict = 'failed'),
      copied_bytes = copied_bytes + (select coalesce(sum(size_bytes), 0) from judged where verdict = 'copied'),
      waiting_reason = :waitingReason
    where id = :id
    `,
    {
      id,
      judged: storableJson(judged.map((each) => ({ ...each, reason: each.reason === null ? null : plainText(each.reason) }))),
      waitingReason: waitingReason === null ? null : plainText(waitingReason),
    },
  )
}
