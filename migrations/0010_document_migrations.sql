-- Documents of an old content server, copied by lists of the source system. A row of a list gets a verdict, once; the report of
-- completeness contains all of them.

create table document_migrations (
  id text collate "C" primary key,
  workspace_id text collate "C" not null references workspaces (id) on delete cascade,
  repository_id text collate "C" not null references repositories (id) on delete cascade,
  repo_id text not null,
  upstream_url text not null,
  upstream_cont_rep text not null,
  mode text not null check (mode in ('copy', 'check')),
  status text not null default 'running' check (status in ('running', 'paused', 'completed', 'cancelled')),
  documents_per_minute integer check (documents_per_minute > 0),
  lists jsonb not null,
  rows bigint not null,
  found bigint not null default 0,
  copied bigint not null default 0,
  equal bigint not null default 0,
  missing bigint not null default 0,
  different bigint not null default 0,
  damaged bigint not null default 0,
  failed bigint not null default 0,
  copied_bytes bigint not null default 0,
  waiting_reason text,
  created_at timestamptz not null default now(),
  ended_at timestamptz
);
comment on table document_migrations is
  'A run over lists of the source system. Stored here as well as in Temporal, which does the work.';
comment on column document_migrations.upstream_url is
  'The old content server that all verdicts are about. While the repository has another one, the migration waits.';
comment on column document_migrations.upstream_cont_rep is
  'The name of the repository at the old content server.';
comment on column document_migrations.mode is
  'copy: documents that are not here are fetched and kept. check: nothing is fetched; a document that the old server has is found.';
comment on column document_migrations.documents_per_minute is
  'Null if the old content server may be asked as fast as it answers.';
comment on column document_migrations.lists is
  'Of each list its name, its SHA-256, its rows, and how many of them are of other repositories.';
comment on column document_migrations.rows is
  'Rows of this repository in all lists.';
comment on column document_migrations.waiting_reason is
  'Why the last page could not be finished, such as an old content server that does not answer. Null after a page that was.';

create index document_migrations_of_workspace on document_migrations (workspace_id, id);
comment on index document_migrations_of_workspace is
  'Serves the list of migrations, newest first.';

create index document_migrations_of_repository on document_migrations (repository_id, id);
comment on index document_migrations_of_repository is
  'Serves the list of a repository, newest first, and the deletion of a repository.';


create index document_migrations_running on document_migrations (id)
where status = 'running';
comment on index document_migrations_running is
  'Serves the job that starts the workflows of running migrations.';

create table document_migration_rows (
  document_migration_id text collate "C" not null references document_migrations (id) on delete cascade,
  position bigint not null,
  list smallint not null,
  line bigint not null,
  doc_id text not null,
  erp_object_type text,
  erp_object_id text,
  ar_object text,
  archived_on date,
  barcode text,
  verdict text check (verdict in ('found', 'copied', 'equal', 'missing', 'different', 'damaged', 'failed')),
  reason text,
  components integer,
  size_bytes bigint,
  judged_at timestamptz,
  primary key (document_migration_id, position)
);
comment on table document_migration_rows is
  'Rows of the lists in their order: the source system holds the document for this business object, or for this bar code.';
comment on column document_migration_rows.list is
  'Position of its list in lists of the migration, from 0.';
comment on column document_migration_rows.verdict is
  'Null until the row is judged. found: the old server has it. copied: it was fetched and kept. equal: it is here, as the old server has it. '
  'missing: neither has it. different: both have it, with other components or lengths, and the one here was not fetched again because the '
  'source system has changed it here. damaged: the old server has it and does not deliver it whole. failed: the relay does not accept it.';
comment on column document_migration_rows.reason is
  'What was different or damaged, or why it failed.';
comment on column document_migration_rows.components is
  'The number of components of the document here, or of the one that was found.';
comment on column document_migration_rows.size_bytes is
  'The bytes of these components.';

create index document_migration_rows_open on document_migration_rows (document_migration_id, position)
where verdict is null;
comment on index document_migration_rows_open is
  'Serves the next rows of a migration.';

alter table installation
  add column signing_public_key text,
  add column signing_key_sealed bytea;
comment on column installation.signing_public_key is
  'PEM of the Ed25519 key that verifies reports of this installation. Null until the first report was made.';
comment on column installation.signing_key_sealed is
  'PEM of the private key, sealed with RELAY_SECRET_KEYS.';
