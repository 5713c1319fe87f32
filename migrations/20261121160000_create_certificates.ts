// Certificates of source systems. Anybody can send one: it is inert until an operator has compared its fingerprint and activated it.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    create table certificates (
      id text collate "C" primary key,
      workspace_id text collate "C" not null references workspaces (id) on delete cascade,
      repository_id text collate "C" not null references repositories (id) on delete cascade,
      -- literally as it was sent: it resembles the certificate's subject, and is never derived from it
      auth_id text not null,
      -- what getCert gives back
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
      -- SHA-256 of issuer and serial number: by these a signature names its signer
      signer_id text not null,
      is_active boolean not null default false,
      received_at timestamptz not null default now(),
      updated_at timestamptz not null default now(),
      -- serves: the look-up of a signed request and the lists of a repository, and keeps a certificate that is sent again what it was
      unique (repository_id, auth_id, fingerprint_sha256)
    );
  `)

export const down = (knex: Knex) => knex.raw('drop table certificates')
