// Counts the deliveries that need attention by destination and error code, so that they can be grouped without being read. Among a million
// documents, grouping 70,000 of them took 80 times as long as grouping 70 among a thousand, and a search for an error code 170 times as long.
import type { Knex } from 'knex'

const key = 'workspace_id, kind, hour, repo_id, destination_id, status, detail'

const keyOfDelivery = `workspace_id, 'deliveries' as kind, date_trunc('hour', status_since, 'UTC') as hour,
      (select repo_id from documents where documents.id = document_id) as repo_id, destination_id, status, '' as detail`

const keyOfFailure = `workspace_id, 'failures' as kind, date_trunc('hour', status_since, 'UTC') as hour, '' as repo_id, destination_id, status,
      coalesce(last_error_code, 'none') as detail`

// While a statement moves a delivery to another status, needs_attention still belongs to the previous one.
const isFailure = `(needs_attention and status in ('failed', 'cancelled') or status = 'retrying')`

const changes = `(
          select *, -1 as change from old_rows
          union all
          select *, 1 as change from new_rows
        ) as changed`

/** Returns statements that add the changes of a statement on `deliveries` to counter_deltas. */
const countingOf = (rows: string, change: string, having = '') =>
  [
    { keyOf: keyOfDelivery, where: '' },
    { keyOf: keyOfFailure, where: `where ${isFailure}` },
  ]
    .map(
      ({ keyOf, where }) => `
        insert into counter_deltas (${key}, change)
        select
          ${keyOf},
          ${change}
        from ${rows}
        ${where}
        group by ${key}
        ${having};`,
    )
    .join('\n')

export const up = async (knex: Knex) => {
  // Reading all failed deliveries of a large installation takes longer than any other statement may.
  await knex.raw('set local statement_timeout = 0')
  await knex.raw(`
    alter table deliveries add column needs_attention boolean not null default false;
    comment on column deliveries.needs_attention is
      'The delivery has failed or was cancelled, its document has failed, and nobody has acknowledged that. Kept by triggers.';

    alter table counters drop constraint counters_kind_check;
    alter table counters add constraint counters_kind_check check (kind in ('documents', 'deliveries', 'attempts', 'failures'));
    comment on column counters.detail is
      'Of documents: acknowledged if an operator has acknowledged them. Of attempts: their error code or, if they have delivered a document, '
      'the time since it was received or appended to, as latency_bucket returns it. Of failures: the code of the last error, or none. Otherwise empty.';
    comment on column counters.destination_id is 'Empty for documents.';
    comment on column counters.repo_id is 'The repository of the document. Empty for an attempt whose document was deleted, and for failures.';
    comment on table counters is
      'The number of documents, deliveries and attempts by hour, by day and altogether: a total adds up few rows. Failures are the deliveries '
      'that are retried or need attention, once more by error code. Without foreign keys, because only triggers and the job fold-counters write '
      'it; the deletion of a workspace removes its counters.';

    create function mark_failures(of_document text) returns void language sql as $$
      update deliveries
      set needs_attention = not needs_attention
      from documents
      where documents.id = of_document
        and document_id = of_document
        and needs_attention <> (deliveries.status in ('failed', 'cancelled') and documents.status = 'failed' and acknowledged_at is null)
    $$;
    comment on function mark_failures is 'Sets needs_attention of the deliveries of a document.';
  `)
  await knex.raw(`
    create or replace function update_document_status() returns trigger language plpgsql as $$
    begin
      perform 1 from documents where id = new.document_id for no key update;
      update documents
      set status = derive_document_status(new.document_id), acknowledged_at = null
      where id = new.document_id
        and status <> derive_document_status(new.document_id);
      if old.status in ('failed', 'cancelled') or new.status in ('failed', 'cancelled') then
        perform mark_failures(new.document_id);
      end if;
      return null;
    end
    $$
  `)
  await knex.raw(`
    create function mark_failures_of_delivery() returns trigger language plpgsql as $$
    begin
      perform mark_failures(new.document_id);
      return null;
    end
    $$;
    comment on function mark_failures_of_delivery is 'Sets needs_attention of a delivery that was inserted with its final status.';
    create trigger failures_added
      after insert on deliveries
      for each row
      when (new.status in ('failed', 'cancelled'))
      execute function mark_failures_of_delivery();

    create function mark_failures_of_document() returns trigger language plpgsql as $$
    begin
      perform mark_failures(new.id);
      return null;
    end
    $$;
    comment on function mark_failures_of_document is 'Sets needs_attention of the deliveries of a document that fails or is acknowledged.';
    create trigger failures_changed
      after update of status, acknowledged_at on documents
      for each row
      when ((old.status = 'failed' and old.acknowledged_at is null) is distinct from (new.status = 'failed' and new.acknowledged_at is null))
      execute function mark_failures_of_document();
  `)
  // Creating the triggers has locked the tables against changes, so that no delivery is left out or counted twice.
  await knex.raw(`
    update deliveries
    set needs_attention = true
    from documents
    where documents.id = document_id
      and deliveries.status in ('failed', 'cancelled')
      and documents.status = 'failed'
      and acknowledged_at is null
  `)
  await knex.raw(`
    create or replace function count_deliveries() returns trigger language plpgsql as $$
    begin
      if tg_op = 'INSERT' then
        ${countingOf('new_rows', 'count(*)')}
      elsif tg_op = 'UPDATE' then
        ${countingOf(changes, 'sum(change)', 'having sum(change) <> 0')}
      else
        ${countingOf('old_rows', '-count(*)')}
      end if;
      return null;
    end
    $$;

    insert into counters (workspace_id, kind, period, since, repo_id, destination_id, status, detail, count)
    select workspace_id, kind, period.name, period.since, repo_id, destination_id, status, detail, sum(count)
    from (
      select
        ${keyOfFailure},
        count(*) as count
      from deliveries
      where ${isFailure}
      group by ${key}
    ) as hours
    cross join lateral (
      values ('hour', hour), ('day', date_trunc('day', hour, 'UTC')), ('all', '-infinity')
    ) as period (name, since)
    group by workspace_id, kind, period.name, period.since, repo_id, destination_id, status, detail;

    create index failures_by_time on deliveries (destination_id, status, coalesce(last_error_code, 'none'), status_since)
      where needs_attention or status = 'retrying';
    comment on index failures_by_time is 'Serves the oldest and the newest failure of a group, and failures of a minimum age.';
    create index deliveries_by_error on deliveries (destination_id, status, coalesce(last_error_code, 'none'), document_id)
      where last_error is not null;
    comment on index deliveries_by_error is
      'Serves the search for documents by the code of an error.';
  `)
}
