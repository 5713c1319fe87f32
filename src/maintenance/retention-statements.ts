import { isOnHold } from '../archive/legal-holds.ts'
import { isSettled } from '../archive/removable.ts'
import { attemptKinds } from '../db/counters.ts'

// Statements that change up to `:limit` rows of a workspace that are from before `:before`.

export const removeRows = `
  delete from :table:
  where :id: in (
    select :id:
    from :table:
    where workspace_id = :workspaceId
      and :id: < :before
    order by :id:
    limit :limit
  )
    and :id: < :before
`

/**
 * SQL: a document that is locked is still the one that was judged. A transaction that opens a delivery changes its document, which
 * PostgreSQL then judges by its new version, but its deliveries as the statement has seen them at its beginning: of a document that stays
 * `failed`, an open one would be overlooked. The next run judges it again.
 */
const isUnchanged = `(
      documents.status <> 'failed'
      or documents.xmin = (
        select seen.xmin
        from documents as seen
        where seen.id = documents.id
      )
    )`

/**
 * Removes events up to the first one that is kept, and notes how far: a reader that has not come so far is told.
 */
export const removeEvents = `
  with oldest as (
    select epoch, transaction, number, bool_and(created_at < :before) over (order by epoch, transaction, number) as is_old
    from (
      select epoch, transaction, number, created_at
      from events
      where workspace_id = :workspaceId
      order by epoch, transaction, number
      limit :limit
    ) as first_events
  ), noted as (
    update workspaces
    set events_removed_to = last.id
    from (
      select lpad(to_hex(epoch), 13, '0') || lpad(to_hex(transaction), 12, '0') || lpad(to_hex(number), 12, '0') as id
      from oldest
      where is_old
      order by epoch desc, transaction desc, number desc
      limit 1
    ) as last
    where workspaces.id = :workspaceId
      and last.id > events_removed_to
  )
  delete from events
  using oldest
  where is_old
    and events.workspace_id = :workspaceId
    and events.epoch = oldest.epoch
    and events.transaction = oldest.transaction
    and events.number = oldest.number
`

/**
 * SQL: up to `:limit` ended documents of a workspace that are from before `:before`, after the ones that the run has judged. So each statement
 * ends soon and a run judges a document once, however many stay.
 */
const candidates = (condition: string) => `
    select id, received_at
    from documents
    where workspace_id = :workspaceId
      and status in ('delivered', 'discarded', 'failed')
      and ${condition}
      and received_at < :before
      -- The day of a document is that of its id: of an upload that lasts over midnight, it is a later one.
      and (received_at < :provenTo::timestamptz - interval '1 day' or id || '' < :provenId)
      and (received_at, id) > (:judgedTo::timestamptz, :judgedId)
    order by received_at, id
    limit :limit`

/** SQL: how many documents were judged, and which one was the last. */
const judged = `
    (select count(*)::integer from candidate) as judged,
    -- As text, because a Date has milliseconds only.
    (select received_at::text from candidate order by received_at desc, id desc limit 1) as "judgedTo",
    (select id from candidate order by received_at desc, id desc limit 1) as "judgedId"`

/** Disowns the content of settled documents. The job remove-orphans removes the bytes later, so that readers may finish. */
export const disownContents = `
  with candidate as materialized (${candidates(`content_id is not null
      -- A document of the upstream that was delivered nowhere is kept here only.
      and (origin = 'source' or was_routed)`)}
  ), expired as (
    select id, content_id
    from documents
    where id = any (array(select id from candidate))
      and content_id is not null
      and ${isSettled('documents')}
      and ${isUnchanged}
      and not ${isOnHold('documents')}
    for no key update skip locked
  ), disowned as (
    update documents
    set content_id = null
    from expired
    where documents.id = expired.id
  ), content as (
    -- Locked in the order of their ids, as by the captures that refer to them.
    select contents.id
    from contents
    join expired on expired.content_id = contents.id
    order by contents.id
    for no key update of contents
  ), released as (
    update contents
    set owned_at = null, created_at = now()
    from content
    where contents.id = content.id
  )
  select
    (select count(*)::integer from expired) as removed,${judged}
`

// The statements of one transaction that removes settled documents without content.

/**
 * Locks the documents to remove. A document stays while another one of its docId is not settled: if that arrives late, it finds out here that a
 * newer one lies at its path.
 */
export const lockDocuments = `
  with candidate as materialized (${candidates('content_id is null')}
  ), expired as (
    select id
    from documents
    where id = any (array(select id from candidate))
      -- Not as the index says it: the statistics do not yet know how many documents the step before has put into the index, and the
      -- planner would read it to its end. A thousand documents of 100,000 have taken 70 s.
      and coalesce(content_id, '') = ''
      and ${isSettled('documents')}
      and not exists (
        select
        from documents as other
        where other.workspace_id = documents.workspace_id
          and other.repo_id = documents.repo_id
          and other.doc_id = documents.doc_id
          and not ${isSettled('other')}
      )
      -- The manifest of the day has these.
      and coalesce(superseded_at < :provenTo::timestamptz, true)
      and not exists (select from deliveries where document_id = documents.id and greatest(delivered_at, late_receipt_at) >= :provenTo::timestamptz)
      and not ${isOnHold('documents')}
    for update skip locked
  )
  select
    array(select id from expired) as ids,${judged}
`

/**
 * Removes what belongs to the documents. Foreign keys and triggers would do it row by row: then, each document also writes the changes of
 * counters for itself.
 */
export const removeParts = ['late_data', 'deliveries', 'document_keys', 'document_enrichments'].map(
  (table) => `
  delete from ${table}
  where document_id = any (:ids)
`,
)

/**
 * Removes the documents, and the archive documents that have no document left. A document that an update has locked, or has just changed,
 * is left out.
 */
export const removeDocuments = `
  with expired as (
    select id, archive_document_id, repository_id
    from documents
    where id = any (:ids)
  ), archive_document as (
    select id
    from archive_documents
    where id in (select archive_document_id from expired)
      and modified_at < :before
      and not exists (
        -- By repository and docId, which also have an index for superseded documents. With offset 0,
        -- each is looked up. Joined, all documents were read for each.
        select
        from documents
        where workspace_id = :workspaceId
          and repo_id = (select repo_id from repositories where repositories.id = archive_documents.repository_id)
          and doc_id = archive_documents.doc_id
          and archive_document_id = archive_documents.id
          and id <> all (:ids)
        offset 0
      )
    for update skip locked
  ), removed as (
    delete from archive_documents
    using archive_document
    where archive_documents.id = archive_document.id
    returning archive_documents.repository_id, doc_id, deleted_at
  ), used_again as (
    -- The source system had deleted an earlier document of the docId, and has this one.
    update upstream_deletions
    set by_source = false
    from removed
    where upstream_deletions.repository_id = removed.repository_id
      and upstream_deletions.doc_id = removed.doc_id
      and removed.deleted_at is null
  ), counted as (
    -- A document that was never kept has no archive document, and was not counted.
    insert into repository_counts (repository_id, shard, documents)
    select repository_id, 0, -count(*)
    from expired
    where archive_document_id is not null
    group by repository_id
    on conflict (repository_id, shard) do update
    set documents = repository_counts.documents + excluded.documents
  )
  delete from documents
  where id = any (:ids)
`

/**
 * Releases the contents without a document that captured bodies of a later day do not refer to. The job remove-orphans removes the bytes
 * later, so that readers may finish.
 */
export const releaseCapturedContents = `
  with content as (
    select id
    from contents
    where workspace_id = :workspaceId
      and owned_at is null
      and captured_on < (:before::timestamptz at time zone 'UTC')::date
    order by captured_on
    limit :limit
    for no key update skip locked
  )
  update contents
  set captured_on = null, created_at = now()
  from content
  where contents.id = content.id
`

/** Removes the counters of attempts by whole hours, together with the attempts that they count. */
export const removeAttemptCounters = `
  delete from counters
  where ctid = any (array(
    select ctid
    from counters
    where workspace_id = :workspaceId
      and kind in (${attemptKinds})
      and period in ('hour', 'day')
      -- For the index, which has no use for a limit that differs from row to row.
      and since < :before::timestamptz
      and since < date_trunc(period, :before::timestamptz, 'UTC')
    limit :limit
  ))
`

// Conditions, in SQL, under which a statement above may find something in a workspace `expiry` ("workspaceId", before). Most workspaces have
// nothing to remove in most hours, and one statement for all of them takes much less time than one for each. Each asks an index for the oldest:
// whether there is an older one (`exists`), the planner may answer for all workspaces by reading the table as a whole.

const oldestEnded = `
    select min(received_at)
    from documents
    where workspace_id = expiry."workspaceId"
      and status in ('delivered', 'discarded', 'failed')`

export const mayFind = {
  // The latest time lets the planner leave the partitions of later times out.
  rows: `(select min(:id:) from :table: where workspace_id = expiry."workspaceId" and :id: < :latest) < expiry.before`,
  attemptCounters: `exists (
    select
    from (values ${attemptKinds}) as counted (kind)
    cross join (values ('hour'), ('day')) as counter (period)
    where (
      select min(since)
      from counters
      where workspace_id = expiry."workspaceId"
        and kind = counted.kind
        and period = counter.period
    ) < date_trunc(counter.period, expiry.before::timestamptz, 'UTC')
  )`,
  contents: `(${oldestEnded} and content_id is not null and (origin = 'source' or was_routed)) < expiry.before::timestamptz`,
  documents: `(${oldestEnded} and content_id is null) < expiry.before::timestamptz`,
  events: `(
    select created_at
    from events
    where workspace_id = expiry."workspaceId"
    order by epoch, transaction, number
    limit 1
  ) < expiry.before::timestamptz`,
  capturedContents: `(
    select min(captured_on)
    from contents
    where workspace_id = expiry."workspaceId"
      and owned_at is null
      and captured_on is not null
  ) < (expiry.before::timestamptz at time zone 'UTC')::date`,
}
