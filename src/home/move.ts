import { createHash } from 'node:crypto'
import type { Metric } from 'prom-client'
import { isOnHold, shareHolds } from '../archive/legal-holds.ts'
import { placeOf } from '../archive/place.ts'
import { dayMs } from '../base/day.ts'
import { reasonOf } from '../base/failure-log.ts'
import { newId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { counterOf } from '../base/metrics.ts'
import { DeliveryError } from '../connectors/connector.ts'
import type { ContentStore } from '../content/store.ts'
import type { Database } from '../db/database.ts'
import type { OnItsOwn } from '../db/on-its-own.ts'
import { createBlockDigests } from './blocks.ts'
import { findDelivered, type DeliveredCopy } from './copies.ts'
import { HomeFailure } from './failure.ts'
import { CopyMissing, readCopy, type ReadCopyDeps } from './read-copy.ts'

interface MoveHomeDeps extends ReadCopyDeps {
  db: Database
  home: ContentStore
  onItsOwn: OnItsOwn
  log: Pick<Log, 'warn'>
}

interface Home {
  repositoryId: string
  workspaceId: string
  repoId: string
  destinationId: string
  /** Documents that were delivered before this time may go. */
  before: Date
  judgedTo: string
  judgedId: string
}

interface Judged {
  id: string
  receivedAt: string
  verdict: 'moves' | 'waits' | 'stays'
  /** When a document that waits is looked at again. */
  dueAt: Date
}

export interface Moved {
  moved: number
  waiting: number
  checked: number
}

const batchDocuments = 200
const concurrentMoves = 8
// The job ends and begins again: a run must not take longer than an hour.
const runMaxMs = 20 * 60_000
const checkedPerRun = 20
const checkAgainMs = 10 * 60_000
const hourMs = 3_600_000

/** SQL: what becomes of documents, by what is known of their deliveries. */
const judged = `
  select
    documents.id, received_at::text as "receivedAt",
    case
      when content_id is null or store = 'home' or documents.size_bytes = 0 or superseded_at is not null or deliveries.status is null then 'stays'
      when documents.status = 'delivered'
        and deliveries.status = 'delivered'
        and delivered_at < :before::timestamptz
        and location is not null
        and not ${isOnHold('documents')}
        and receipt ->> 'sha256' = encode(case when appends = 0 then sha256 else appended_sha256 end, 'hex')
      then 'moves'
      else 'waits'
    end as verdict,
    case
      when documents.status in ('pending', 'retrying') then now() + interval '1 hour'
      else greatest(now() + interval '1 day', delivered_at + (now() - :before::timestamptz))
    end as "dueAt"
  from documents
  left join contents on contents.id = content_id
  left join deliveries on deliveries.document_id = documents.id and destination_id = :destinationId
`

const placeAt = (deliveries: string, documents: string) =>
  placeOf({ kind: 'connector_type', path: `${deliveries}.path`, docId: `${documents}.doc_id`, compId: `${documents}.comp_id` })
const placeOfMoved = placeAt('deliveries', 'documents')

/** SQL: gives a document the content at its home, unless it has changed since it was read there. */
const move = `
  with document as (
    select documents.id, content_id, ${placeOfMoved} as path
    from documents
    join repositories on repositories.id = repository_id
    join destinations on destinations.id = :destinationId
    join deliveries on document_id = documents.id and destination_id = :destinationId
    where documents.id = :documentId
      and content_id = :contentId
      and size_bytes = :sizeBytes
      and documents.status = 'delivered'
      and superseded_at is null
      and not ${isOnHold('documents')}
      and home_destination_id = :destinationId
      and repositories.deleted_at is null
      -- Not changed since the content was read there.
      and config = :config::jsonb
      and deliveries.status = 'delivered'
      and location = :location
      and receipt ->> 'sha256' = encode(:sha256::bytea, 'hex')
      -- An attempt that began before this document was delivered may still replace it.
      and not exists (
        select
        from documents as other
        join deliveries as replacing on replacing.document_id = other.id
        where other.workspace_id = documents.workspace_id
          and other.repo_id = documents.repo_id
          and other.doc_id = documents.doc_id
          and other.id <> documents.id
          and replacing.destination_id = :destinationId
          and folded_place(${placeAt('replacing', 'other')}) = folded_place(${placeOfMoved})
          and replacing.attempt_id is not null
      )
      -- What is set there may have changed the bytes since they were read, or may yet.
      and not exists (
        select
        from late_data
        where late_data.document_id = documents.id
          and late_data.destination_id = :destinationId
          and (late_data.status = 'pending' or late_data.updated_at >= :readFrom)
      )
      and not exists (
        select
        from destination_slots
        where destination_id = :destinationId
          and leased_until >= now()
          and folded_place(place) = folded_place(${placeOfMoved})
          -- The slot of an attempt that has ended may be leased for a while.
          and not exists (select from delivery_attempts where delivery_attempts.id = holder)
      )
    for no key update of documents
    -- Whoever deletes the destination has taken it from the repository before.
    for share of repositories, destinations
  ), content as (
    insert into contents (id, workspace_id, store, sha256, owned_at)
    select :newId, :workspaceId, 'home', :sha256::bytea, now()
    from document
  ), home as (
    insert into home_contents (content_id, document_id, destination_id, path, digests)
    select :newId, id, :destinationId, path, :digests
    from document
  ), moved as (
    update documents
    set content_id = :newId
    from document
    where documents.id = document.id
  ), released as (
    -- Readers may finish. The job remove-orphans removes the bytes later, and retention those to which captured bodies refer.
    update contents
    set owned_at = null, created_at = now()
    from document
    where contents.id = document.content_id
  )
  select id
  from document
`

/**
 * Creates the function that leaves contents at the home of their repository. A content goes after it was read there once and has its digest. What
 * the home does not have, or has otherwise, stays here and is looked at again a day later.
 */
export const createMoveHome = (deps: MoveHomeDeps) => {
  const { db, home, onItsOwn, log } = deps
  const moves = counterOf(
    'relay_home_moves_total',
    'Contents that were to leave for their home, by outcome: `moved`, `differs` if the home did not have the bytes, or `failed` if it was away',
    ['outcome'],
    ['moved', 'differs', 'failed'].map((outcome) => ({ outcome })),
  )

  const findHomes = async (now: Date): Promise<Home[]> => {
    const { rows } = await db.raw<{ rows: Home[] }>(
      `
      select
        repositories.id as "repositoryId", repositories.workspace_id as "workspaceId", repo_id as "repoId",
        home_destination_id as "destinationId", :now::timestamptz - home_after_days * interval '1 day' as before,
        coalesce(judged_to::text, '-infinity') as "judgedTo", coalesce(judged_id, '') as "judgedId"
      from repositories
      left join home_progress on repository_id = repositories.id and destination_id = home_destination_id
      where home_destination_id is not null
        and deleted_at is null
      order by repositories.id
      `,
      { now },
    )
    return rows
  }

  /** Reads a document at its home. @returns the digests of its blocks, or why it cannot go */
  const verify = async (copy: DeliveredCopy, signal: AbortSignal): Promise<Buffer | string> => {
    const whole = createHash('sha256')
    const blocks = createBlockDigests()
    let bytes = 0
    try {
      for await (const piece of readCopy(deps, copy, { start: 0, end: copy.sizeBytes }, signal)) {
        whole.update(piece)
        blocks.update(piece)
        bytes += piece.length
      }
    } catch (thrown) {
      if (thrown instanceof CopyMissing) return thrown.message
      throw thrown
    }
    if (bytes !== copy.sizeBytes) return `it has ${bytes} bytes there instead of ${copy.sizeBytes}`
    return whole.digest().equals(copy.sha256) ? blocks.digest() : 'its bytes there are other ones'
  }

  const moveOne = async (copy: DeliveredCopy, signal: AbortSignal): Promise<'moved' | 'waits' | 'failed'> => {
    const { documentId, workspaceId, contentId, sizeBytes, sha256, location } = copy
    const subject = { document_id: documentId, destination_id: copy.destination.id }
    const readFrom = new Date()
    try {
      const digests = await verify(copy, signal)
      if (typeof digests === 'string') {
        moves.inc({ outcome: 'differs' })
        log.warn({ ...subject, reason: digests }, 'a content stays, because its home does not have it as it was delivered')
        return 'waits'
      }
      const values = {
        documentId,
        workspaceId,
        contentId,
        sizeBytes,
        sha256,
        location,
        digests,
        readFrom,
        newId: newId(),
        config: JSON.stringify(copy.destination.config),
        destinationId: copy.destination.id,
      }
      const rows = await db.transaction(async (trx) => {
        await shareHolds(trx, workspaceId)
        return (await trx.raw<{ rows: object[] }>(move, values)).rows
      })
      if (rows.length === 0) return 'waits'
      moves.inc({ outcome: 'moved' })
      return 'moved'
    } catch (thrown) {
      signal.throwIfAborted()
      if (!(thrown instanceof DeliveryError)) throw thrown
      moves.inc({ outcome: 'failed' })
      log.warn({ ...subject, reason: reasonOf(thrown) }, 'a content stays, because its home could not be read')
      return 'failed'
    }
  }

  /** Leaves documents at their home, several at a time. @returns how many went. Those that have to wait are noted */
  const leave = async (at: Home, documents: Judged[], signal: AbortSignal): Promise<number> => {
    const later = new Map(documents.flatMap(({ id, verdict, dueAt }) => (verdict === 'waits' ? [[id, dueAt] as const] : [])))
    const going = documents.flatMap(({ id, verdict }) => (verdict === 'moves' ? id : []))
    const copies = await findDelivered(db, at.destinationId, going)
    const queue = [...copies]
    let [moved, failed] = [0, 0]
    const work = async () => {
      for (let copy = queue.shift(); copy; copy = queue.shift()) {
        const how = await moveOne(copy, signal)
        if (how === 'moved') moved += 1
        if (how === 'failed') failed += 1
        if (how !== 'moved') later.set(copy.documentId, new Date(Date.now() + (how === 'failed' ? hourMs : dayMs)))
        // A home that is away is not asked for each of them.
        if (failed >= concurrentMoves && moved === 0) throw new HomeFailure('away', `${copy.destination.name} could not be read`)
      }
    }
    await Promise.all(Array.from({ length: concurrentMoves }, work))
    const ids = documents.map(({ id }) => id)
    await db('home_waiting')
      .whereIn(
        'document_id',
        ids.filter((id) => !later.has(id)),
      )
      .delete()
    const rows = [...later].map(([id, dueAt]) => ({ document_id: id, repository_id: at.repositoryId, due_at: dueAt }))
    if (rows.length > 0) await db('home_waiting').insert(rows).onConflict('document_id').merge(['due_at'])
    return moved
  }

  const judge = async (at: Home, condition: string, values: Record<string, unknown>): Promise<Judged[]> => {
    const { rows } = await db.raw<{ rows: Judged[] }>(`${judged} ${condition}`, { ...at, ...values } as never)
    return rows
  }

  /** Looks at the documents of a repository that wait and are due, then at those that were received since the last run. */
  const moveOf = async (at: Home, isLate: () => boolean, signal: AbortSignal): Promise<Omit<Moved, 'checked'>> => {
    let moved = 0
    while (!isLate()) {
      const due: { id: string }[] = await db('home_waiting')
        .select('document_id as id')
        .where({ repository_id: at.repositoryId })
        .where('due_at', '<=', db.fn.now())
        .orderBy('due_at')
        .limit(batchDocuments)
      if (due.length === 0) break
      const ids = due.map(({ id }) => id)
      moved += await leave(at, await judge(at, 'where documents.id = any (:ids) and repository_id = :repositoryId', { ids }), signal)
      // Those of documents that retention has removed.
      await db('home_waiting').whereIn('document_id', ids).where('due_at', '<=', db.fn.now()).delete()
      signal.throwIfAborted()
    }
    let { judgedTo, judgedId } = at
    while (!isLate()) {
      const next = await judge(
        at,
        `
        where documents.workspace_id = :workspaceId
          and repo_id = :repoId
          and repository_id = :repositoryId
          and received_at < :before::timestamptz
          and (received_at, documents.id) > (:judgedTo::timestamptz, :judgedId)
        order by received_at, documents.id
        limit :limit
        `,
        { judgedTo, judgedId, limit: batchDocuments },
      )
      const last = next.at(-1)
      if (!last) break
      moved += await leave(at, next, signal)
      judgedTo = last.receivedAt
      judgedId = last.id
      await db('home_progress')
        .insert({ repository_id: at.repositoryId, destination_id: at.destinationId, judged_to: judgedTo, judged_id: judgedId })
        .onConflict('repository_id')
        .merge()
      signal.throwIfAborted()
    }
    const [waiting] = await db('home_waiting').where({ repository_id: at.repositoryId }).count<{ count: number }[]>()
    return { moved, waiting: waiting!.count }
  }

  /** Reads contents again that were found altered: a copy that was restored ends the incident. */
  const checkAltered = async (signal: AbortSignal): Promise<number> => {
    const altered: { id: string; bytes: number }[] = await db('home_contents')
      .join('documents', 'documents.content_id', 'home_contents.content_id')
      .select('home_contents.content_id as id', 'documents.size_bytes as bytes')
      .whereRaw('documents.id = home_contents.document_id')
      .whereNotNull('altered_since')
      .where('checked_at', '<', db.raw(`now() - ? * interval '1 millisecond'`, [checkAgainMs]))
      .orderBy('checked_at')
      .limit(checkedPerRun)
    for (const { id, bytes } of altered) {
      try {
        for await (const piece of home.read({ id, sizeBytes: bytes })) void piece
      } catch (thrown) {
        if (!(thrown instanceof HomeFailure)) throw thrown
      }
      signal.throwIfAborted()
    }
    return altered.length
  }

  const moveHome = async (now: Date, signal: AbortSignal): Promise<Moved> => {
    const endsAt = Date.now() + runMaxMs
    const checked = await checkAltered(signal)
    const total: Moved = { moved: 0, waiting: 0, checked }
    for (const at of await findHomes(now)) {
      const subject = { repository_id: at.repositoryId, destination_id: at.destinationId }
      const done = await onItsOwn('homes', subject, () => moveOf(at, () => Date.now() >= endsAt, signal), signal)
      total.moved += done?.moved ?? 0
      total.waiting += done?.waiting ?? 0
    }
    return total
  }
  return { moveHome, metrics: [moves] as Metric[] }
}

export type MoveHome = ReturnType<typeof createMoveHome>['moveHome']
