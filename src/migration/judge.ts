import { setTimeout as delay } from 'node:timers/promises'
import type { ArchiveDocument, ArchiveDocuments } from '../archive/documents.ts'
import type { SetMetadataOf } from '../archive/metadata.ts'
import type { ReceivingRepository } from '../archive/receiving-repository.ts'
import { isChangedSinceFetch } from '../archive/upstream-documents.ts'
import { AppError, messageOf } from '../base/errors.ts'
import type { MeasuredDocument } from '../content-server/answers.ts'
import { systemActor } from '../db/audit.ts'
import type { Database } from '../db/database.ts'
import { isRejectedValue } from '../db/errors.ts'
import type { MigrationMode, MigrationVerdict } from '../domain/document-migration.ts'
import type { BusinessMetadata } from '../domain/template.ts'
import { UpstreamFailure } from './failure.ts'
import type { Wanted } from './fetch.ts'
import type { ReadThrough } from './read-through.ts'
import type { UpstreamRepository } from './upstreams.ts'

export interface JudgeDeps {
  archiveDocuments: Pick<ArchiveDocuments, 'find'>
  db: Database
  setMetadata: SetMetadataOf
  readThrough: Pick<ReadThrough, 'delivers' | 'describe' | 'isDeleted' | 'keep' | 'verify'>
}

export interface MigrationRow extends BusinessMetadata {
  position: number
  docId: string
}

/** A row with its verdict. */
export interface Judged {
  position: number
  verdict: MigrationVerdict
  reason: string | null
  /** Number of components of the document here, or of the one that was found. */
  components: number | null
  sizeBytes: number | null
}

type Verdict = Omit<Judged, 'position'>

/** What the rows of a page have in common. */
export interface Run {
  migrationId: string
  mode: MigrationMode
  workspaceId: string
  repository: ReceivingRepository & UpstreamRepository
  findKeeper: Wanted['findKeeper']
  /** Limit for all components of a document together. */
  documentMaxBytes: number
  signal: AbortSignal
}

// A document that cannot be fetched is tried again: connections break. Milliseconds.
const pausesMs = [500, 2_000]
// An id that no document has: the old content server answers the question about it, or nothing at all.
const nobody = 'DOCUMENT-RELAY-ASKS-WHETHER-THE-SERVER-ANSWERS'

// A document that comes here while it is judged is judged again.
const maxJudgements = 3
const neighboursPerSide = 3

// Rows before that were good, and rows after that are not judged yet.
const neighbours = `
  (
    select doc_id as "docId"
    from document_migration_rows
    where document_migration_id = :migrationId
      and position < :position
      and doc_id <> :docId
      and verdict in ('found', 'copied', 'equal', 'different')
    order by position desc
    limit :limit
  )
  union all
  (
    select doc_id
    from document_migration_rows
    where document_migration_id = :migrationId
      and position > :position
      and doc_id <> :docId
      and verdict is null
    order by position
    limit :limit
  )
`

/** What is known of a document here. */
interface Origin {
  /** Id of the request that sent the newest component. If a migration has fetched it, the migration is its request. */
  requestId: string
  erpObjectId: string | null
  /** True if it was fetched from the old content server, and not changed here. */
  isUntouched: boolean
}

/** Creates the judge of rows: it compares the document here with that of the old content server, and fetches one that is not here. */
export const createJudge = ({ db, archiveDocuments, setMetadata, readThrough }: JudgeDeps) => {
  const originOf = async ({ workspaceId, repository }: Run, docId: string): Promise<Origin | undefined> => {
    const { rows } = await db.raw<{ rows: Origin[] }>(
      `
      select
        (array_agg(request_id order by documents.id desc))[1] as "requestId",
        (array_agg(erp_object_id order by documents.id desc))[1] as "erpObjectId",
        not bool_or(${isChangedSinceFetch}) as "isUntouched"
      from documents
      join archive_documents on archive_documents.id = archive_document_id
      left join contents on contents.id = content_id
      where documents.workspace_id = :workspaceId
        and repo_id = :repoId
        and documents.doc_id = :docId
        and superseded_at is null
      having count(*) > 0
      `,
      { workspaceId, repoId: repository.repoId, docId },
    )
    return rows[0]
  }

  /** Returns true if the old content server delivers a document of another row at the moment: its storage is not away as a whole. */
  const deliversOthers = async ({ position, docId }: MigrationRow, { migrationId, repository }: Run): Promise<boolean> => {
    const { rows } = await db.raw<{ rows: { docId: string }[] }>(neighbours, { migrationId, position, docId, limit: neighboursPerSide })
    for (const other of rows) {
      try {
        if (await readThrough.delivers(repository, other.docId)) return true
      } catch (thrown) {
        if (!(thrown instanceof UpstreamFailure)) throw thrown
      }
    }
    return false
  }

  /**
   * Asks the old content server several times.
   * @param ask gets the number of the attempt, from 0
   * @returns the answer, or the failure if it is one of this document
   * @throws `UpstreamFailure` if the server answers or delivers nothing; the error of the relay if it could not store the document
   */
  const persist = async <T>(
    row: MigrationRow,
    run: Run,
    ask: (attempt: number) => Promise<T>,
  ): Promise<{ answer: T } | { failure: UpstreamFailure }> => {
    for (const [attempt, pauseMs] of [...pausesMs, undefined].entries()) {
      try {
        return { answer: await ask(attempt) }
      } catch (thrown) {
        if (!(thrown instanceof UpstreamFailure)) throw thrown
        await readThrough.describe(run.repository, nobody)
        if (pauseMs === undefined) {
          if (thrown.about === 'relay') throw thrown.cause ?? thrown
          if (thrown.about === 'server' && !(await deliversOthers(row, run))) throw thrown
          return { failure: thrown }
        }
      }
      await delay(pauseMs, undefined, { signal: run.signal })
    }
    throw new TypeError('no attempt was made')
  }

  /**
   * Fetches a document that is not here, or that has changed there. A check reads it as a copy does, and stores nothing.
   * @returns undefined if it is here by now, or was changed or deleted here: then it is judged again
   */
  const fetch = async (row: MigrationRow, facts: MeasuredDocument, run: Run, replaces: boolean): Promise<Verdict | undefined> => {
    const { repository, mode, migrationId: requestId, findKeeper } = run
    const { erpObjectType, erpObjectId, arObject } = row
    const metadata = { erpObjectType, erpObjectId, arObject }
    const wanted: Wanted = { repository, docId: row.docId, requestId, receivedAt: new Date(), findKeeper, metadata, replaces }
    // A document that has changed since contradicts its facts: further attempts ask again.
    const fetched = await persist(row, run, async (attempt) => {
      const now = { ...wanted, facts: attempt === 0 ? facts : undefined }
      if (mode === 'copy') return readThrough.keep(now)
      return (await readThrough.verify(now)) ? 'whole' : undefined
    })
    if ('failure' in fetched) return { verdict: 'damaged', reason: reasonOf(fetched.failure), ...sizesOf(facts) }
    if (fetched.answer === 'whole') return { verdict: 'found', reason: null, ...sizesOf(facts) }
    if (fetched.answer === 'not kept') throw new AppError('unavailable', 'the quota of the workspace does not allow further documents')
    if (fetched.answer === undefined) return missing(await readThrough.isDeleted(repository, row.docId))
    if (fetched.answer === 'here') return undefined
    return { verdict: 'copied', reason: replaces ? 'it has changed since it was fetched' : null, ...sizesOf(facts) }
  }

  /** Gives a document that has no business object the one of the row. */
  const link = async (
    { docId, erpObjectType, erpObjectId, arObject }: MigrationRow,
    { repository, workspaceId }: Run,
    known: Origin | undefined,
  ) => {
    // A document without components has no row that could have one.
    if (!known || known.erpObjectId !== null || erpObjectId === null) return
    const change = { erpObjectType: erpObjectType ?? undefined, erpObjectId, arObject: arObject ?? undefined }
    await setMetadata(workspaceId, { repoId: repository.repoId, docId }, change, systemActor)
  }

  const verdictOf = async (row: MigrationRow, run: Run): Promise<Verdict> => {
    const { docId } = row
    const { repository, mode, migrationId, documentMaxBytes } = run
    for (let time = 1; time <= maxJudgements; time += 1) {
      const here = await archiveDocuments.find(repository.id, docId)
      // A copy asks for nothing that was deleted here. A check says what the old server has.
      const asked = await persist(row, run, () => readThrough.describe(repository, docId, mode === 'check'))
      if ('failure' in asked) return { verdict: 'damaged', reason: reasonOf(asked.failure), components: null, sizeBytes: null }
      const there = asked.answer
      const known = here && (await originOf(run, docId))
      if (here && mode === 'copy') await link(row, run, known)
      const isNewer = here && there?.modifiedAt && known?.isUntouched === true && there.modifiedAt > here.modifiedAt
      if (there && (!here || (isNewer && mode === 'copy'))) {
        const sizes = sizesOf(there)
        if (sizes.sizeBytes > documentMaxBytes) return { verdict: 'failed', reason: tooLarge(sizes.sizeBytes, documentMaxBytes), ...sizes }
        if (mode === 'check' && (await readThrough.isDeleted(repository, docId))) return { verdict: 'found', reason: deletedHere, ...sizes }
        const fetched = await fetch(row, there, run, here !== undefined)
        if (fetched) return fetched
        continue
      }
      if (!here) return missing(await readThrough.isDeleted(repository, docId))
      const sizes = sizesOf(here)
      if (here.components.some(({ content, sizeBytes }) => content === null && sizeBytes > 0)) {
        return { verdict: there ? 'different' : 'missing', reason: 'its bytes were removed here', ...sizes }
      }
      if (!there) return { verdict: mode === 'check' ? 'different' : 'equal', reason: 'the old content server does not have it', ...sizes }
      const reason = differenceOf(here, there) ?? (isNewer ? 'it has changed at the old content server' : undefined)
      if (reason !== undefined) return { verdict: 'different', reason, ...sizes }
      // A page that was broken off has copied it, or another row of the list has.
      return { verdict: known?.requestId === migrationId ? 'copied' : 'equal', reason: null, ...sizes }
    }
    throw new AppError('unavailable', `the document ${docId} was changed here each time that it was fetched`)
  }

  return async (row: MigrationRow, run: Run): Promise<Judged> => {
    const { position } = row
    try {
      return { position, ...(await verdictOf(row, run)) }
    } catch (thrown) {
      if (!isOfThisRow(thrown)) throw thrown
      return { position, verdict: 'failed', reason: messageOf(thrown), components: null, sizeBytes: null }
    }
  }
}

const deletedHere = 'it was deleted here'

const missing = (isDeleted: boolean): Verdict => ({
  verdict: 'missing',
  reason: isDeleted ? deletedHere : null,
  components: null,
  sizeBytes: null,
})

const tooLarge = (bytes: number, maxBytes: number) => `it has ${bytes} bytes, and the relay accepts ${maxBytes} (RELAY_DOCUMENT_MAX_BYTES)`

/** Returns true for an error that another row need not have, and that comes again: a refusal, a value that cannot be stored, or a bug. */
const isOfThisRow = (thrown: unknown): boolean =>
  isRejectedValue(thrown) ||
  (thrown instanceof AppError && thrown.code !== 'unavailable' && thrown.code !== 'rate_limited') ||
  ((thrown instanceof TypeError || thrown instanceof RangeError) && thrown.cause === undefined)

const reasonOf = ({ message }: UpstreamFailure): string => message.replace(/^upstream: /, '')

const sizesOf = ({ components }: { components: { sizeBytes: number }[] }) => ({
  components: components.length,
  sizeBytes: components.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
})

/** Says in what a document here differs from that of the old content server, or returns undefined. */
const differenceOf = (
  here: { components: Pick<ArchiveDocument['components'][number], 'compId' | 'sizeBytes'>[] },
  there: { components: Pick<MeasuredDocument['components'][number], 'compId' | 'sizeBytes'>[] },
): string | undefined => {
  const sizesHere = new Map(here.components.map(({ compId, sizeBytes }) => [compId, sizeBytes]))
  const sizesThere = new Map(there.components.map(({ compId, sizeBytes }) => [compId, sizeBytes]))
  for (const [compId, sizeBytes] of sizesThere) {
    const own = sizesHere.get(compId)
    if (own === undefined) return `component ${compId} is only at the old content server`
    if (own !== sizeBytes) return `component ${compId} has ${own} bytes here, and ${sizeBytes} at the old content server`
  }
  const extra = [...sizesHere.keys()].find((compId) => !sizesThere.has(compId))
  return extra === undefined ? undefined : `component ${extra} is only here`
}
