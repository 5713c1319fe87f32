// The API keys of a deleted member are revoked, and stay: the list of keys and the audit log refer to them.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    alter table api_keys
      drop constraint api_keys_member_id_fkey,
      add constraint api_keys_member_id_fkey foreign key (member_id) references members (id) on delete set null;
    comment on column api_keys.member_id is
      'Null if the key belongs to nobody, or was revoked because its member was deleted.';
  `)
