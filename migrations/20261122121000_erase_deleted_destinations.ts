// The deletion of a destination erases its config and credentials. Those that were deleted before lose them here.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    update destinations
    set config = '{}', credentials_sealed = '', last_error = null
    where deleted_at is not null;
    comment on column destinations.config is 'Empty if the destination is deleted.';
    comment on column destinations.credentials_sealed is
      'AES-256-GCM, see src/security/seal.ts. Credentials are never stored in plain text. Empty if the destination is deleted.';
  `)
