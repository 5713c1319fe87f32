// How many documents, deliveries and attempts there are, by hour: for the totals of lists, the statistics and the metrics. Counting the rows
// themselves takes 17 times as long for a million documents as for a thousand. Triggers count them, because rows change in many ways.
import type { Knex } from 'knex'

const key = 'workspace_id, kind, hour, repo_id, destination_id, status, detail'

interface Counted {
  table: 'documents' | 'deliveries' | 'attempts'
  /** The columns of `key`. */
  keyOf: string
}

const counted: Counted[] = [
  {
    table: 'documents',
    keyOf: `workspace_id, 'documents' as kind, date_trunc('hour', received_at, 'UTC') as hour, repo_id, '' as destination_id, status,
      case when acknowledged_at is null then '' else 'acknowledged' end as detail`,
  },
  {
    table: 'deliveries',
    keyOf: `workspace_id, 'deliveries' as kind, date_trunc('hour', status_since, 'UTC') as hour,
      (select repo_id from documents where documents.id = document_id) as repo_id, destination_id, status, '' as detail`,
  },
  {
    table: 'attempts',
    keyOf: `workspace_id, 'attempts' as kind, date_trunc('hour', started_at, 'UTC') as hour,
      coalesce((select repo_id from documents where documents.id = document_id), '') as repo_id, destination_id, outcome as status,
      coalesce(error_code, '') as detail`,
  },
]

const tableOf = ({ table }: Counted) => (table === 'attempts' ? 'delivery_attempts' : table)

/** Returns the function that adds the changes of a statement to counter_deltas. */
const functionOf = ({ table, keyOf }: Counted) => `
  create function count_${table}() returns trigger language plpgsql as $$
  begin
    if tg_op = 'INSERT' then
      insert into counter_deltas (${key}, change)
      select
        ${keyOf},
        count(*)
      from new_rows
      group by ${key};
    elsif tg_op = 'UPDATE' then
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
    else
      insert into counter_deltas (${key}, change)
      select
        ${keyOf},
        -count(*)
      from old_rows
      group by ${key};
    end if;
    return null;
  end
  $$;

  create trigger ${table}_added
    after insert on ${tableOf({ table, keyOf })}
    referencing new table as new_rows
    for each statement execute function count_${table}();
  create trigger ${table}_changed
    after update on ${tableOf({ table, keyOf })}
    referencing old table as old_rows new table as new_rows
    for each statement execute function count_${table}();
`

const removalOf = ({ table }: Counted) => `
  create trigger ${table}_removed
    after delete on ${table}
    referencing old table as old_rows
    for each statement execute function count_${table}();
`

/** Counts the rows that exist. */
const fillOf = (counts: Counted) => `
  insert into counters (workspace_id, kind, period, since, repo_id, destination_id, status, detail, count)
  select workspace_id, kind, period.name, period.since, repo_id, destination_id, status, detail, sum(count)
  from (
    select
      ${counts.keyOf},
      count(*) as count
    from ${tableOf(counts)}
    group by ${key}
  ) as hours
  cross join lateral (
    values ('hour', hour), ('day', date_trunc('day', hour, 'UTC'))${counts.table === 'attempts' ? '' : `, ('all', '-infinity')`}
  ) as period (name, since)
  group by workspace_id, kind, period.name, period.since, repo_id, destination_id, status, detail;
`

export const up = async (knex: Knex) => {
  // Counting the rows of a large installation takes longer than any other statement may.
  await knex.raw('set local statement_timeout = 0')
  await knex.raw(`
    create table counter_deltas (
      workspace_id text collate "C" not null,
      kind text collate "C" not null,
      hour timestamptz not null,
      repo_id text collate "C" not null,
      destination_id text collate "C" not null,
      status text collate "C" not null,
      detail text collate "C" not null,
      change bigint not null
    );
    comment on table counter_deltas is
      'Changes of counters that the job fold-counters has not added to them yet. Every transaction adds rows of its own, so none waits for '
      'another. The number of rows with a key is the sum of its counter and of its changes, read in one statement.';
    create index counter_deltas_of_workspace on counter_deltas (workspace_id, kind);
    comment on index counter_deltas_of_workspace is 'Serves every reader of counters.';

    create table counters (
      workspace_id text collate "C" not null,
      kind text collate "C" not null check (kind in ('documents', 'deliveries', 'attempts')),
      period text collate "C" not null check (period in ('hour', 'day', 'all')),
      since timestamptz not null,
      repo_id text collate "C" not null,
      destination_id text collate "C" not null,
      status text collate "C" not null,
      detail text collate "C" not null,
      count bigint not null,
      primary key (workspace_id, kind, period, since, repo_id, destination_id, status, detail)
    );
    comment on table counters is
      'The number of documents, deliveries and attempts by hour, by day and altogether: a total adds up few rows. Without foreign keys, '
      'because only triggers and the job fold-counters write it; the deletion of a workspace removes its counters.';
    comment on column counters.period is 'Attempts are counted by hour and by day only: retention removes them.';
    comment on column counters.since is
      'The start of the hour or day in UTC in which a document was received, a delivery got its status or an attempt started; -infinity '
      'for the period all.';
    comment on column counters.repo_id is 'The repository of the document. Empty for an attempt whose document was deleted.';
    comment on column counters.destination_id is 'Empty for documents.';
    comment on column counters.status is 'The status of a document or delivery, or the outcome of an attempt.';
    comment on column counters.detail is
      'Of documents: acknowledged if an operator has acknowledged them. Of attempts: their error code. Otherwise empty.';
    comment on constraint counters_pkey on counters is 'Serves the totals and the statistics of a workspace.';
    create index counters_of_nothing on counters (workspace_id) where count = 0;
    comment on index counters_of_nothing is 'Serves the removal of counters that have become 0.';

    ${counted.map(functionOf).join('')}
    ${counted
      .filter(({ table }) => table !== 'attempts')
      .map(removalOf)
      .join('')}
    comment on function count_documents is 'Adds the changes of a statement to counter_deltas: one row for each key whose number changes.';
    comment on function count_deliveries is 'Adds the changes of a statement to counter_deltas: one row for each key whose number changes.';
    comment on function count_attempts is
      'Adds the changes of a statement to counter_deltas: one row for each key whose number changes. Retention removes attempts together '
      'with their counters, without this function.';

    create function remove_deliveries() returns trigger language plpgsql as $$
    begin
      delete from deliveries where document_id = old.id;
      return old;
    end
    $$;
    comment on function remove_deliveries is
      'Deletes the deliveries of a document before the document, whose repository count_deliveries needs. The foreign key deletes them later.';
    create trigger document_deliveries_removed
      before delete on documents
      for each row execute function remove_deliveries();
  `)
  // The triggers have locked the tables against changes, so that no row is counted twice or not at all.
  for (const each of counted) await knex.raw(fillOf(each))
}
