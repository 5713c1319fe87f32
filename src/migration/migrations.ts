import { createHash } from 'node:crypto'
import { z } from 'zod'
import { AppError, UserError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { notFound } from '../base/refusals.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database, Transaction } from '../db/database.ts'
import { pageOf, type Page, type PageRequest } from '../db/page.ts'
import { asColumns, columnsAs, type CamelCasedOutput } from '../domain/casing.ts'
import { timestamp } from '../domain/date-range.ts'
import {
  migrationModes,
  migrationStatuses,
  migrationVerdicts,
  type MigrationMode,
  type MigrationStatus,
  type MigrationVerdict,
} from '../domain/document-migration.ts'
import type { StoredUpstream } from '../domain/upstream.ts'
import { readLinkList, type LinkRow } from './link-list.ts'

const linkList = z
  .object({
    name: z.string().describe('The name of the file.'),
    sha256: z.string().describe('Of the file.'),
    rows: z.int().describe('Rows of the repository.'),
    other_rows: z.int().describe('Rows of other repositories, which were left out.'),
  })
  .meta({ id: 'LinkList' })

/** What everybody may know of a migration. */
export const migrationFields = z.object({
  repository_id: z.string(),
  repo_id: z.string(),
  mode: z
    .enum(migrationModes)
    .meta({ id: 'DocumentMigrationMode' })
    .describe('`copy`: documents that are not here are fetched from the upstream. `check`: they are looked for only.'),
  status: z.enum(migrationStatuses).meta({ id: 'DocumentMigrationStatus' }),
  documents_per_minute: z.int().nullable().describe('Null if there is no limit.'),
  lists: z.array(linkList).describe('The exports of link tables.'),
  rows: z.int().describe('Rows of the repository in all lists.'),
  found: z.int().describe('Rows whose document the upstream has, of a migration that only checks.'),
  copied: z.int().describe('Rows whose document was fetched and kept.'),
  equal: z.int().describe('Rows whose document is here as the upstream has it.'),
  missing: z.int().describe('Rows whose document neither has.'),
  different: z.int().describe('Rows whose document the source system has changed here, so that it was not fetched again.'),
  damaged: z.int().describe('Rows whose document the upstream has and does not deliver whole.'),
  failed: z.int().describe('Rows whose document the relay does not accept, such as one that is too large.'),
  copied_bytes: z.int(),
  waiting_reason: z.string().nullable().describe('Why it does not advance, such as an upstream that does not answer.'),
  created_at: timestamp,
  ended_at: timestamp.nullable(),
})

/** A migration, with the old content server that all verdicts are about: that of the repository when the migration was started. */
export type DocumentMigration = CamelCasedOutput<typeof migrationFields> & { id: string; upstreamUrl: string; upstreamContRep: string }

type MigrationList = DocumentMigration['lists'][number]

interface MigrationQuery extends PageRequest {
  repositoryId?: string | undefined
}

/** A file of the source system. */
interface ListFile {
  name: string
  bytes: AsyncIterable<Uint8Array>
}

export interface NewMigration {
  workspaceId: string
  repositoryId: string
  mode: MigrationMode
  documentsPerMinute: number | null
  files: readonly ListFile[]
}

const columns = [
  ...columnsAs('id, repository_id, repo_id, upstream_url, upstream_cont_rep, mode, status, documents_per_minute, lists, rows'),
  ...migrationVerdicts,
  ...columnsAs('copied_bytes, waiting_reason, created_at, ended_at'),
]

const insertedAtOnce = 1_000

/** Returns the number of rows that have a verdict. */
export const judgedRows = (migration: Pick<DocumentMigration, MigrationVerdict>): number =>
  migrationVerdicts.reduce((sum, verdict) => sum + migration[verdict], 0)

export const createDocumentMigrations = (db: Database) => {
  /** @throws `AppError` 404 */
  const find = async (workspaceId: string, id: string): Promise<DocumentMigration> => {
    const found: DocumentMigration | undefined = await db('document_migrations')
      .select<DocumentMigration[]>(columns)
      .where({ workspace_id: workspaceId, id })
      .first()
    if (!found) throw notFound()
    return found
  }

  /** Changes the status. @throws `AppError` 409 if the migration has another one than it may change from */
  const change = async (
    { workspaceId, id, actor }: { workspaceId: string; id: string; actor: AuditActor },
    event: 'paused' | 'resumed' | 'cancelled',
  ): Promise<DocumentMigration> => {
    const { repoId, ...before } = await find(workspaceId, id)
    const { from, to, refusal } = changes[event]
    await db.transaction(async (trx) => {
      const changed = await trx('document_migrations')
        .where({ id })
        .whereIn('status', from)
        .update({ status: to, waiting_reason: null, ended_at: to === 'cancelled' ? trx.fn.now() : null })
      if (changed === 0) throw new AppError('conflict', refusal)
      await record(trx, {
        workspaceId,
        event: `document_migration.${event}`,
        subjectId: id,
        description: `The migration of documents of repository ${repoId} was ${event} after ${judgedRows(before)} of ${before.rows} rows.`,
        metadata: { repo_id: repoId, rows: before.rows, judged_rows: judgedRows(before) },
        actor,
      })
    })
    return find(workspaceId, id)
  }

  return {
    /** Returns the first docId of the list with which documents of a repository were last migrated, if there is one. */
    firstListed: async (repositoryId: string): Promise<string | undefined> => {
      const last = db('document_migrations').select('id').where({ repository_id: repositoryId }).orderBy('id', 'desc').limit(1)
      const row: { docId: string } | undefined = await db('document_migration_rows')
        .select('doc_id as docId')
        .where('document_migration_id', last)
        .orderBy('position')
        .first()
      return row?.docId
    },

    find,

    /** Lists migrations, newest first. */
    list: async (workspaceId: string, { repositoryId, ...page }: MigrationQuery): Promise<Page<DocumentMigration>> => {
      const query = db('document_migrations').where({ workspace_id: workspaceId }).orderBy('id', 'desc')
      if (repositoryId !== undefined) void query.where({ repository_id: repositoryId })
      return pageOf<DocumentMigration>(query, columns, page)
    },

    /**
     * Reads the lists and inserts a migration, which a maintenance job starts.
     * @throws `AppError` 404 if there is no such repository; `UserError` if it has no upstream, or a list cannot be read or has no row of the repository: then nothing is
     *   inserted
     */
    start: async (migration: NewMigration, actor: AuditActor): Promise<DocumentMigration> => {
      const { workspaceId, repositoryId, mode, documentsPerMinute, files } = migration
      const id = newId()
      await db.transaction(async (trx) => {
        const repository: { repoId: string; upstream: StoredUpstream | null } | undefined = await trx('repositories')
          .select('repo_id as repoId', 'upstream')
          .where({ workspace_id: workspaceId, id: repositoryId })
          .whereNull('deleted_at')
          .first()
        if (!repository) throw notFound()
        const { repoId, upstream } = repository
        if (!upstream) throw new UserError(`Repository ${repoId} has no upstream: save the address of the old content server first.`)
        await trx('document_migrations').insert({
          ...asColumns({ id, workspaceId, repositoryId, repoId, mode, documentsPerMinute }),
          upstream_url: upstream.url,
          upstream_cont_rep: upstream.cont_rep,
          lists: '[]',
          rows: 0,
        })
        const { lists, rows } = await insertLists(trx, id, repoId, files)
        await trx('document_migrations')
          .where({ id })
          .update({ lists: JSON.stringify(lists), rows })
        await record(trx, {
          workspaceId,
          event: 'document_migration.started',
          subjectId: id,
          description: `A migration of documents of repository ${repoId} was started, with ${rows} rows of ${lists.length} lists.`,
          metadata: { repo_id: repoId, mode, rows, lists: lists.map(({ name, sha256, rows: own }) => ({ name, sha256, rows: own })) },
          actor,
        })
      })
      return find(workspaceId, id)
    },

    /** Stops a migration before its next documents, so that it can be resumed. */
    pause: (request: Parameters<typeof change>[0]) => change(request, 'paused'),
    resume: (request: Parameters<typeof change>[0]) => change(request, 'resumed'),
    /** Ends a migration before its next documents. What it has copied stays. */
    cancel: (request: Parameters<typeof change>[0]) => change(request, 'cancelled'),
  }
}

export type DocumentMigrations = ReturnType<typeof createDocumentMigrations>

const changes = {
  paused: { from: ['running'], to: 'paused', refusal: 'This migration does not run.' },
  resumed: { from: ['paused'], to: 'running', refusal: 'This migration is not paused.' },
  cancelled: { from: ['running', 'paused'], to: 'cancelled', refusal: 'This migration has already ended.' },
} as const satisfies Record<string, { from: MigrationStatus[]; to: MigrationStatus; refusal: string }>

/** Inserts the rows of the repository. @throws `UserError` if there are none */
const insertLists = async (
  trx: Transaction,
  migrationId: string,
  repoId: string,
  files: readonly ListFile[],
): Promise<{ lists: MigrationList[]; rows: number }> => {
  const lists: MigrationList[] = []
  const others = new Set<string>()
  let position = 0
  for (const [index, { name, bytes }] of files.entries()) {
    const hash = createHash('sha256')
    const list: MigrationList = { name, sha256: '', rows: 0, otherRows: 0 }
    let batch: (LinkRow & { position: number })[] = []
    const insert = async () => {
      if (batch.length > 0) await insertRows(trx, migrationId, index, batch)
      batch = []
    }
    for await (const row of readLinkList(hashed(bytes, hash))) {
      if (row.repoId !== null && row.repoId !== repoId) {
        list.otherRows += 1
        if (others.size < 10) others.add(row.repoId)
        continue
      }
      list.rows += 1
      position += 1
      batch.push({ ...row, position })
      if (batch.length === insertedAtOnce) await insert()
    }
    await insert()
    lists.push({ ...list, sha256: hash.digest('hex') })
  }
  if (position === 0) {
    const found = others.size === 0 ? 'They have no rows.' : `They have rows of: ${[...others].join(', ')}.`
    throw new UserError(`The lists have no row of repository ${repoId}. ${found}`)
  }
  return { lists, rows: position }
}

async function* hashed(bytes: AsyncIterable<Uint8Array>, hash: ReturnType<typeof createHash>): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const chunk of bytes) {
    hash.update(chunk)
    yield chunk
  }
}

const insertRows = (trx: Transaction, migrationId: string, list: number, rows: readonly (LinkRow & { position: number })[]) =>
  trx.raw(
    `
    insert into document_migration_rows
      (document_migration_id, position, list, line, doc_id, erp_object_type, erp_object_id, ar_object, archived_on, barcode)
    select :migrationId, position, :list, line, "docId", "objectType", "objectId", "arObject", "archivedOn", barcode
    from jsonb_to_recordset(:rows::jsonb) as row (
      position bigint, line bigint, "docId" text, "objectType" text, "objectId" text, "arObject" text, "archivedOn" date, barcode text
    )
    `,
    { migrationId, list, rows: JSON.stringify(rows) },
  )
