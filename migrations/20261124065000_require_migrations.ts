// A process accepts a database that is newer than itself, because migrations expand the schema first. A migration that contracts the
// schema says here which processes it excludes.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    create table required_migrations (
      name text collate "C" primary key
    );
    comment on table required_migrations is
      'Migrations that a version of the relay must contain to use this database. A process that does not contain one of them refuses to start. A migration that removes something inserts the first migration of the release that does not use it any more.';
  `)
