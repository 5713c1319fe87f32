import type { StoredTarget } from '../connectors/call-target.ts'
import type { StoredCopy } from '../connectors/connector.ts'
import { createStatement, type Database, type Transaction } from '../db/database.ts'

/** A content at its home, with what is needed to read it there. */
export interface HomeCopy extends StoredTarget, StoredCopy {
  contentId: string
  destination: StoredTarget['destination'] & { name: string }
  sizeBytes: number
  digests: Buffer
  isAltered: boolean
  /** False if the source system has replaced or deleted the document: a newer one may lie at its place. */
  isCurrent: boolean
}

const columns = `
    documents.id as "documentId", doc_id as "docId", comp_id as "compId", documents.size_bytes as "sizeBytes",
    deliveries.workspace_id as "workspaceId", user_slug || '/' || workspace_slug as workspace, path, location,
    credentials_sealed as "credentialsSealed", superseded_at is null as "isCurrent",
    jsonb_build_object('id', destinations.id, 'name', destinations.name, 'connector', connector_type, 'config', config) as destination`

// A version that is not locked may be removed by the rule that has hidden it: that document counts as missing.
const lockedVersion = `
    case
      when receipt -> 'target' ->> 'legal_hold' = 'on' or (receipt -> 'target' ->> 'retain_until')::timestamptz > now()
      then receipt -> 'target' ->> 'version_id'
    end`

const findByContent = createStatement<HomeCopy>(
  'find-home-copy',
  `
  select home.content_id as "contentId", digests, altered_since is not null as "isAltered", ${lockedVersion} as "versionId", ${columns}
  from (
    select content_id, home_contents.document_id, home_contents.destination_id, digests, altered_since
    from home_contents
    where content_id = :contentId
  ) as home
  join documents on documents.id = home.document_id and documents.content_id = home.content_id
  join deliveries on deliveries.document_id = documents.id and deliveries.destination_id = home.destination_id
  join destinations on destinations.id = home.destination_id
  join workspaces on workspaces.id = deliveries.workspace_id
  where location is not null
  `,
)

/** Finds a content at its home. @returns undefined if no document owns it any more */
export const findHomeCopy = async (db: Database, contentId: string): Promise<HomeCopy | undefined> =>
  (await findByContent(db, { contentId }))[0]

/** A delivered document that is to be read at its home. */
export type DeliveredCopy = Omit<HomeCopy, 'digests' | 'isAltered' | 'versionId'> & { sha256: Buffer }

/** Finds documents as they lie at a destination, those that were delivered to it. */
export const findDelivered = async (db: Database, destinationId: string, documentIds: string[]): Promise<DeliveredCopy[]> => {
  const { rows } = await db.raw<{ rows: DeliveredCopy[] }>(
    `
    select documents.content_id as "contentId", case when appends = 0 then sha256 else appended_sha256 end as sha256, ${columns}
    from documents
    join contents on contents.id = documents.content_id
    join deliveries on deliveries.document_id = documents.id
    join destinations on destinations.id = destination_id
    join workspaces on workspaces.id = deliveries.workspace_id
    where documents.id = any (:documentIds)
      and destination_id = :destinationId
      and deliveries.status = 'delivered'
      and location is not null
    `,
    { destinationId, documentIds },
  )
  return rows
}

/** Finds the document that was delivered to a destination last. */
export const findLastDelivered = async (db: Database, destinationId: string): Promise<DeliveredCopy | undefined> => {
  const { rows } = await db.raw<{ rows: { id: string }[] }>(
    `
    select document_id as id
    from deliveries
    where destination_id = ?
      and status = 'delivered'
    order by document_id desc
    limit 10
    `,
    [destinationId],
  )
  const found = await findDelivered(
    db,
    destinationId,
    rows.map(({ id }) => id),
  )
  return found
    .filter(({ isCurrent, sizeBytes }) => isCurrent && sizeBytes > 0)
    .toSorted((one, other) => (one.documentId < other.documentId ? 1 : -1))[0]
}

/** Notes what a read has found at the home. @param error undefined if all bytes are there */
export const noteFound = async (db: Database, contentId: string, error: string | undefined): Promise<void> => {
  await db('home_contents')
    .where({ content_id: contentId })
    .update({
      altered_since: error === undefined ? null : db.raw('coalesce(altered_since, now())'),
      last_error: error ?? null,
      checked_at: db.fn.now(),
    })
}

/** SQL: a destination alone has contents. @param destinationId an expression */
export const hasContentsAt = (destinationId: string) => `exists (
        select
        from home_contents
        join contents on contents.id = content_id
        where destination_id = ${destinationId}
          and owned_at is not null
      )`

/** Lists the destinations that alone have contents of a workspace, by their ids. */
export const listHomesInUse = async (db: Database, workspaceId: string): Promise<string[]> => {
  const { rows } = await db.raw<{ rows: { id: string }[] }>(
    `
    select id
    from destinations
    where workspace_id = ?
      and ${hasContentsAt('destinations.id')}
    `,
    [workspaceId],
  )
  return rows.map(({ id }) => id)
}

/** Returns how a destination is used as a home. */
export const findHomeUse = async (
  db: Database | Transaction,
  destinationId: string,
): Promise<{ repoIds: string[]; hasContents: boolean }> => {
  const { rows } = await db.raw<{ rows: { repoIds: string[]; hasContents: boolean }[] }>(
    `
    select
      array(
        select repo_id
        from repositories
        where home_destination_id = :destinationId
          and deleted_at is null
        order by repo_id
        limit 20
      ) as "repoIds",
      ${hasContentsAt(':destinationId')} as "hasContents"
    `,
    { destinationId },
  )
  return rows[0]!
}
