-- A repository may have an upstream: the content server that the source system used before. Its documents are fetched and kept when they
-- are first asked for.

alter table repositories
add column upstream jsonb,
add column upstream_secrets_sealed bytea;
comment on column repositories.upstream is
  'The content server that the source system used before: its address, the repository there, with which certificate requests are signed, and '
  'through which proxy they are sent. Null if there is none.';
comment on column repositories.upstream_secrets_sealed is
  'The private key of the certificate, and the address of the proxy with its user and password. AES-256-GCM, see src/security/seal.ts. Null if '
  'there are none.';

alter table documents add column origin text not null default 'source' check (origin in ('source', 'upstream'));
comment on column documents.origin is
  'source if the source system has sent the document to the relay, upstream if it was fetched from the upstream of its repository.';

alter table documents add column was_routed boolean not null default false;
comment on column documents.was_routed is
  'Of a document of the upstream: true once it has deliveries. Before, only the relay keeps it, and retention leaves its content. False for every '
  'document of the source system.';

create index documents_ended_with_content on documents (workspace_id, received_at, id)
where status in ('delivered', 'discarded', 'failed') and content_id is not null and (origin = 'source' or was_routed);
comment on index documents_ended_with_content is
  'Serves the removal of content by age. What retention leaves for ever is not in it.';

alter table archive_documents add column erased_components text[] not null default '{}';
comment on column archive_documents.erased_components is
  'Components that an operator has erased. Retention may remove their documents: the source system has not deleted them.';

create table upstream_deletions (
  repository_id text collate "C" not null references repositories (id) on delete cascade,
  doc_id text not null,
  deleted_at timestamptz not null default now(),
  by_source boolean not null,
  primary key (repository_id, doc_id)
);
comment on table upstream_deletions is
  'A docId that was deleted or erased here and may still exist upstream: it is never fetched again. Not subject to retention.';
comment on column upstream_deletions.by_source is
  'True if the source system has deleted the document: it must be deleted upstream as well before the source system is switched back. False if it '
  'was erased here only, or if a later document of the docId was removed by retention.';
comment on index upstream_deletions_pkey is
  'Serves reads of documents that the relay does not have.';

create table upstream_failures (
  repository_id text collate "C" primary key references repositories (id) on delete cascade,
  failing_since timestamptz not null default now(),
  last_error text not null,
  asked_at timestamptz not null default now()
);
comment on table upstream_failures is
  'The repositories whose upstream has not answered as a content server does. A row begins with a failure that a request of the source '
  'system has met, and is removed when the upstream answers the maintenance job check-upstreams.';
comment on column upstream_failures.asked_at is
  'The latest failure. The job asks the upstreams in this order.';
comment on index upstream_failures_pkey is
  'Serves the warnings of a repository.';
