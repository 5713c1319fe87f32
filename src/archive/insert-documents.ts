import { randomInt } from 'node:crypto'
import { captureRow, insertCaptures, type Capture } from '../capture/capture.ts'
import type { UnownedContent } from '../content/store.ts'
import { createStatement, type Database, type Transaction } from '../db/database.ts'
import { beginsAtOnce, startGraceMs } from '../db/starts.ts'
import type { DocumentOrigin } from '../domain/upstream.ts'
import { changedAtText, metadataPairs, type EarlyMetadata } from './early-metadata.ts'
import { lockTimeout, type LockConfig } from './locks.ts'

/** Everything that one request inserts: a column of `request` in the statement below for each field. */
export interface Insert {
  mode: 'create' | 'update' | 'discard'
  /** Null in mode `discard`. */
  archive_document_id: string | null
  workspace_id: string
  repository_id: string
  repo_id: string
  doc_id: string
  doc_prot: string | null
  erp_object_type: string | null
  erp_object_id: string | null
  ar_object: string | null
  file_name: string | null
  description: string | null
  /** When the early metadata that the insert takes were changed, with microseconds; null if it takes none. */
  early_at: string | null
  origin: DocumentOrigin
  created_at: Date
  modified_at: Date
  received_at: Date
  request_id: string
  traceparent: string | null
  enrichments: { id: string; wait_seconds: number; late_days: number }[]
  /** The longest wait for business data. */
  wait_seconds: number
  /** The lowest of the ids of the documents. */
  first_id: string
  /** The day (UTC) of that id. */
  first_on: string
  kept_documents: number
  /** Day of the captured request, if its body refers to the contents. */
  captured_on: string | null
  documents: {
    id: string
    content_id: string | null
    comp_id: string
    position: number
    content_type: string
    size_bytes: number
    status: string
    is_unconnected: boolean
    component_created_at: Date | undefined
    modified_at: Date
    is_enriched: boolean
  }[]
  deliveries: { document_id: string; destination_id: string; connection_id: string; status: string; path: string }[]
  contents: UnownedContent[]
  capture: Capture | undefined
}

export interface InsertOutcome {
  /** False if nothing was inserted. */
  inserted: boolean
  /** True if no other delivery of the workspace waits. */
  atOnce: boolean
  /** The newest document of the same docId, if its id is later than those of the documents. Nothing was inserted then. */
  later: string | null
  /** The last day (UTC) that is closed, unless the documents are of a later one. Nothing was inserted then. */
  closedOn: string | null
  /** What was told about the docId before, unless the insert takes it already. Nothing was inserted then. */
  early: EarlyMetadata | null
}

// Writers rarely meet at one of sixteen rows, and a reader can add sixteen rows up quickly.
const countShards = 16

/** Collects the bytes of a statement, which travel as one binary parameter. */
const createBytes = () => {
  const parts: Buffer[] = []
  let length = 0
  return {
    /** @returns the range of the bytes, as `substring` counts: the first one is 1 */
    add: (data: Buffer) => {
      const range = { start: length + 1, bytes: data.length }
      parts.push(data)
      length += data.length
      return range
    },
    all: () => (parts.length === 1 ? parts[0]! : Buffer.concat(parts, length)),
  }
}

/**
 * Writes what some requests insert, each whole or not at all, with one statement: archive document, contents, documents, deliveries, the
 * count of the repository and the captured request. Contents in memory are inserted; contents that are stored get their owner.
 * @param maxLockWait a value for PostgreSQL's `lock_timeout`
 * @param maxDocIdWait the same, for a docId that another transaction creates
 * @returns one outcome per insert
 * @throws errors of the database; nothing is inserted then
 */
export const writeInserts = async (
  db: Database | Transaction,
  inserts: Insert[],
  maxLockWait: string,
  maxDocIdWait = maxLockWait,
): Promise<InsertOutcome[]> => {
  const bytes = createBytes()
  const requests = inserts.map(({ contents, capture, ...request }, n) => ({
    n,
    ...request,
    contents: contents.map(({ id, sizeBytes, sha256, buffer }) => ({
      id,
      size_bytes: sizeBytes,
      sha256: sha256.toString('hex'),
      ...(buffer && bytes.add(buffer.data)),
    })),
    ...(capture && { capture: captureRow(capture), bodies: bodiesOf(capture, bytes) }),
  }))
  const rows = await statementOf(inserts)(db, {
    requests: JSON.stringify(requests),
    bytes: bytes.all(),
    maxLockWait,
    maxDocIdWait,
    startGraceMs,
    shard: randomInt(countShards),
  })
  return rows.toSorted((one, other) => one.n - other.n)
}

/** Returns a function that writes an insert by itself. */
export const writeIn = (db: Database | Transaction, config: LockConfig) => {
  const maxLockWait = lockTimeout(config)
  return async (insert: Insert): Promise<InsertOutcome> => (await writeInserts(db, [insert], maxLockWait))[0]!
}

const bodiesOf = ({ requestBody, responseBody }: Capture, bytes: ReturnType<typeof createBytes>) =>
  Object.entries({ request: requestBody, response: responseBody }).flatMap(([kind, body]) =>
    body ? [{ kind, redacted: body.redacted, pieces: body.pieces, ...(body.data && bytes.add(body.data)) }] : [],
  )

// The parts of the statement. Lists have no statistics, so the planner takes each for a hundred rows, and would rather read a whole table
// than look up as many. Arrays (`any(array(...))`) and scalar subqueries lead it to the indexes.

const request = `
  select request.*, set_config('lock_timeout', :maxDocIdWait, true) as lock_timeout
  from jsonb_to_recordset(:requests::jsonb) as request (
    n integer, mode text, archive_document_id text, workspace_id text, repository_id text, repo_id text, doc_id text, doc_prot text,
    erp_object_type text, erp_object_id text, ar_object text, file_name text, description text, early_at text, origin text, created_at timestamptz, modified_at timestamptz, received_at timestamptz, request_id text, traceparent text,
    enrichments jsonb, wait_seconds integer, first_id text, first_on date, kept_documents bigint, captured_on date,
    documents jsonb, deliveries jsonb, contents jsonb, capture jsonb, bodies jsonb)`

// Of several documents at one path, the one with the last id wins. Processes give ids by their own clocks, and one may be ahead. What was told
// before is in the paths of the deliveries, so the insert is planned again with it.
// The plan may be made while the table is small or has no statistics, when each index seems to be as good. The workspace must then not lead
// into one that has all its documents: with 6,000 of them, a create took 1.3 CPU-ms of PostgreSQL instead of 0.8.
const later = `
  select n, (
    select jsonb_build_object(${metadataPairs}, 'changedAt', ${changedAtText})
    from early_metadata
    where early_metadata.workspace_id = request.workspace_id
      and early_metadata.repo_id = request.repo_id
      and early_metadata.doc_id = request.doc_id
      and ${changedAtText} is distinct from early_at
  ) as early, (
    select max(id)
    from documents
    where documents.doc_id = request.doc_id
      and documents.repo_id = request.repo_id
      and documents.workspace_id || '' = request.workspace_id
      and documents.id >= request.first_id
  ) as id, (
    -- By a clock that is late: a day that is closed gets no more documents.
    select workspaces.closed_on::text
    from workspaces
    where workspaces.id = request.workspace_id
      and workspaces.closed_on >= first_on
  ) as closed_on
  from request`

// Concurrent creates of one docId wait for each other at the unique index, up to lock_timeout. The first commit wins. All statements insert
// in the same order, so that they cannot deadlock.
const created = `
  insert into archive_documents (id, workspace_id, repository_id, doc_id, doc_prot, created_at, modified_at)
  select archive_document_id, workspace_id, repository_id, doc_id, doc_prot, created_at, modified_at
  from request
  join later using (n)
  where mode = 'create'
    and later.id is null
    and early is null
    and closed_on is null
  order by repository_id, doc_id, n
  on conflict (repository_id, doc_id) where deleted_at is null do nothing
  returning id`

// Two updates may commit in another order than they arrived.
const updated = `
  update archive_documents
  set modified_at = greatest(archive_documents.modified_at, received_at)
  from request
  join later using (n)
  where archive_documents.id = any(array(select archive_document_id from request where mode = 'update'))
    and archive_documents.id = archive_document_id
    and later.id is null
    and early is null
    and closed_on is null
  returning archive_documents.id`

// A document that is not kept has no archive document, and still must not use the docId of one that was kept.
const discarded = `
  select n
  from request
  join later using (n)
  where mode = 'discard'
    and early is null
    and closed_on is null
    and not exists (
      select
      from archive_documents
      where archive_documents.repository_id = request.repository_id
        and archive_documents.doc_id = request.doc_id
        and deleted_at is null
    )`

const document = `
  insert into documents (
    id, workspace_id, repository_id, archive_document_id, content_id, repo_id, doc_id, comp_id, position, content_type, size_bytes,
    status, is_unconnected, erp_object_type, erp_object_id, ar_object, file_name, description, origin, was_routed, received_at, modified_at,
    component_created_at, request_id, traceparent)
  select
    planned.id, workspace_id, repository_id, archive_document_id, content_id, repo_id, doc_id, comp_id, position, content_type,
    size_bytes, status, is_unconnected, erp_object_type, erp_object_id, ar_object, file_name, description, origin,
    origin = 'upstream' and status not in ('delivered', 'discarded'), received_at, planned.modified_at, component_created_at, request_id,
    traceparent
  from taken, jsonb_to_recordset(documents) as planned (
    id text, content_id text, comp_id text, position integer, content_type text, size_bytes bigint, status text, is_unconnected boolean,
    component_created_at timestamptz, modified_at timestamptz)`

const enrichment = `
  insert into document_enrichments (document_id, workspace_id, enrichment_id, waits_until, ends_at)
  select
    planned.id, workspace_id, enriching.id, now() + enriching.wait_seconds * interval '1 second',
    now() + enriching.wait_seconds * interval '1 second' + late_days * interval '1 day'
  from taken, jsonb_to_recordset(documents) as planned (id text, is_enriched boolean),
    jsonb_to_recordset(enrichments) as enriching (id text, wait_seconds integer, late_days integer)
  where is_enriched`

const takenEarly = `
  delete from early_metadata
  using taken
  where early_at = ${changedAtText}
    and early_metadata.workspace_id = taken.workspace_id
    and early_metadata.repo_id = taken.repo_id
    and early_metadata.doc_id = taken.doc_id`

const delivery = `
  insert into deliveries (document_id, destination_id, workspace_id, connection_id, status, path, next_attempt_at, begin_at)
  select
    document_id, destination_id, workspace_id, connection_id, status, path,
    case when status = 'pending' then now() + wait_seconds * interval '1 second' end,
    -- Until then, it waits for business data, or the caller is beginning it.
    case when status = 'pending' then
      now() + case when wait_seconds > 0 then wait_seconds * 1000 when at_once then :startGraceMs else 0 end * interval '1 millisecond'
    end
  from taken
  join turn using (workspace_id)
  cross join jsonb_to_recordset(deliveries) as planned (
    document_id text, destination_id text, connection_id text, status text, path text)`

const count = `
  insert into repository_counts (repository_id, shard, documents)
  select repository_id, :shard::smallint, sum(kept_documents)
  from taken
  where kept_documents > 0
  group by repository_id
  order by repository_id
  on conflict (repository_id, shard) do update
  set documents = repository_counts.documents + excluded.documents`

const capturedBody = `
  insert into captured_bodies (request_id, kind, workspace_id, data, redacted, pieces)
  select request_id, kind, workspace_id, substring(:bytes::bytea from start for bytes), redacted, pieces
  from captured
  join taken on captured.id = capture ->> 'id', jsonb_to_recordset(bodies) as body (
    kind text, start integer, bytes integer, redacted boolean, pieces jsonb)`

const content = `
  select taken.workspace_id, taken.captured_on, planned.*
  from taken, jsonb_to_recordset(contents) as planned (id text, size_bytes bigint, sha256 text, start integer, bytes integer)`

// Each commit counts the bytes of its workspaces in this order.
const newContent = `
  insert into contents (id, workspace_id, store, size_bytes, sha256, owned_at, captured_on)
  select id, workspace_id, 'postgres', size_bytes, decode(sha256, 'hex'), now(), captured_on
  from content
  where start is not null
  order by workspace_id, id`

const contentChunk = `
  insert into content_chunks (content_id, seq, data)
  select id, 0, substring(:bytes::bytea from start for bytes)
  from content
  where bytes > 0`

// If a content has been removed, no document can refer to it, and the statement fails.
const ownedContent = `
  update contents
  set size_bytes = content.size_bytes, sha256 = decode(content.sha256, 'hex'), owned_at = now(), captured_on = content.captured_on
  from content
  where contents.id = any(array(select id from content where start is null))
    and contents.id = content.id
    and owned_at is null
    and removal_began_at is null`

const turn = `
  select workspace_id, ${beginsAtOnce('workspace.workspace_id')} as at_once
  from (select distinct workspace_id from request) as workspace`

const captured = `
  ${insertCaptures('taken.workspace_id')}
  from taken, jsonb_populate_record(null::captured_requests, taken.capture) as capture
  where taken.capture is not null
  on conflict (id) do nothing
  returning id`

/** A kind of insert, or what some of them have: contents in memory, stored contents, business data to come or told before, a captured request. */
type Part = Insert['mode'] | 'new' | 'stored' | 'enriched' | 'early' | 'capture'

const partsOf = (inserts: Insert[]): Part[] => {
  const parts = inserts.flatMap(({ mode, contents, documents, early_at: earlyAt, capture }): Part[] => [
    mode,
    ...contents.map(({ buffer }): Part => (buffer ? 'new' : 'stored')),
    ...(documents.some((each) => each.is_enriched) ? (['enriched'] as const) : []),
    ...(earlyAt === null ? [] : (['early'] as const)),
    ...(capture ? (['capture'] as const) : []),
  ])
  return [...new Set(parts)].toSorted()
}

/**
 * Creates the statement with these parts. PostgreSQL prepares each part at each execution, and calls the triggers of its table, even if it
 * has no rows: with all of them, a create alone took a quarter of a millisecond more.
 */
const createInsertStatement = (parts: Part[]) => {
  const taken: Partial<Record<Part, string>> = {
    create: 'archive_document_id in (select id from created)',
    update: 'archive_document_id in (select id from updated)',
    discard: 'n in (select n from discarded)',
  }
  const expressions: [name: string, sql: string, parts?: Part[]][] = [
    ['request', request],
    ['later', later],
    ['created', created, ['create']],
    ['updated', updated, ['update']],
    ['discarded', discarded, ['discard']],
    // The requests that insert something. All docIds are locked now.
    [
      'taken',
      `select request.*, set_config('lock_timeout', :maxLockWait, true) as later_lock_timeout
      from request
      where ${parts.flatMap((part) => taken[part] ?? []).join(' or ')}`,
    ],
    // PostgreSQL writes what nothing else reads from the last expression to the first. Other creates of the repository wait for its count.
    ['count', count],
    ['content', content, ['new', 'stored']],
    ['new_content', newContent, ['new']],
    ['content_chunk', contentChunk, ['new']],
    ['owned_content', ownedContent, ['stored']],
    ['document', document],
    ['enrichment', enrichment, ['enriched']],
    ['taken_early', takenEarly, ['early']],
    ['turn', turn],
    ['delivery', delivery],
    ['captured', captured, ['capture']],
    ['captured_body', capturedBody, ['capture']],
  ]
  const used = expressions.filter(([, , needed]) => !needed || needed.some((part) => parts.includes(part)))
  return createStatement<InsertOutcome & { n: number }>(
    `insert ${parts.join()}`,
    `
    with ${used.map(([name, sql]) => `${name} as (${sql})`).join(', ')}
    select n, n in (select n from taken) as inserted, at_once as "atOnce", later.id as later, early, closed_on as "closedOn"
    from request
    join later using (n)
    join turn using (workspace_id)
    `,
  )
}

const statements = new Map<string, ReturnType<typeof createInsertStatement>>()

const statementOf = (inserts: Insert[]) => {
  const parts = partsOf(inserts)
  const statement = statements.get(parts.join()) ?? createInsertStatement(parts)
  statements.set(parts.join(), statement)
  return statement
}
