import { createHash } from 'node:crypto'
import { visibleLine } from '../base/text.ts'
import { version } from '../base/version.ts'
import type { Database } from '../db/database.ts'
import { migrationVerdicts, type MigrationMode, type MigrationStatus, type MigrationVerdict } from '../domain/document-migration.ts'
import type { DocumentMigration } from './migrations.ts'
import type { SigningKey } from './signing-key.ts'

// A report is a file of JSON lines: a header, a line for each row of the lists, the totals, and the signature of everything before it.

export const reportFormat = 'document-relay/migration-report/1'

export interface ReportHeader {
  type: 'header'
  format: typeof reportFormat
  relay_version: string
  installation_id: string
  made_at: string
  /** PEM. Compare its fingerprint with one that the installation has told by another way. */
  public_key: string
  migration_id: string
  workspace: string
  repo_id: string
  /** The content server that the documents were compared with and fetched from. */
  upstream: { url: string; cont_rep: string }
  mode: MigrationMode
  status: MigrationStatus
  started_at: string
  ended_at: string | null
  lists: { name: string; sha256: string; rows: number; other_rows: number }[]
}

export interface ReportRow {
  type: 'row'
  /** Position of the list in the header, from 0. */
  list: number
  line: number
  doc_id: string
  erp_object_type: string | null
  erp_object_id: string | null
  ar_object: string | null
  archived_on: string | null
  barcode: string | null
  /** Null if the migration has not come so far. */
  verdict: MigrationVerdict | null
  reason: string | null
  components: number | null
  size_bytes: number | null
  judged_at: string | null
}

export interface ReportTotals extends Record<MigrationVerdict, number> {
  type: 'totals'
  rows: number
  /** Rows without a verdict. */
  open: number
}

export interface ReportSignature {
  type: 'signature'
  algorithm: 'Ed25519'
  /** SHA-256 of all bytes before this line. */
  sha256: string
  /** Signature of the text `format`, a line feed, and `sha256`. */
  signature: string
}

export const signedText = (sha256: string): string => `${reportFormat}\n${sha256}`

export interface ReportSubject {
  migration: DocumentMigration
  /** `{userSlug}/{workspaceSlug}` */
  workspace: string
  installationId: string
}

/** Returns the lines of the report of a migration, each with its line feed. A million rows are read page by page. */
export async function* reportOf(db: Database, subject: ReportSubject, key: SigningKey): AsyncGenerator<string, void, undefined> {
  const hash = createHash('sha256')
  const line = (value: ReportHeader | ReportRow | ReportTotals) => {
    // The report may be read in a terminal.
    const text = `${visibleLine(JSON.stringify(value))}\n`
    hash.update(text)
    return text
  }
  const totals: ReportTotals = { type: 'totals', rows: 0, ...noVerdicts(), open: 0 }
  yield line(headerOf(subject, key))
  for await (const row of rowsOf(db, subject.migration.id)) {
    totals.rows += 1
    totals[row.verdict ?? 'open'] += 1
    yield line(row)
  }
  yield line(totals)
  const sha256 = hash.digest('hex')
  const signature: ReportSignature = { type: 'signature', algorithm: 'Ed25519', sha256, signature: key.sign(signedText(sha256)) }
  yield `${JSON.stringify(signature)}\n`
}

/** Returns a count of 0 for every verdict. */
export const noVerdicts = () => Object.fromEntries(migrationVerdicts.map((verdict) => [verdict, 0])) as Record<MigrationVerdict, number>

const headerOf = ({ migration, workspace, installationId }: ReportSubject, { publicKey }: SigningKey): ReportHeader => ({
  type: 'header',
  format: reportFormat,
  relay_version: version,
  installation_id: installationId,
  made_at: new Date().toISOString(),
  public_key: publicKey,
  migration_id: migration.id,
  workspace,
  repo_id: migration.repoId,
  upstream: { url: migration.upstreamUrl, cont_rep: migration.upstreamContRep },
  mode: migration.mode,
  status: migration.status,
  started_at: migration.createdAt.toISOString(),
  ended_at: migration.endedAt?.toISOString() ?? null,
  lists: migration.lists.map(({ name, sha256, rows, otherRows }) => ({ name, sha256, rows, other_rows: otherRows })),
})

const rowsPerPage = 5_000

async function* rowsOf(db: Database, migrationId: string): AsyncGenerator<ReportRow, void, undefined> {
  for (let after = 0; ;) {
    const { rows } = await db.raw<{ rows: (Omit<ReportRow, 'type'> & { position: number; judged_at: Date | null })[] }>(
      `
      select
        position, list, line, doc_id, erp_object_type, erp_object_id, ar_object, archived_on::text, barcode,
        verdict, reason, components, size_bytes, judged_at
      from document_migration_rows
      where document_migration_id = :migrationId
        and position > :after
      order by position
      limit :limit
      `,
      { migrationId, after, limit: rowsPerPage },
    )
    for (const { position, judged_at: judgedAt, ...row } of rows) {
      after = position
      yield { type: 'row', ...row, judged_at: judgedAt && new Date(judgedAt).toISOString() }
    }
    if (rows.length < rowsPerPage) return
  }
}
