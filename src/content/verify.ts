import { createHash } from 'node:crypto'
import { messageOf, UserError } from '../base/errors.ts'
import type { Database } from '../db/database.ts'
import type { ContentStoreKind } from '../domain/content-store.ts'
import type { ContentStore, Stores } from './store.ts'

/** A content of a document, or a segment of it. */
interface StoredPart {
  documentId: string
  workspace: string
  repoId: string
  docId: string
  compId: string
  contentId: string
  store: ContentStoreKind
  sizeBytes: number
  sha256: Buffer
}

/** A document whose content is not stored completely. */
export type DamagedDocument = Pick<StoredPart, 'documentId' | 'workspace' | 'repoId' | 'docId' | 'compId' | 'contentId' | 'store'> & {
  problem: string
}

export interface Verified {
  /** Number of contents. A document to which bytes were appended may have several. */
  contents: number
  bytes: number
  damaged: number
}

const batchDocuments = 500

/**
 * Checks that the content of every document is stored, with the size that the database has for it. Changes nothing, and may run while
 * the relay works.
 * @param stores the stores that this process can reach, without their segments
 * @param options.isRead true to read every byte, and to compare its SHA-256
 * @param options.report is called for each document whose content is damaged
 * @throws `UserError` if a content is in a store that is not configured
 */
export const verifyContents = async (
  db: Database,
  stores: Stores,
  { isRead, report }: { isRead: boolean; report: (damaged: DamagedDocument) => void },
): Promise<Verified> => {
  const verified: Verified = { contents: 0, bytes: 0, damaged: 0 }
  let lastId = ''
  for (;;) {
    const parts = await listParts(db, lastId)
    const problems = await findProblems(stores, parts, isRead)
    // A content that was removed while it was checked is not damaged.
    const stillOwned = new Set<string>(
      problems.size === 0
        ? []
        : await db('contents')
            .whereIn('id', [...problems.keys()])
            .whereNotNull('owned_at')
            .pluck('id'),
    )
    for (const { sizeBytes, sha256: _, ...part } of parts) {
      verified.contents += 1
      verified.bytes += sizeBytes
      const problem = problems.get(part.contentId)
      if (problem === undefined || !stillOwned.has(part.contentId)) continue
      verified.damaged += 1
      report({ ...part, problem })
    }
    if (parts.length === 0) return verified
    lastId = parts.at(-1)!.documentId
  }
}

/** Lists the contents of the next documents and their segments, in the order of the documents. */
const listParts = async (db: Database, afterId: string): Promise<StoredPart[]> => {
  const { rows } = await db.raw<{ rows: StoredPart[] }>(
    `
    with page as (
      select id, workspace_id, repo_id, doc_id, comp_id, content_id, size_bytes
      from documents
      where id > :afterId
        and content_id is not null
      order by id
      limit :limit
    ), part as (
      select id as document_id, content_id
      from page
      union all
      select page.id, segment_id
      from page
      join content_segments on content_segments.content_id = page.content_id
    )
    select
      page.id as "documentId", user_slug || '/' || workspace_slug as workspace, repo_id as "repoId", doc_id as "docId",
      comp_id as "compId", contents.id as "contentId", store, coalesce(contents.size_bytes, page.size_bytes) as "sizeBytes", sha256
    from part
    join page on page.id = part.document_id
    join contents on contents.id = part.content_id
    join workspaces on workspaces.id = page.workspace_id
    order by page.id, contents.id
    `,
    { afterId, limit: batchDocuments },
  )
  return rows
}

/** @returns what is wrong, by the id of the content @throws `UserError` if a store is not configured */
const findProblems = async (stores: Stores, parts: StoredPart[], isRead: boolean): Promise<Map<string, string>> => {
  const problems = new Map<string, string>()
  for (const [kind, ofStore] of Map.groupBy(parts, ({ store }) => store)) {
    const store = stores[kind]
    if (!store) {
      throw new UserError(
        `Some contents are in the ${kind} store, which is not configured. Set CONTENT_DIR and CONTENT_S3_BUCKET as for the relay.`,
      )
    }
    const sizes = await store.sizesOf(ofStore.map(({ contentId }) => contentId))
    for (const part of ofStore) {
      const problem = describeSize(part, sizes.get(part.contentId)) ?? (isRead ? await describeBytes(store, part) : undefined)
      if (problem !== undefined) problems.set(part.contentId, problem)
    }
  }
  return problems
}

const describeSize = ({ sizeBytes }: StoredPart, storedBytes: number | undefined): string | undefined => {
  if (sizeBytes === (storedBytes ?? 0)) return undefined
  return storedBytes === undefined ? 'missing' : `${storedBytes} of ${sizeBytes} bytes are stored`
}

const describeBytes = async (store: ContentStore, { contentId, sizeBytes, sha256 }: StoredPart): Promise<string | undefined> => {
  const hash = createHash('sha256')
  try {
    for await (const chunk of store.read({ id: contentId, sizeBytes })) hash.update(chunk as Buffer)
  } catch (thrown) {
    return `not readable: ${messageOf(thrown)}`
  }
  return hash.digest().equals(sha256) ? undefined : 'the stored bytes were changed: their SHA-256 is another one'
}
