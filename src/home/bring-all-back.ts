import { countOf } from '../base/count-of.ts'
import { record, systemActor } from '../db/audit.ts'
import type { Database } from '../db/database.ts'
import type { BringBack, ContentAtHome } from './bring-back.ts'
import { HomeFailure } from './failure.ts'

/** Contents that a destination alone has. */
interface AtHomeCount {
  contents: number
  bytes: number
}

/** What to bring back: all contents at a destination, or those of one repository. */
interface Given {
  destinationId: string
  repoId: string | undefined
}

/** A content that was not brought back. */
export interface NotBroughtBack {
  documentId: string
  repoId: string
  docId: string
  compId: string
  reason: string
}

export interface BroughtBack extends AtHomeCount {
  failed: NotBroughtBack[]
}

type Listed = ContentAtHome & Omit<NotBroughtBack, 'reason'> & { place: string }

const concurrentReads = 8

const source = `
  from home_contents
  join documents on documents.id = home_contents.document_id and documents.content_id = home_contents.content_id
  where destination_id = :destinationId
    and (:repoId::text is null or repo_id = :repoId)`

/** Counts the contents of documents that a destination alone has. */
export const countAtHome = async (db: Database, { destinationId, repoId = null as never }: Given): Promise<AtHomeCount> => {
  const { rows } = await db.raw<{ rows: AtHomeCount[] }>(
    `select count(*) as contents, coalesce(sum(size_bytes), 0)::bigint as bytes ${source}`,
    { destinationId, repoId },
  )
  return rows[0]!
}

const listPage = async (
  db: Database,
  { destinationId, repoId = null as never }: Given,
  after: Listed | undefined,
  limit: number,
): Promise<Listed[]> => {
  const { rows } = await db.raw<{ rows: Listed[] }>(
    `
    select
      home_contents.content_id as "contentId", documents.id as "documentId", documents.workspace_id as "workspaceId",
      size_bytes as "sizeBytes", repo_id as "repoId", doc_id as "docId", comp_id as "compId", folded_place(path) as place
    ${source}
      and (folded_place(path), home_contents.content_id) > (:place, :contentId)
    order by folded_place(path), home_contents.content_id
    limit :limit
    `,
    { destinationId, repoId, place: after?.place ?? '', contentId: after?.contentId ?? '', limit } as never,
  )
  return rows
}

/** Records what a run has brought back, also one that was stopped. */
const recordRun = async (db: Database, { destinationId, repoId }: Given, { contents, bytes, failed }: BroughtBack): Promise<void> => {
  if (contents === 0) return
  const { workspaceId, name } = await db('destinations')
    .where({ id: destinationId })
    .first<{ workspaceId: string; name: string }>('workspace_id as workspaceId', 'name')
  await db.transaction((trx) =>
    record(trx, {
      workspaceId,
      event: 'destination.contents_brought_back',
      subjectId: destinationId,
      description: `${countOf(contents, 'content', 'contents')} came back from destination ${name}.`,
      metadata: { name, repo_id: repoId ?? null, contents, bytes, failed: failed.length },
      actor: systemActor,
    }),
  )
}

/**
 * Creates the function that brings back what a destination alone has. Each content is brought back by itself, so a run that was stopped goes on with
 * the next one. One audit entry records each run that has brought back something.
 */
export const createBringAllBack =
  ({ db, bringBack, pageContents = 200 }: { db: Database; bringBack: BringBack; pageContents?: number }) =>
  /**
   * @param onPage is called after each page with what was done so far
   * @returns also the contents that are lost there
   * @throws `HomeFailure` if the destination is away, the reason of the signal, and errors of the database or of a store
   */
  async (given: Given, signal: AbortSignal, onPage: (done: BroughtBack) => void): Promise<BroughtBack> => {
    const done: BroughtBack = { contents: 0, bytes: 0, failed: [] }
    const bring = async (content: Listed) => {
      try {
        if (!(await bringBack(content, signal))) return
        done.contents += 1
        done.bytes += content.sizeBytes
      } catch (thrown) {
        if (!(thrown instanceof HomeFailure) || thrown.what === 'away') throw thrown
        // Removed or brought back by another run, after it was listed.
        if (thrown.what === 'gone') return
        const { documentId, repoId, docId, compId } = content
        done.failed.push({ documentId, repoId, docId, compId, reason: thrown.message })
      }
    }
    try {
      let page = await listPage(db, given, undefined, pageContents)
      while (page.length > 0) {
        const queue = [...page]
        const work = async () => {
          for (let next = queue.shift(); next; next = queue.shift()) {
            signal.throwIfAborted()
            await bring(next)
          }
        }
        const ended = await Promise.allSettled(Array.from({ length: concurrentReads }, work))
        const failure = ended.find((each) => each.status === 'rejected')
        if (failure) throw failure.reason
        onPage(done)
        page = await listPage(db, given, page.at(-1), pageContents)
      }
    } finally {
      await recordRun(db, given, done)
    }
    // Another home, or this one if it is set again, looks at the documents again.
    await db.raw(
      `
      delete from home_progress
      using repositories, destinations
      where destinations.id = :destinationId
        and repositories.workspace_id = destinations.workspace_id
        and repositories.id = repository_id
        and (:repoId::text is null or repo_id = :repoId)
      `,
      { destinationId: given.destinationId, repoId: given.repoId ?? null } as never,
    )
    return done
  }
