-- How many documents, deliveries, attempts and failures there are, by hour: for the totals of lists, the statistics and the metrics.
-- Counting the rows themselves takes 17 times as long for a million documents as for a thousand, and grouping failures 80 times. Triggers
-- count, because rows change in many ways.

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
comment on index counter_deltas_of_workspace is
  'Serves every reader of counters.';

create table counters (
  workspace_id text collate "C" not null,
  kind text collate "C" not null check (
    kind in (
      'documents', 'deliveries', 'all_deliveries', 'destination_deliveries', 'attempts', 'all_attempts', 'destination_attempts', 'failures',
      'enrichments'
    )
  ),
  period text collate "C" not null check (period in ('hour', 'day', 'all')),
  since timestamptz not null,
  repo_id text collate "C" not null,
  destination_id text collate "C" not null,
  status text collate "C" not null,
  detail text collate "C" not null,
  count bigint not null,
  primary key (workspace_id, kind, period, since, repo_id, destination_id, status, detail) include (count)
);
comment on table counters is
  'The number of documents, deliveries and attempts by hour, by day and altogether: a total adds up few rows. Failures are the deliveries '
  'that are retried or need attention, once more by error code; enrichments are the documents that have one. Without foreign keys, because only triggers and the job fold-counters '
  'write it; the deletion of a workspace removes its counters.';
comment on column counters.kind is
  'all_deliveries and all_attempts are the sums over all destinations, destination_deliveries and destination_attempts those over all repositories: statistics '
  'of a workspace with thousands of either read them instead of the numbers of each.';
comment on column counters.period is
  'Attempts are counted by hour and by day only: retention removes them.';
comment on column counters.since is
  'The start of the hour or day in UTC in which a document was received, a delivery got its status, an attempt started or the wait for an '
  'enrichment ends; -infinity for the period all.';
comment on column counters.repo_id is
  'The repository of the document. Empty for an attempt whose document was deleted, for failures, for enrichments, and for the sums over all repositories.';
comment on column counters.destination_id is
  'Empty for documents, enrichments, and the sums over all destinations.';
comment on column counters.status is
  'The status of a document, delivery or enrichment, or the outcome of an attempt.';
comment on column counters.detail is
  'Of documents: acknowledged if an operator has acknowledged them, otherwise unconnected if they were discarded for lack of a connection. Of attempts: their error code or, if they have delivered a document, '
  'the time since it was received or appended to, as latency_bucket returns it. Of failures: the code of the last error, or none. '
  'Of enrichments: the id of the enrichment. Otherwise empty.';
comment on index counters_pkey is
  'Serves the totals and the statistics of a workspace. They add up thousands of counters, each in another page, so it has the count as well.';

create index counters_of_nothing on counters (workspace_id)
where count = 0;
comment on index counters_of_nothing is
  'Serves the removal of counters that have become 0.';

create table aggregates (
  metric text collate "C" not null,
  labels jsonb not null,
  value double precision not null,
  primary key (metric, labels)
);
comment on table aggregates is
  'Values of metrics that the job compute-metrics has computed. Every API process exports them.';
comment on column aggregates.value is
  'Of a metric that is an age or a remaining time: the point in time that it is measured from, in seconds since 1970. The age so grows '
  'while no worker computes.';

create function latency_bucket(latency interval) returns text language sql immutable parallel safe as $$
select (2 ^ least(32, greatest(5, ceil(ln(greatest(1, extract(epoch from latency)::float8 * 1000)) / ln(2)))))::bigint::text
$$;
comment on function latency_bucket is
  'The smallest power of two that is at least as many milliseconds: 32, 64, 128 and so on.';

create function count_attempts() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    insert into counter_deltas (workspace_id, kind, hour, repo_id, destination_id, status, detail, change)
    select
      workspace_id, 'attempts' as kind, date_trunc('hour', started_at, 'UTC') as hour,
      coalesce((select repo_id from documents where documents.id = document_id), '') as repo_id, destination_id, outcome as status,
      coalesce(
        error_code,
        case when outcome = 'delivered' then (
          select latency_bucket(started_at + duration_ms * interval '1 millisecond' - greatest(received_at, modified_at))
          from documents
          where documents.id = document_id
        ) end,
        ''
      ) as detail,
      count(*)
    from new_rows
    group by workspace_id, kind, hour, repo_id, destination_id, status, detail;
  -- An insert that might have updated an attempt comes here as well.
  elsif exists (select from new_rows) then
    insert into counter_deltas (workspace_id, kind, hour, repo_id, destination_id, status, detail, change)
    select
      workspace_id, 'attempts' as kind, date_trunc('hour', started_at, 'UTC') as hour,
      coalesce((select repo_id from documents where documents.id = document_id), '') as repo_id, destination_id, outcome as status,
      coalesce(
        error_code,
        case when outcome = 'delivered' then (
          select latency_bucket(started_at + duration_ms * interval '1 millisecond' - greatest(received_at, modified_at))
          from documents
          where documents.id = document_id
        ) end,
        ''
      ) as detail,
      sum(change)
    from (
      select *, -1 as change from old_rows
      union all
      select *, 1 as change from new_rows
    ) as changed
    group by workspace_id, kind, hour, repo_id, destination_id, status, detail
    having sum(change) <> 0;
  end if;
  return null;
end
$$;
comment on function count_attempts is
  'Adds the changes of a statement to counter_deltas: one row for each key whose number changes. Retention removes attempts together with '
  'their counters, without this function.';

create trigger attempts_added
  after insert on delivery_attempts
  referencing new table as new_rows
  for each statement
  execute function count_attempts();

create trigger attempts_changed
  after update on delivery_attempts
  referencing old table as old_rows new table as new_rows
  for each statement
  execute function count_attempts();

create function is_failure(status text, needs_attention boolean) returns boolean language sql immutable parallel safe as $$
select needs_attention and status in ('failed', 'cancelled') or status = 'retrying'
$$;
comment on function is_failure is
  'Whether a delivery counts as a failure.';

create function count_deliveries() returns trigger language plpgsql as $$
begin
  insert into counter_deltas (workspace_id, kind, hour, repo_id, destination_id, status, detail, change)
  select
    workspace_id, kind, date_trunc('hour', status_since, 'UTC') as hour, repo_id, destination_id, status, detail,
    case tg_op when 'INSERT' then count(*) else -count(*) end
  from rows_of_statement
  cross join lateral (
    select 'deliveries' as kind, (select repo_id from documents where documents.id = document_id) as repo_id, '' as detail
    union all
    select 'failures', '', coalesce(last_error_code, 'none')
    where is_failure(status, needs_attention)
  ) as counted
  group by workspace_id, kind, hour, repo_id, destination_id, status, detail;
  return null;
end
$$;
comment on function count_deliveries is
  'Adds what a statement inserts or deletes to counter_deltas: one row for each key whose number changes.';

create trigger deliveries_added
  after insert on deliveries
  referencing new table as rows_of_statement
  for each statement
  execute function count_deliveries();

create function count_changed_delivery() returns trigger language plpgsql as $$
begin
  if old.status <> new.status or date_trunc('hour', old.status_since, 'UTC') <> date_trunc('hour', new.status_since, 'UTC') then
    insert into counter_deltas (workspace_id, kind, hour, repo_id, destination_id, status, detail, change)
    select new.workspace_id, 'deliveries', date_trunc('hour', since, 'UTC'), repo_id, new.destination_id, changed.status, '', change
    from documents, (values (old.status, old.status_since, -1), (new.status, new.status_since, 1)) as changed (status, since, change)
    where documents.id = new.document_id;
  end if;
  if is_failure(old.status, old.needs_attention) or is_failure(new.status, new.needs_attention) then
    insert into counter_deltas (workspace_id, kind, hour, repo_id, destination_id, status, detail, change)
    select
      new.workspace_id, 'failures', date_trunc('hour', since, 'UTC'), '', new.destination_id, status, coalesce(error_code, 'none'), change
    from (
      values
        (is_failure(old.status, old.needs_attention), old.status, old.status_since, old.last_error_code, -1),
        (is_failure(new.status, new.needs_attention), new.status, new.status_since, new.last_error_code, 1)
    ) as changed (counts, status, since, error_code, change)
    where counts;
  end if;
  return null;
end
$$;
comment on function count_changed_delivery is
  'Adds the changes of a delivery to counter_deltas.';

create trigger deliveries_changed
  after update on deliveries
  for each row
  when ((old.status, old.status_since, old.last_error_code, old.needs_attention)
    is distinct from (new.status, new.status_since, new.last_error_code, new.needs_attention))
  execute function count_changed_delivery();
comment on trigger deliveries_changed on deliveries is
  'For each row: most updates change nothing that is counted, and this costs them nothing.';

create trigger deliveries_removed
  after delete on deliveries
  referencing old table as rows_of_statement
  for each statement
  execute function count_deliveries();

create function count_documents() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    insert into counter_deltas (workspace_id, kind, hour, repo_id, destination_id, status, detail, change)
    select
      workspace_id, 'documents' as kind, date_trunc('hour', received_at, 'UTC') as hour, repo_id, '' as destination_id, status,
      case when acknowledged_at is not null then 'acknowledged' when is_unconnected then 'unconnected' else '' end as detail,
      count(*)
    from new_rows
    group by workspace_id, kind, hour, repo_id, destination_id, status, detail;
  elsif tg_op = 'UPDATE' then
    insert into counter_deltas (workspace_id, kind, hour, repo_id, destination_id, status, detail, change)
    select
      workspace_id, 'documents' as kind, date_trunc('hour', received_at, 'UTC') as hour, repo_id, '' as destination_id, status,
      case when acknowledged_at is not null then 'acknowledged' when is_unconnected then 'unconnected' else '' end as detail,
      sum(change)
    from (
      select *, -1 as change from old_rows
      union all
      select *, 1 as change from new_rows
    ) as changed
    group by workspace_id, kind, hour, repo_id, destination_id, status, detail
    having sum(change) <> 0;
  else
    insert into counter_deltas (workspace_id, kind, hour, repo_id, destination_id, status, detail, change)
    select
      workspace_id, 'documents' as kind, date_trunc('hour', received_at, 'UTC') as hour, repo_id, '' as destination_id, status,
      case when acknowledged_at is not null then 'acknowledged' when is_unconnected then 'unconnected' else '' end as detail,
      -count(*)
    from old_rows
    group by workspace_id, kind, hour, repo_id, destination_id, status, detail;
  end if;
  return null;
end
$$;
comment on function count_documents is
  'Adds the changes of a statement to counter_deltas: one row for each key whose number changes.';

create trigger documents_added
  after insert on documents
  referencing new table as new_rows
  for each statement
  execute function count_documents();

create trigger documents_changed
  after update on documents
  referencing old table as old_rows new table as new_rows
  for each statement
  execute function count_documents();

create trigger documents_removed
  after delete on documents
  referencing old table as old_rows
  for each statement
  execute function count_documents();

create function count_enrichments() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    insert into counter_deltas (workspace_id, kind, hour, repo_id, destination_id, status, detail, change)
    select
      workspace_id, 'enrichments' as kind, date_trunc('hour', waits_until, 'UTC') as hour, '' as repo_id, '' as destination_id, status,
      enrichment_id as detail, count(*)
    from new_rows
    group by workspace_id, kind, hour, repo_id, destination_id, status, detail;
  elsif tg_op = 'UPDATE' then
    insert into counter_deltas (workspace_id, kind, hour, repo_id, destination_id, status, detail, change)
    select
      workspace_id, 'enrichments' as kind, date_trunc('hour', waits_until, 'UTC') as hour, '' as repo_id, '' as destination_id, status,
      enrichment_id as detail, sum(change)
    from (
      select *, -1 as change from old_rows
      union all
      select *, 1 as change from new_rows
    ) as changed
    group by workspace_id, kind, hour, repo_id, destination_id, status, detail
    having sum(change) <> 0;
  else
    insert into counter_deltas (workspace_id, kind, hour, repo_id, destination_id, status, detail, change)
    select
      workspace_id, 'enrichments' as kind, date_trunc('hour', waits_until, 'UTC') as hour, '' as repo_id, '' as destination_id, status,
      enrichment_id as detail, -count(*)
    from old_rows
    group by workspace_id, kind, hour, repo_id, destination_id, status, detail;
  end if;
  return null;
end
$$;
comment on function count_enrichments is
  'Adds the changes of a statement to counter_deltas: one row for each key whose number changes.';

create trigger enrichments_added
  after insert on document_enrichments
  referencing new table as new_rows
  for each statement
  execute function count_enrichments();

create trigger enrichments_changed
  after update on document_enrichments
  referencing old table as old_rows new table as new_rows
  for each statement
  execute function count_enrichments();

create trigger enrichments_removed
  after delete on document_enrichments
  referencing old table as old_rows
  for each statement
  execute function count_enrichments();

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
  for each row
  execute function remove_deliveries();
