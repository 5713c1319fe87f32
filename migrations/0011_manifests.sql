-- What was received on a day and where it is, in a form that stays when the rest is removed: docs/proof.md.

create table manifests (
  workspace_id text collate "C" not null references workspaces (id) on delete cascade,
  day date not null,
  content_id text collate "C" not null references contents (id) deferrable initially deferred,
  sha256 bytea not null,
  size_bytes bigint not null,
  documents bigint not null,
  receipts bigint not null,
  database text,
  signature bytea not null,
  certificate text not null,
  is_stamp_due boolean not null,
  stamp bytea,
  stamp_error text,
  made_at timestamptz not null default now(),
  primary key (workspace_id, day)
);
comment on table manifests is
  'The manifest of a day (UTC) of a workspace: a file in the content store, its signature and its time stamp. Never changed, but for the stamp.';
comment on column manifests.sha256 is
  'Of the file. The manifest of the next day names it.';
comment on column manifests.documents is
  'Documents that were received on that day.';
comment on column manifests.receipts is
  'Receipts of that day, of documents that were received before.';
comment on column manifests.database is
  'Identity and history of the database in which the manifest was made. Another one than that of the day before: the database was restored, '
  'replaced or promoted in between. Null if PostgreSQL does not tell.';
comment on column manifests.signature is
  'CMS SignedData in DER, detached.';
comment on column manifests.certificate is
  'PEM of the certificate whose key has signed.';
comment on column manifests.is_stamp_due is
  'A time stamp was configured when the manifest was made, and there is none yet.';
comment on column manifests.stamp is
  'Answer of the time stamping authority (RFC 3161) in DER.';
comment on column manifests.stamp_error is
  'Why the last request for a time stamp has failed.';

create unique index manifests_by_content on manifests (content_id);
comment on index manifests_by_content is
  'Serves the removal of contents.';

create index manifests_to_stamp on manifests (workspace_id, day) where is_stamp_due;
comment on index manifests_to_stamp is
  'Serves the next requests for time stamps.';

alter table workspaces
  add column closed_on date;
comment on column workspaces.closed_on is
  'The last day (UTC) that is closed: nothing that is written now belongs to it or to a day before. Set before its manifest is made.';

create function time_in_manifest(of_workspace text) returns timestamptz language plpgsql as $$
begin
  perform pg_current_xact_id();
  return greatest(clock_timestamp(), (select (closed_on + 1)::timestamp at time zone 'UTC' from workspaces where id = of_workspace));
end
$$;
comment on function time_in_manifest is
  'The time of what the transaction writes: now, but on no day that is closed. The transaction has its number before it looks, so who closes a day '
  'can wait for those that have looked before: see src/proof/make-manifests.ts.';

alter table deliveries
  add column late_receipt_at timestamptz;
comment on column deliveries.late_receipt_at is
  'When the receipt was recorded, if that was after the day of the document: it is in the manifest of that later day. By time_in_manifest().';

create index deliveries_with_late_receipt on deliveries (workspace_id, late_receipt_at, document_id, destination_id)
where late_receipt_at is not null;
comment on index deliveries_with_late_receipt is
  'Serves the manifest of a day, which has the receipts of documents that were received before.';

create table manifest_copies (
  destination_id text collate "C" not null references destinations (id) on delete cascade,
  workspace_id text collate "C" not null,
  day date not null,
  has_stamp boolean not null,
  copied_at timestamptz not null default now(),
  primary key (destination_id, day),
  foreign key (workspace_id, day) references manifests on delete cascade
);
comment on table manifest_copies is
  'A manifest that a destination of PROOF_DESTINATIONS has got.';
comment on column manifest_copies.has_stamp is
  'False if the destination got it without a time stamp: a later one is sent as well.';

create index manifest_copies_of_manifest on manifest_copies (workspace_id, day);
comment on index manifest_copies_of_manifest is
  'Serves the removal of manifests with their workspace.';

alter table installation
  add column proof_certificate text,
  add column proof_key_sealed bytea;
comment on column installation.proof_certificate is
  'PEM of the self-signed certificate that verifies manifests. Null until the first one was made.';
comment on column installation.proof_key_sealed is
  'PEM of its private key, sealed with RELAY_SECRET_KEYS.';
