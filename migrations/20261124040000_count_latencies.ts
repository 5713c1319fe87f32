// How long documents take from receipt to delivery, by hour: the percentiles of the statistics. The counter of a delivered attempt, whose
// detail was empty, says how long, so that no statement and no row is added. Attempts recorded before this migration stay without.
import type { Knex } from 'knex'

const key = 'workspace_id, kind, hour, repo_id, destination_id, status, detail'

const keyOf = `workspace_id, 'attempts' as kind, date_trunc('hour', started_at, 'UTC') as hour,
      coalesce((select repo_id from documents where documents.id = document_id), '') as repo_id, destination_id, outcome as status,
      coalesce(
        error_code,
        case when outcome = 'delivered' then (
          select latency_bucket(started_at + duration_ms * interval '1 millisecond' - greatest(received_at, modified_at))
          from documents
          where documents.id = document_id
        ) end,
        ''
      ) as detail`

export const up = (knex: Knex) =>
  knex.raw(`
    create function latency_bucket(latency interval) returns text language sql immutable parallel safe as $$
      select (2 ^ least(32, greatest(5, ceil(ln(greatest(1, extract(epoch from latency)::float8 * 1000)) / ln(2)))))::bigint::text
    $$;
    comment on function latency_bucket is
      'The smallest power of two that is at least as many milliseconds: 32, 64, 128 and so on.';

    create or replace function count_attempts() returns trigger language plpgsql as $$
    begin
      if tg_op = 'INSERT' then
        insert into counter_deltas (${key}, change)
        select
          ${keyOf},
          count(*)
        from new_rows
        group by ${key};
      else
        insert into counter_deltas (${key}, change)
        select
          ${keyOf},
          sum(change)
        from (
          select *, -1 as change from old_rows
          union all
          select *, 1 as change from new_rows
        ) as changed
        group by ${key}
        having sum(change) <> 0;
      end if;
      return null;
    end
    $$;

    comment on column counters.detail is
      'Of documents: acknowledged if an operator has acknowledged them. Of attempts: their error code or, if they have delivered a document, '
      'the time since it was received or appended to, as latency_bucket returns it. Otherwise empty.';
  `)
