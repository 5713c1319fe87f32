-- Documents as the source system sees them. A content is written before the document that will own it. A document is one component as it
-- was received; an archive document is the set of components with one docId.

create table repository_counts (
  repository_id text collate "C" not null references repositories (id) on delete cascade,
  shard smallint not null,
  documents bigint not null default 0,
  primary key (repository_id, shard)
);
comment on table repository_counts is
  'The number of documents that a repository has received, split over sixteen rows: documents that arrive at the same time do not wait '
  'for one row lock. A reader adds the rows up.';

create table contents (
  id text collate "C" primary key,
  workspace_id text collate "C" not null,
  store text not null check (store in ('postgres', 's3', 'files', 'home')),
  size_bytes bigint,
  sha256 bytea,
  appends integer not null default 0,
  appended_sha256 bytea,
  owned_at timestamptz,
  captured_on date,
  removal_began_at timestamptz,
  created_at timestamptz not null default now()
);
comment on table contents is
  'The bytes of a document, in PostgreSQL, S3 or a file, or at the destination that is its home. Written before the document that will own them. A maintenance job removes '
  'contents without an owner.';
comment on column contents.workspace_id is
  'Without a foreign key: the contents of a deleted workspace stay until the orphan sweep has removed them.';
comment on column contents.size_bytes is
  'The bytes that the content itself holds, without those of its segments. Null until a document owns the content, and for one at its home.';
comment on column contents.sha256 is
  'Of the bytes that the content itself holds.';
comment on column contents.appends is
  'The number of appends that have extended the content by segments.';
comment on column contents.appended_sha256 is
  'Of the content with its segments. Null until a delivery has computed it, and again after each append.';
comment on column contents.owned_at is
  'Null until a document owns the content, and again once retention has disowned it.';
comment on column contents.captured_on is
  'The day (UTC) of the last captured request with a body that refers to the content. Null if there is none, and once retention has '
  'released a content without an owner.';
comment on column contents.removal_began_at is
  'Set before the bytes are removed, which takes no transaction: no document can then own the content. The row is deleted once the '
  'bytes are gone.';

create index contents_captured on contents (workspace_id, captured_on)
where owned_at is null and captured_on is not null;
comment on index contents_captured is
  'Serves the release of contents that only captured bodies refer to.';

create index contents_orphaned on contents (created_at, id)
where owned_at is null and captured_on is null;
comment on index contents_orphaned is
  'Serves the removal of contents without an owner.';

create index contents_in_removal on contents (removal_began_at, id)
where removal_began_at is not null;
comment on index contents_in_removal is
  'Serves the next try to remove contents that could not be removed, and the metric of them.';

create table content_chunks (
  content_id text collate "C" not null references contents (id) on delete cascade,
  seq integer not null,
  data bytea not null,
  primary key (content_id, seq)
);
comment on table content_chunks is
  'The bytes of contents in PostgreSQL, 256 KiB per row: of the sizes measured (64 KiB to 4 MiB), COPY read this one fastest.';
comment on column content_chunks.data is
  'Stored out of line and uncompressed, which reads about twice as fast: most documents are compressed already.';

alter table content_chunks alter column data set storage external;

create table archive_documents (
  id text collate "C" primary key,
  workspace_id text collate "C" not null references workspaces (id) on delete cascade,
  repository_id text collate "C" not null references repositories (id) on delete cascade,
  doc_id text not null,
  doc_prot text,
  created_at timestamptz not null default now(),
  modified_at timestamptz not null default now(),
  deleted_at timestamptz,
  deleted_components text[] not null default '{}'
);
comment on table archive_documents is
  'What the source system identifies by a docId: a set of components, possibly empty.';

comment on column archive_documents.deleted_components is
  'Components that the source system has deleted, or left out of an update of the whole document, and has not sent again.';

create unique index archive_documents_by_doc_id on archive_documents (repository_id, doc_id)
where deleted_at is null;
comment on index archive_documents_by_doc_id is
  'Serves every protocol command. Allows exactly one of two simultaneous creates to succeed.';

create table documents (
  id text collate "C" primary key,
  workspace_id text collate "C" not null references workspaces (id) on delete cascade,
  repository_id text collate "C" not null references repositories (id),
  archive_document_id text collate "C",
  content_id text collate "C" references contents (id),
  repo_id text not null,
  doc_id text not null,
  comp_id text not null,
  position integer not null default 0,
  content_type text not null,
  size_bytes bigint not null,
  status text not null check (status in ('pending', 'delivered', 'retrying', 'failed', 'discarded')),
  is_unconnected boolean not null default false,
  revision integer not null default 1,
  acknowledged_at timestamptz,
  erp_object_type text,
  erp_object_id text,
  ar_object text,
  file_name text,
  description text,
  received_at timestamptz not null,
  component_created_at timestamptz,
  modified_at timestamptz not null,
  superseded_at timestamptz,
  superseded_by text check (superseded_by in ('update', 'delete')),
  request_id text collate "C" not null,
  traceparent text
);
comment on table documents is
  'One component as it was received: what the relay delivers and the API shows.';
comment on column documents.archive_document_id is
  'Null for a document that was acknowledged but not stored, because no destination was wired to its repository. Without a foreign key: '
  'archive documents are deleted only together with their workspace, after its documents.';
comment on column documents.content_id is
  'Null for a document that was not stored, and once retention or an erasure has removed the content.';
comment on column documents.status is
  'Set when the document is inserted, then derived from its deliveries by a trigger.';
comment on column documents.is_unconnected is
  'True if the document was discarded because no connection led from its repository to a destination. False if filters passed it over.';
comment on column documents.revision is
  '1 for the document as it was received. Delivering it again, after appends for example, is another revision with a workflow of its own.';
comment on column documents.acknowledged_at is
  'When an operator acknowledged that the failed or discarded document will not be delivered, or replayed the request of the discarded one. '
  'A change of the status clears it.';
comment on column documents.file_name is
  'The name of the file, without folders, that the source system or another program has told besides the bytes.';
comment on column documents.component_created_at is
  'When the first document of this component was created. Null if this document is the first.';
comment on column documents.superseded_at is
  'Set when an update replaces the document or a delete ends it. The source system no longer reads it; its deliveries continue.';
comment on column documents.superseded_by is
  'update: another document took the place of this one. delete: the source system has deleted it, or has left it out of an update of the whole.';
comment on column documents.request_id is
  'The captured request that contained the document. It may have been removed since.';
comment on column documents.traceparent is
  'The span of the request that contained the document (W3C Trace Context): the parent of its deliveries. Null if it was not traced.';

create index documents_acknowledged on documents (workspace_id, received_at, id)
where acknowledged_at is not null;
comment on index documents_acknowledged is
  'Serves the list of acknowledged documents.';

create unique index documents_by_component on documents (archive_document_id, comp_id)
where superseded_at is null;
comment on index documents_by_component is
  'Serves info, get and docGet. Allows one readable document per component.';

create index documents_by_doc_id on documents (doc_id, repo_id, workspace_id);
comment on index documents_by_doc_id is
  'Serves creates, and metadata that arrives after the bytes and names the docId. The docId comes first: see src/archive/insert-documents.ts.';

create index documents_by_received_at on documents (workspace_id, received_at, id);
comment on index documents_by_received_at is
  'Serves the list of documents, unfiltered or by date.';

create index documents_by_repository on documents (workspace_id, repo_id, received_at, id);
comment on index documents_by_repository is
  'Serves the list of documents by repository, with or without dates.';

create index documents_by_repository_and_status on documents (workspace_id, repo_id, status, received_at, id);
comment on index documents_by_repository_and_status is
  'Serves the list of documents by repository and status, with or without dates.';

create index documents_by_request on documents (request_id);
comment on index documents_by_request is
  'Serves the documents of a page of captured requests.';

create index documents_by_status on documents (workspace_id, status, received_at, id);
comment on index documents_by_status is
  'Serves the list of documents by status, with or without dates.';

create index documents_ended_without_content on documents (workspace_id, received_at, id)
where status in ('delivered', 'discarded', 'failed') and content_id is null;
comment on index documents_ended_without_content is
  'Serves the removal of documents by age.';

create index documents_failed_and_open on documents (workspace_id, received_at, id)
where status = 'failed' and acknowledged_at is null;
comment on index documents_failed_and_open is
  'Serves the list of failed documents that are not acknowledged, and bulk retries.';

create index documents_of_object_type on documents (workspace_id, upper(erp_object_type), id) where erp_object_type is not null;
comment on index documents_of_object_type is
  'Serves searches for the type of a business object.';

create index documents_superseded on documents (workspace_id, superseded_at, id) where superseded_at is not null;
comment on index documents_superseded is
  'Serves the manifest of a day, which names documents that were replaced or deleted on it.';

create index documents_unconnected_by_receipt on documents (workspace_id, received_at, id)
where is_unconnected and acknowledged_at is null;
comment on index documents_unconnected_by_receipt is
  'Serves bulk replays of all repositories.';

create index documents_unconnected_and_open on documents (workspace_id, repo_id, id)
where is_unconnected and acknowledged_at is null;
comment on index documents_unconnected_and_open is
  'Serves the search for documents that were discarded for lack of a connection, and bulk replays.';

create table early_metadata (
  workspace_id text collate "C" not null references workspaces (id) on delete cascade,
  repo_id text not null,
  doc_id text not null,
  erp_object_type text,
  erp_object_id text,
  ar_object text,
  file_name text,
  description text,
  changed_at timestamptz not null,
  is_checked boolean not null default false,
  primary key (workspace_id, repo_id, doc_id)
);
comment on table early_metadata is
  'What was told about a docId before its document has arrived. The create takes it.';
comment on column early_metadata.is_checked is
  'True once a job has looked whether the document was created at the same moment, without it.';

create index early_metadata_unchecked on early_metadata (changed_at)
where not is_checked;
comment on index early_metadata_unchecked is
  'Serves the job that looks for documents that were created at the same moment.';

create index early_metadata_by_time on early_metadata (changed_at);
comment on index early_metadata_by_time is
  'Serves the removal of what no document has taken.';

create index early_metadata_by_part on early_metadata (workspace_id, left(md5(doc_id), 2));
comment on index early_metadata_by_part is
  'Serves the limit of a workspace: a part, one of 256, is counted, and not what waits.';

create table content_segments (
  content_id text collate "C" not null references contents (id),
  append integer not null,
  start_byte bigint not null,
  segment_id text collate "C" not null references contents (id),
  workspace_id text collate "C" not null references workspaces (id) on delete cascade,
  primary key (content_id, append)
);
comment on table content_segments is
  'The bytes that appends have added to a content, in the order of start_byte. Each segment is a content of its own.';
comment on column content_segments.append is
  'The number of the last append whose bytes the segment holds.';
comment on column content_segments.start_byte is
  'Where the segment begins in the whole content.';

create unique index content_segments_by_segment on content_segments (segment_id);
comment on index content_segments_by_segment is
  'Serves the check that a removed content is no segment.';

create table workspace_storage (
  workspace_id text collate "C" not null references workspaces (id) on delete cascade,
  shard smallint not null,
  bytes bigint not null,
  primary key (workspace_id, shard)
);
comment on table workspace_storage is
  'The bytes of the contents of a workspace, split over sixteen rows: documents that arrive at the same time do not wait for one row '
  'lock. A reader adds the rows up. One of them may be negative.';

create table document_enrichments (
  document_id text collate "C" not null references documents (id) on delete cascade,
  workspace_id text collate "C" not null,
  enrichment_id text collate "C" not null,
  status text not null default 'pending' check (status in ('pending', 'complete', 'partial', 'failed', 'skipped')),
  fields jsonb not null default '{}',
  steps jsonb not null default '[]',
  attempts integer not null default 0,
  waits_until timestamptz not null,
  ends_at timestamptz not null,
  next_try_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (document_id, enrichment_id)
);
comment on table document_enrichments is
  'The business data of a document, by the enrichments of its repository: what each has found, and how far its calls are.';
comment on column document_enrichments.workspace_id is
  'Of the document, for the counters: they change after the document was deleted.';
comment on column document_enrichments.enrichment_id is
  'Without a foreign key: documents keep the fields of an enrichment that was deleted.';
comment on column document_enrichments.fields is
  'The values that were found, by the names of the fields.';
comment on column document_enrichments.steps is
  'The outcome of each call at the last try, without its answer.';
comment on column document_enrichments.waits_until is
  'The deliveries of the document do not wait for this enrichment after this time, or after its end. Those that wait for it have the same begin_at, or a later one.';
comment on column document_enrichments.ends_at is
  'No call is repeated after this time.';
comment on column document_enrichments.next_try_at is
  'When the next try is due, while the enrichment is pending. The infinite past after a request for it.';

create index documents_of_enrichment on document_enrichments (enrichment_id, document_id) where status <> 'skipped';
comment on index documents_of_enrichment is
  'Serves the latest documents that an enrichment is for, by which its incident is found.';

create index document_enrichments_due on document_enrichments (enrichment_id, next_try_at, document_id)
where status = 'pending';
comment on index document_enrichments_due is
  'Serves the dispatcher, which looks for enrichments with documents to try, and their runs, which take the oldest.';

create table document_keys (
  workspace_id text collate "C" not null,
  key text collate "C" not null,
  document_id text collate "C" not null references documents (id) on delete cascade,
  primary key (workspace_id, key, document_id)
);
comment on table document_keys is
  'What documents can be found by. Written by triggers on documents.';

create index document_keys_of_document on document_keys (document_id);
comment on index document_keys_of_document is
  'Serves changes of a business object, the deletion of documents, and searches for what many documents have.';

create index document_keys_by_end on document_keys (workspace_id, reverse(key), document_id) where key ~ '^[0-9]+$';
comment on index document_keys_by_end is
  'Serves searches for the end of a number.';

create function document_keys_of(doc_id text, erp_object_id text, file_name text, comp_id text) returns setof text language sql immutable parallel safe as $$
select distinct upper(left(key, 255))
from (
  values (doc_id), (file_name), (case when comp_id like '%.%' then comp_id end), (erp_object_id), (ltrim(erp_object_id, '0')), (substr(erp_object_id, 5)), (ltrim(substr(erp_object_id, 5), '0'))
  union all
  select substr(erp_object_id, 5, 10)
  where erp_object_id ~ '^.{4}[0-9]{14}$'
  union all
  select part
  from regexp_split_to_table(erp_object_id, '[^[:alnum:]]+') as part
  union all
  select ltrim(part, '0')
  from regexp_split_to_table(erp_object_id, '[^[:alnum:]]+') as part
) as keys (key)
where key <> ''
$$;
comment on function document_keys_of is
  'Returns what a document can be found by, in upper case: the docId, the name of the file, also where it is the component, the id of the business object, the same without its company code '
  '(the first four characters), in an accounting document also without the fiscal year (the last four digits of 18), its parts between other characters than letters and digits, and each of them without leading zeros.';

create function document_field_keys(fields jsonb) returns setof text language sql immutable parallel safe as $$
select distinct upper(left(key, 255))
from jsonb_each_text(fields) as field (name, value)
cross join lateral (values (value), (ltrim(value, '0')), (name || ':' || value)) as keys (key)
where key <> ''
$$;
comment on function document_field_keys is
  'Returns what a document can be found by, of its fields, in upper case: each value, also without leading zeros, and each value behind the '
  'name of its field and a colon.';

create function add_document_keys() returns trigger language plpgsql as $$
begin
  insert into document_keys (workspace_id, key, document_id)
  select workspace_id, key, id
  from added, document_keys_of(doc_id, erp_object_id, file_name, comp_id) as key;
  return null;
end
$$;
comment on function add_document_keys is
  'Writes the keys of new documents.';

create trigger add_document_keys
  after insert on documents
  referencing new table as added
  for each statement
  execute function add_document_keys();

create table legal_holds (
  id text collate "C" primary key,
  workspace_id text collate "C" not null references workspaces (id) on delete cascade,
  scope text not null check (scope in ('document', 'business_object', 'repository')),
  repo_id text,
  doc_id text,
  erp_object_type text,
  erp_object_id text,
  reason text not null,
  documents bigint not null,
  set_by text,
  created_at timestamptz not null default now()
);
comment on table legal_holds is
  'Holds: while one is set, nothing removes the documents of its subject, also those that arrive later. A lifted hold has no row: the audit log has it.';
comment on column legal_holds.documents is
  'Documents to which it applied when it was set.';
comment on column legal_holds.set_by is
  'Name of the API key or person that has set it. Null if it was set on the command line.';

create index legal_holds_of_workspace on legal_holds (workspace_id, id);
comment on index legal_holds_of_workspace is
  'Serves the list of holds, and the deletion of a workspace.';

create table legal_hold_keys (
  workspace_id text collate "C" not null references workspaces (id) on delete cascade,
  key text collate "C" not null,
  hold_id text collate "C" not null references legal_holds (id) on delete cascade,
  repo_id text,
  doc_id text,
  primary key (workspace_id, key, hold_id)
);
comment on table legal_hold_keys is
  'What a hold applies to, by legal_hold_keys_of. A document that leaves a business object on hold gets a key of its own.';
comment on column legal_hold_keys.repo_id is
  'The repository of the key. Null for a business object. doc_id is null for a repository as well.';
comment on index legal_hold_keys_pkey is
  'Serves the question if a document is on hold.';

create index legal_hold_keys_of_hold on legal_hold_keys (hold_id);
comment on index legal_hold_keys_of_hold is
  'Serves the lifting of a hold.';

create function object_key_of(erp_object_type text, erp_object_id text) returns text language sql immutable parallel safe as $$
-- The locale C of a database has only the letters of ASCII in two cases.
select 'object ' || length(btrim(erp_object_type)) || ' ' || upper((btrim(erp_object_type) || ' '
  || regexp_replace(btrim(erp_object_id), '(^|[^[:alnum:]])0+(?=[[:alnum:]])', '\1', 'g')) collate "und-x-icu")
$$;
comment on function object_key_of is
  'Returns the same for all ways to write a business object: in any case, without outer blanks, and without leading zeros of the key and of its '
  'separated parts.';

create index documents_of_object on documents (workspace_id, object_key_of(erp_object_type, erp_object_id) collate "C", received_at, id)
where erp_object_id is not null;
comment on index documents_of_object is
  'Serves the documents to which a hold on a business object applies.';

create function legal_hold_keys_of(repo_id text, doc_id text, erp_object_type text, erp_object_id text) returns text[] language sql immutable parallel safe as $$
select array[
  'repository ' || repo_id,
  'document ' || repo_id || ' ' || doc_id,
  object_key_of(erp_object_type, erp_object_id)
]
$$;
comment on function legal_hold_keys_of is
  'Returns the keys of the holds that apply to a document: on its repository, on its docId, and on its business object. Null for what it has not.';

create function share_legal_holds(of_workspace text) returns void language sql as $$
select pg_advisory_xact_lock_shared(hashtextextended('legal holds of ' || of_workspace, 0))
$$;
comment on function share_legal_holds is
  'Has a new hold wait until the transaction has ended. What removes documents begins with it, and then reads which are on hold.';

create function keep_on_legal_hold() returns trigger language plpgsql as $$
begin
  perform share_legal_holds(old.workspace_id);
  insert into legal_hold_keys (workspace_id, key, hold_id, repo_id, doc_id)
  select workspace_id, (legal_hold_keys_of(old.repo_id, old.doc_id, null, null))[2], hold_id, old.repo_id, old.doc_id
  from legal_hold_keys
  where workspace_id = old.workspace_id
    and key = object_key_of(old.erp_object_type, old.erp_object_id)
  on conflict do nothing;
  return null;
end
$$;
comment on function keep_on_legal_hold is
  'Keeps a document on hold that leaves the business object to which the hold applies.';

create trigger keep_on_legal_hold
  after update of erp_object_type, erp_object_id on documents
  for each row
  when ((old.erp_object_type, old.erp_object_id) is distinct from (new.erp_object_type, new.erp_object_id)
    and old.erp_object_type is not null and old.erp_object_id is not null)
  execute function keep_on_legal_hold();

create function count_stored_bytes() returns trigger language plpgsql as $$
begin
  -- Nothing is counted for a workspace that is being deleted.
  insert into workspace_storage (workspace_id, shard, bytes)
  select id, (txid_current() % 16)::smallint, coalesce(new.size_bytes, 0) - coalesce(old.size_bytes, 0)
  from workspaces
  where id = coalesce(new.workspace_id, old.workspace_id)
  on conflict (workspace_id, shard) do update
  set bytes = workspace_storage.bytes + excluded.bytes;
  return null;
end
$$;
comment on function count_stored_bytes is
  'Keeps workspace_storage equal to the sum of contents.size_bytes. The row that it locks is the last lock of a transaction, which cannot '
  'deadlock: it runs at the commit, and the shard follows from the transaction.';

create constraint trigger content_inserted
  after insert on contents deferrable initially deferred
  for each row
  when (new.size_bytes is not null)
  execute function count_stored_bytes();
comment on trigger content_inserted on contents is
  'A small content is inserted together with its document.';

create constraint trigger content_measured
  after update of size_bytes on contents deferrable initially deferred
  for each row
  when (old.size_bytes is distinct from new.size_bytes)
  execute function count_stored_bytes();
comment on trigger content_measured on contents is
  'A large content gets its size when a document owns it.';

create constraint trigger content_removed
  after delete on contents deferrable initially deferred
  for each row
  when (old.size_bytes is not null)
  execute function count_stored_bytes();
comment on trigger content_removed on contents is
  'The orphan sweep has removed a content.';

create function replace_document_keys() returns trigger language plpgsql as $$
declare
  row jsonb := case when tg_op = 'DELETE' then to_jsonb(old) else to_jsonb(new) end;
  changed text := coalesce(row ->> 'document_id', row ->> 'id');
begin
  delete from document_keys where document_id = changed;
  insert into document_keys (workspace_id, key, document_id)
  select workspace_id, key, id
  from documents
  cross join lateral (
    select key from document_keys_of(doc_id, erp_object_id, file_name, comp_id) as key
    union
    select key from document_enrichments, document_field_keys(fields) as key where document_id = documents.id
  ) as keys
  where id = changed;
  return null;
end
$$;
comment on function replace_document_keys is
  'Writes the keys of a document whose business object, file name or fields have changed.';

create trigger replace_document_keys
  after update of erp_object_id, file_name on documents
  for each row
  when ((old.erp_object_id, old.file_name) is distinct from (new.erp_object_id, new.file_name))
  execute function replace_document_keys();

create trigger replace_document_keys
  after update of fields on document_enrichments
  for each row
  when (old.fields is distinct from new.fields)
  execute function replace_document_keys();

create trigger remove_field_keys
  after delete on document_enrichments
  for each row
  when (old.fields <> '{}')
  execute function replace_document_keys();
