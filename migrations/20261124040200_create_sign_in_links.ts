// A link that signs a browser in at the console once, so that nobody has to copy a key.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    create table sign_in_links (
      token_sha256 bytea primary key,
      key_id text collate "C" not null references api_keys (id) on delete cascade,
      expires_at timestamptz not null
    );
    comment on table sign_in_links is
      'Links that sign a browser in at the console with an API key. A link works once: its row is deleted with its use. Few rows exist at a time.';
    create index sign_in_links_of_key on sign_in_links (key_id);
    comment on index sign_in_links_of_key is 'Serves the deletion of a workspace with its API keys.';
  `)
