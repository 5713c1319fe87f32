-- Workspaces, and who may use them.

create table workspaces (
  id text collate "C" primary key,
  user_slug text not null,
  workspace_slug text not null,
  compliance_tier boolean not null default false,
  settings jsonb not null default '{}',
  rfc_credentials_sealed bytea,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (user_slug, workspace_slug)
);
comment on table workspaces is
  'A tenant: every other row belongs to one workspace.';
comment on column workspaces.settings is
  'Only the values that differ from the defaults in src/domain/settings.ts.';
comment on column workspaces.rfc_credentials_sealed is
  'The credentials that the bridge uses, sealed like those of destinations. Separate from settings, which are read for every document.';
comment on index workspaces_user_slug_workspace_slug_key is
  'Serves every request, to find the workspace that its path names.';

create table members (
  id text collate "C" primary key,
  workspace_id text collate "C" not null references workspaces (id) on delete cascade,
  email text not null,
  name text not null,
  created_at timestamptz not null default now(),
  unique (workspace_id, email)
);
comment on table members is
  'A person whom API keys and audit entries can name.';
comment on index members_workspace_id_email_key is
  'Allows one member per e-mail address and workspace.';

create table api_keys (
  id text collate "C" primary key,
  workspace_id text collate "C" not null references workspaces (id) on delete cascade,
  member_id text collate "C" references members (id) on delete set null,
  name text not null,
  level text not null check (level in ('viewer', 'member', 'admin')),
  secret_sha256 bytea not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  created_at timestamptz not null default now()
);
comment on table api_keys is
  'An API key. Only the SHA-256 of its secret is stored.';
comment on column api_keys.member_id is
  'Null if the key belongs to no member, or was revoked because its member was deleted.';

create index api_keys_of_workspace on api_keys (workspace_id, id);
comment on index api_keys_of_workspace is
  'Serves the list of API keys.';

create table installation (
  id text collate "C" primary key,
  is_only_row boolean not null default true unique check (is_only_row),
  stall jsonb
);
comment on table installation is
  'One row: the id of this installation, a ULID. Webhook requests carry it, so that the relay refuses a document that it has sent itself.';
comment on column installation.stall is
  'The time in which deliveries are due and not made, and what the operator was told about it. Null if there is none.';
comment on index installation_is_only_row_key is
  'Allows one row.';

create table idempotency_keys (
  workspace_id text collate "C" not null references workspaces (id) on delete cascade,
  owner text collate "C" not null,
  key text collate "C" not null,
  execution_id text collate "C" not null,
  request_sealed bytea not null,
  changed_id text collate "C",
  answer_sealed bytea,
  locked_until timestamptz not null,
  expires_at timestamptz not null,
  primary key (workspace_id, owner, key)
);
comment on table idempotency_keys is
  'A POST with an Idempotency-Key, and its answer.';
comment on column idempotency_keys.owner is
  'Who has sent the request: api_key with the id of the key, or user with the id of the person at the sign-in provider.';
comment on column idempotency_keys.key is
  'As the client sent it in Idempotency-Key.';
comment on column idempotency_keys.execution_id is
  'The execution that may change something and store the answer.';
comment on column idempotency_keys.request_sealed is
  'The digest of the request. Sealed, because the digest of a body with a short password would allow guessing the password.';
comment on column idempotency_keys.changed_id is
  'The subject of the first audit entry of the execution, written in the transaction of the change: the change is committed. Null as long as it is not.';
comment on column idempotency_keys.answer_sealed is
  'Status, headers and body. Sealed, because an answer can contain a new API key. Null while the request is executed.';
comment on column idempotency_keys.locked_until is
  'An execution without an answer is considered lost after this time.';

create index idempotency_keys_by_expiry on idempotency_keys (expires_at);
comment on index idempotency_keys_by_expiry is
  'Serves the removal of expired keys.';

create table required_migrations (
  name text collate "C" primary key
);
comment on table required_migrations is
  'Migrations that a version of the relay must contain to use this database. A process that does not contain one of them refuses to '
  'start. A migration that removes something inserts the first migration of the release that does not use it any more.';
