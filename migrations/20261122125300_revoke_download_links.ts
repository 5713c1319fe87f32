// An operator revokes the download links in the mails of one destination by raising the version that new links carry.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    alter table destinations add column download_links_version integer not null default 1;
    comment on column destinations.download_links_version is
      'Signed into each download link that the destination sends. Raising it revokes the links of the previous versions.';
  `)
