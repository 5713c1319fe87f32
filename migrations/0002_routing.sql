-- Where documents come from and where they go: repositories, destinations, and the connections between them.

create table repositories (
  id text collate "C" primary key,
  workspace_id text collate "C" not null references workspaces (id) on delete cascade,
  repo_id text not null,
  name text not null,
  status text not null default 'active' check (status in ('active', 'inactive')),
  signature_verification boolean not null default false,
  signed_parameter_order text not null default 'fixed' check (signed_parameter_order in ('fixed', 'any')),
  accepts_mcreate boolean not null default true,
  code_page text not null default 'windows-1252',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz
);
comment on table repositories is
  'A content repository of the source system. A deleted one keeps its row, because documents still refer to it.';
comment on column repositories.signed_parameter_order is
  'The order of the signed parameters in a URL: that of all measured clients, or any. A fixed order leaves less freedom to read a signed '
  'URL differently.';
comment on column repositories.accepts_mcreate is
  'Whether mCreate is accepted: its signature covers the docId of the first document only.';

comment on column repositories.code_page is
  'The encoding of names in requests that are not UTF-8, such as those of a system without Unicode.';

create unique index repositories_by_repo_id on repositories (workspace_id, repo_id)
where deleted_at is null;
comment on index repositories_by_repo_id is
  'Serves the receiver''s lookup by contRep. Allows one repository per name.';

create index repositories_by_repo_id_bytes on repositories (workspace_id, repo_id collate "C")
where deleted_at is null;
comment on index repositories_by_repo_id_bytes is
  'Serves the search for repositories whose names begin alike: for every signed request, and for the warnings of a repository.';

create index repositories_of_workspace on repositories (workspace_id, id)
where deleted_at is null;
comment on index repositories_of_workspace is
  'Serves the list of repositories.';

create table destinations (
  id text collate "C" primary key,
  workspace_id text collate "C" not null references workspaces (id) on delete cascade,
  name text not null,
  connector_type text not null,
  status text not null default 'connected' check (status in ('connected', 'failing')),
  config jsonb not null,
  credentials_sealed bytea not null,
  credentials_expire_at timestamptz,
  sign_in text,
  download_links_version integer not null default 1,
  last_delivered_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz
);
comment on table destinations is
  'A delivery target. A deleted one keeps its row, because deliveries still refer to it.';
comment on column destinations.config is
  'Empty if the destination is deleted.';
comment on column destinations.credentials_sealed is
  'AES-256-GCM, see src/security/seal.ts. Credentials are never stored in plain text. Empty if the destination is deleted.';
comment on column destinations.credentials_expire_at is
  'When the credentials expire as far as they say so themselves, such as a client certificate.';
comment on column destinations.sign_in is
  'Name of the way in which the credentials sign in. Null if the connector knows only one.';
comment on column destinations.download_links_version is
  'Signed into each download link that the destination sends. Raising it revokes the links of the previous versions.';

create index destinations_of_workspace on destinations (workspace_id, id)
where deleted_at is null;
comment on index destinations_of_workspace is
  'Serves the list of destinations.';

create index destinations_by_connector_type on destinations (workspace_id, connector_type, id);
comment on index destinations_by_connector_type is
  'Serves statistics by kind of connector, which also count deleted destinations.';

create table connections (
  id text collate "C" primary key,
  workspace_id text collate "C" not null references workspaces (id) on delete cascade,
  name text not null,
  is_active boolean not null default true,
  settings jsonb not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
comment on table connections is
  'Links repositories to destinations. A deleted one leaves no row: rows that outlive a connection need only its id.';

create index connections_of_workspace on connections (workspace_id, id);
comment on index connections_of_workspace is
  'Serves the list of connections.';

create table connection_repositories (
  connection_id text collate "C" not null references connections (id) on delete cascade,
  repository_id text collate "C" not null references repositories (id) on delete cascade,
  position smallint not null,
  primary key (connection_id, repository_id)
);
comment on table connection_repositories is
  'The repositories of a connection.';
comment on column connection_repositories.position is
  'The order in which the API lists them.';

create index connections_of_repository on connection_repositories (repository_id);
comment on index connections_of_repository is
  'Serves the connections of one repository, once per received document.';

create table connection_destinations (
  connection_id text collate "C" not null references connections (id) on delete cascade,
  destination_id text collate "C" not null references destinations (id) on delete cascade,
  position smallint not null,
  primary key (connection_id, destination_id)
);
comment on table connection_destinations is
  'The destinations of a connection.';
comment on column connection_destinations.position is
  'The order in which the API lists them.';

create index connections_of_destination on connection_destinations (destination_id);
comment on index connections_of_destination is
  'Serves the connections of one destination, and the deletion of a destination.';

create table enrichments (
  id text collate "C" primary key,
  workspace_id text collate "C" not null references workspaces (id) on delete cascade,
  name text not null,
  is_active boolean not null default true,
  wait_seconds integer not null,
  late_days integer not null,
  http jsonb,
  credentials_sealed bytea,
  steps jsonb not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
comment on table enrichments is
  'The calls that fetch the business data of documents. A deleted one leaves no row.';
comment on column enrichments.http is
  'The system that steps of the kind http call. Null if there is none.';
comment on column enrichments.credentials_sealed is
  'Of the system in http. AES-256-GCM, see src/security/seal.ts. Null if it needs none.';

create index enrichments_of_workspace on enrichments (workspace_id, id);
comment on index enrichments_of_workspace is
  'Serves the list of enrichments.';

create table enrichment_repositories (
  repository_id text collate "C" not null references repositories (id) on delete cascade,
  enrichment_id text collate "C" not null references enrichments (id) on delete cascade,
  position smallint not null,
  primary key (repository_id, enrichment_id)
);
comment on table enrichment_repositories is
  'The repositories whose documents an enrichment serves.';
comment on column enrichment_repositories.position is
  'The order in which the API lists them.';

create index repositories_of_enrichment on enrichment_repositories (enrichment_id);
comment on index repositories_of_enrichment is
  'Serves the repositories of one enrichment.';

create table certificates (
  id text collate "C" primary key,
  workspace_id text collate "C" not null references workspaces (id) on delete cascade,
  repository_id text collate "C" not null references repositories (id) on delete cascade,
  auth_id text not null,
  received bytea not null,
  der bytea not null,
  subject text not null,
  issuer text not null,
  serial_number text not null,
  valid_from timestamptz not null,
  valid_to timestamptz not null,
  key_algorithm text not null,
  key_bits integer,
  signature_algorithm text not null,
  fingerprint_sha1 text not null,
  fingerprint_sha256 text not null,
  signer_id text not null,
  is_active boolean not null default false,
  is_unreviewed boolean not null default false,
  sent_from text collate "C",
  received_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (repository_id, auth_id, fingerprint_sha256)
);
comment on table certificates is
  'A certificate of a source system. It has no effect until an operator has compared its fingerprint and activated it.';
comment on column certificates.auth_id is
  'Exactly as it was sent: it resembles the certificate''s subject but is never derived from it.';
comment on column certificates.received is
  'The body of putCert, which getCert returns.';
comment on column certificates.signature_algorithm is
  'The object identifier of the algorithm with which the certificate itself is signed.';
comment on column certificates.signer_id is
  'SHA-256 of issuer and serial number, by which a signature names its signer.';
comment on column certificates.is_unreviewed is
  'Sent by putCert and never activated. Anybody can send certificates, so unreviewed ones have a limit of their own: beyond it, a new '
  'one replaces the oldest of the address that has sent most of them.';
comment on column certificates.sent_from is
  'The address, or for IPv6 the network, that sent the certificate. Null if an operator has added it.';
comment on index certificates_repository_id_auth_id_fingerprint_sha256_key is
  'Serves the lookup for a signed request and the list of a repository. A certificate that is sent again keeps its row.';
