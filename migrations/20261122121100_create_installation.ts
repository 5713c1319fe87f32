// The id of this installation, by which the relay recognises a request that it has sent itself.
import type { Knex } from 'knex'
import { ulid } from 'ulid'

export const up = async (knex: Knex) => {
  await knex.raw(`
    create table installation (
      id text collate "C" primary key,
      is_only_row boolean not null default true unique check (is_only_row)
    );
    comment on table installation is
      'One row: the id of this installation. Webhook requests carry it, so that the relay refuses a document that it has sent itself.';
    comment on index installation_is_only_row_key is 'Allows one row.';
  `)
  await knex('installation').insert({ id: ulid() })
}
