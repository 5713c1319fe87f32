// Certificates of source systems. Anyone can send a certificate; it has no effect until an operator has compared its
// fingerprint and activated it.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    create table certificates (
      id text collate "C" primary key,
      workspace_id text collate "C" not null references workspaces (id) on delete cascade,
      repository_id text collate "C" not null references repositories (id) on delete cascade,
      -- exactly as it was sent: it resembles the certificate's subject but is never derived from it
      auth_id text not null,
      -- the body of putCert, which getCert returns
      received bytea not null,
      der bytea not null,
      subject text not null,
      issuer text not null,
      serial_number text not null,
      valid_from timestamptz not null,
      valid_to timestamptz not null,
      key_algorithm text not null,
      key_bits integer,
      fingerprint_sha1 text not null,
      fingerprint_sha256 text not null,
      -- SHA-256 of issuer and serial number, by which a signature names its signer
      signer_id text not null,
      is_active boolean not null default false,
      received_at timestamptz not null default now(),
      updated_at timestamptz not null default now(),
      -- serves: the lookup for a signed request and the list of a repository; a certificate that is sent again keeps
      -- its row
      unique (repository_id, auth_id, fingerprint_sha256)
    );
  `)
