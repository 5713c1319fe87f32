// Metrics that say something about all rows. A scrape must not read all rows, so a maintenance job computes them.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    create table aggregates (
      metric text collate "C" not null,
      labels jsonb not null,
      value double precision not null,
      primary key (metric, labels)
    );
    comment on table aggregates is 'Values of metrics that the job compute-metrics has computed. Every API process exports them.';
    comment on column aggregates.value is
      'Of a metric that is an age or a remaining time: the point in time that it is measured from, in seconds since 1970. The age '
      'so grows while no worker computes.';
  `)
