import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { access, constants, readFile, writeFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { stringify } from 'csv-stringify/sync'
import { countOf } from '../base/count-of.ts'
import { messageOf, UserError } from '../base/errors.ts'
import { systemActor } from '../db/audit.ts'
import type { Database } from '../db/database.ts'
import { createInstallation } from '../db/installation.ts'
import { snakeCased } from '../domain/casing.ts'
import { migrationVerdicts, type MigrationMode, type MigrationVerdict } from '../domain/document-migration.ts'
import { csvOptions, type Separator } from '../http/attachments.ts'
import { createDocumentMigrations, judgedRows, type DocumentMigration } from '../migration/migrations.ts'
import { reportOf, type ReportRow } from '../migration/report.ts'
import { openSigningKey } from '../migration/signing-key.ts'
import { verifyReport, type VerifiedReport } from '../migration/verify-report.ts'
import { createRepositories } from '../routing/repositories.ts'
import type { KeyRing } from '../security/seal.ts'
import { findWorkspace } from '../workspace/administration.ts'

/** A migration with the workspace that it belongs to. */
interface Located {
  workspaceId: string
  workspace: string
  migration: DocumentMigration
}

/** @throws `UserError` if there is no such migration */
const locate = async (db: Database, id: string): Promise<Located> => {
  const found: { workspaceId: string; userSlug: string; workspaceSlug: string } | undefined = await db('document_migrations')
    .join('workspaces', 'workspaces.id', 'workspace_id')
    .select({ workspaceId: 'workspaces.id', userSlug: 'user_slug', workspaceSlug: 'workspace_slug' })
    .where({ 'document_migrations.id': id })
    .first()
  if (!found) throw new UserError(`There is no migration ${id}. List them with: relay migrate-documents list USER/WORKSPACE`)
  const migration = await createDocumentMigrations(db).find(found.workspaceId, id)
  return { workspaceId: found.workspaceId, workspace: `${found.userSlug}/${found.workspaceSlug}`, migration }
}

export interface StartOptions {
  workspace: string
  repoId: string
  paths: readonly string[]
  mode: MigrationMode
  documentsPerMinute: number | null
}

/** `relay migrate-documents start`. @throws `UserError` if the repository does not exist, has no upstream, or a list cannot be read */
export const startMigration = async (
  db: Database,
  { workspace: name, repoId, paths, ...options }: StartOptions,
): Promise<DocumentMigration> => {
  const workspace = await findWorkspace(db, name)
  const repository = await createRepositories(db).findByRepoId(workspace.id, repoId)
  if (!repository) throw new UserError(`Workspace ${name} has no repository ${repoId}.`)
  for (const path of paths) await requireFile(path)
  const files = paths.map((path) => ({ name: basename(path), bytes: createReadStream(path) as AsyncIterable<Uint8Array> }))
  const request = { ...options, workspaceId: workspace.id, repositoryId: repository.id, files }
  return createDocumentMigrations(db).start(request, systemActor)
}

/** @throws `UserError` if there is no such file, or it cannot be read */
const requireFile = (path: string): Promise<void> =>
  access(path, constants.R_OK).catch((thrown: unknown) => {
    throw new UserError(`${path} cannot be read: ${messageOf(thrown)}`)
  })

/** `relay migrate-documents list`, the newest ones. */
export const listMigrations = async (db: Database, name: string): Promise<DocumentMigration[]> => {
  const { id } = await findWorkspace(db, name)
  return (await createDocumentMigrations(db).list(id, { page: 1, perPage: 100 })).items
}

/** `relay migrate-documents pause`, `resume` and `cancel`. @throws `AppError` 409 if the migration is in another state */
export const changeMigration = async (db: Database, id: string, verb: 'pause' | 'resume' | 'cancel'): Promise<DocumentMigration> => {
  const { workspaceId } = await locate(db, id)
  return createDocumentMigrations(db)[verb]({ workspaceId, id, actor: systemActor })
}

export const showMigration = async (db: Database, id: string): Promise<DocumentMigration> => (await locate(db, id)).migration

const refreshMs = 2_000

/** Watches a migration until it does not run. @param onProgress is called when it has advanced */
export const followMigration = async (
  db: Database,
  id: string,
  onProgress: (migration: DocumentMigration) => void,
): Promise<DocumentMigration> => {
  for (let shown = ''; ;) {
    const migration = await showMigration(db, id)
    const state = JSON.stringify(migration)
    if (state !== shown) onProgress(migration)
    if (migration.status !== 'running') return migration
    shown = state
    await sleep(refreshMs)
  }
}

/** Passes the lines of the signed report to `write`. */
export const writeReport = async (
  db: Database,
  keyRing: KeyRing,
  id: string,
  write: (line: string) => void | Promise<void>,
): Promise<void> => {
  const { migration, workspace } = await locate(db, id)
  const key = await openSigningKey(db, keyRing)
  const subject = { migration, workspace, installationId: await createInstallation(db).id() }
  for await (const line of reportOf(db, subject, key)) await write(line)
}

/** `relay migrate-documents report`. @param output path of a file that does not exist yet; without it, the report goes to standard output */
export const saveReport = async (db: Database, keyRing: KeyRing, id: string, output: string | undefined): Promise<void> => {
  const stream = output === undefined ? process.stdout : createWriteStream(output, { flags: 'wx' })
  if (output !== undefined) {
    await once(stream, 'open').catch((thrown: unknown) => {
      throw new UserError(`${output} cannot be written: ${messageOf(thrown)}`)
    })
  }
  await writeReport(db, keyRing, id, async (line) => {
    if (!stream.write(line)) await once(stream, 'drain')
  })
  if (output === undefined) return
  stream.end()
  await once(stream, 'close')
}

/** `relay migrate-documents verify`. @param keyPath path of the public key in PEM */
export const verifyFile = async (report: string, keyPath: string | undefined): Promise<VerifiedReport> => {
  for (const path of [report, keyPath]) if (path !== undefined) await requireFile(path)
  return verifyReport(report, keyPath === undefined ? undefined : await readFile(keyPath, 'utf8'))
}

const barCharacters = 30

/** Returns one line: `[######----] 512 of 1000 rows (51 %): 500 copied, 12 equal`. */
export const progressLine = (migration: DocumentMigration): string => {
  const { rows, status, waitingReason } = migration
  const judged = judgedRows(migration)
  const done = rows === 0 ? 1 : judged / rows
  const bar = '#'.repeat(Math.floor(done * barCharacters)).padEnd(barCharacters, '-')
  const waiting = waitingReason === null ? '' : `; waiting: ${waitingReason}`
  return `[${bar}] ${judged} of ${rows} rows (${Math.floor(done * 100)} %)${verdictsOf(migration)}${status === 'running' ? '' : `; ${status}`}${waiting}`
}

const verdictsOf = (counts: Record<MigrationVerdict, number>): string => {
  const counted = migrationVerdicts.filter((verdict) => counts[verdict] > 0).map((verdict) => `${counts[verdict]} ${verdict}`)
  return counted.length === 0 ? '' : `: ${counted.join(', ')}`
}

/** Returns a migration as JSON shows it: without its upstream, which is that of the repository. */
export const presentMigration = (migration: DocumentMigration) => {
  const { repositoryId: _, upstreamUrl: __, upstreamContRep: ___, ...shown } = migration
  return snakeCased(shown)
}

/** Returns lines for people. */
export const describeMigration = (migration: DocumentMigration): string[] => [
  `Migration ${migration.id} of repository ${migration.repoId}: ${migration.status}`,
  progressLine(migration),
  ...migration.lists.map(
    ({ name, rows, otherRows }) =>
      `${name}: ${countOf(rows, 'row', 'rows')}${otherRows > 0 ? `, and ${otherRows} of other repositories` : ''}`,
  ),
]

/** Returns lines for people. */
export const describeReport = ({ header, totals, fingerprint, isKeyGiven, open }: VerifiedReport): string[] => [
  `The report of migration ${header.migration_id} is complete and unchanged since ${header.made_at}.`,
  isKeyGiven
    ? `It is signed with the given key, ${fingerprint}.`
    : `It is signed with the key in it, ${fingerprint}. Compare this with: relay migrate-documents public-key`,
  `Repository ${header.repo_id} of ${header.workspace}, ${header.status}, with relay ${header.relay_version}`,
  ...header.lists.map(({ name, sha256, rows }) => `${name}: ${countOf(rows, 'row', 'rows')}, SHA-256 ${sha256}`),
  `${countOf(totals.rows, 'row', 'rows')}${verdictsOf(totals)}${totals.open > 0 ? `, ${totals.open} without a verdict` : ''}`,
  ...open.map(describeRow),
]

const describeRow = (row: ReportRow): string => {
  const { erp_object_type: type, erp_object_id: id, barcode, ar_object: kind, doc_id: docId, verdict, reason } = row
  const subject = id === null ? (barcode === null ? 'no business object' : `bar code ${barcode}`) : `${type ?? ''} ${id}`.trim()
  return `${subject}${kind === null ? '' : ` (${kind})`}: document ${docId} ${verdict === null ? 'without a verdict' : `is ${verdict}`}${reason === null ? '' : `, ${reason}`}`
}

/** Writes the rows that need a decision as CSV, sorted by business object. */
export const writeOpenRows = async (path: string, { open, header }: VerifiedReport, spreadsheet?: Separator): Promise<void> => {
  const columns = ['erp_object_type', 'erp_object_id', 'barcode', 'ar_object', 'archived_on', 'doc_id', 'verdict', 'reason', 'list', 'line']
  const rows = open.map((row) => ({ ...row, list: header.lists[row.list]?.name }))
  await writeFile(path, stringify(rows, csvOptions(columns, spreadsheet)))
}
