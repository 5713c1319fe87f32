-- What happened, for programs that follow it: one row per outcome, written by triggers in the transaction of the outcome, because rows change in
-- many ways. The order of events, and why a reader misses none: docs/events.md.

create table event_epochs (
  epoch bigint not null,
  server_started_at timestamptz not null
);
comment on table event_epochs is
  'The epochs of events. The largest is the last one. The first transactions that write events after a start of PostgreSQL each add its epoch, '
  'without a lock and without waiting for one another, so one epoch can have several rows.';
comment on column event_epochs.server_started_at is
  'When the server of PostgreSQL started that wrote the events of this epoch.';

create index event_epochs_epoch on event_epochs (epoch);
comment on index event_epochs_epoch is
  'Serves every writer and every reader of events, which look for the last epoch.';

alter table workspaces
  add column events_removed_to text collate "C" not null default '';
comment on column workspaces.events_removed_to is
  'The id of the last event that retention has removed. A reader that has not come so far has missed events.';

create function current_event_epoch() returns bigint language sql stable as $$
select
  case
    when last.server_started_at = pg_postmaster_start_time() then last.epoch
    else greatest(started.microseconds, coalesce(last.epoch, 0) + 1 + started.microseconds % 1000000)
  end
from (select (extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint as microseconds) as started
left join lateral (select epoch, server_started_at from event_epochs order by epoch desc limit 1) as last on true
$$;
comment on function current_event_epoch is
  'The epoch of events that are written now: when PostgreSQL was started, in microseconds since 1970. So two copies of a database never take the same '
  'one. A standby that takes over was started before the last epoch: then it is the next number, plus the microseconds in the second of its start.';

create function begin_event_epoch() returns bigint language plpgsql as $$
declare
  last event_epochs;
begin
  select * into last from event_epochs order by epoch desc limit 1;
  if last.server_started_at = pg_postmaster_start_time() then
    return last.epoch;
  end if;
  insert into event_epochs (epoch, server_started_at)
  values (current_event_epoch(), pg_postmaster_start_time())
  returning * into last;
  return last.epoch;
end
$$;
comment on function begin_event_epoch is
  'Returns current_event_epoch() to a transaction that writes events, and stores it in the same transaction: whatever copy of the database has the '
  'event also has its epoch, and takes a later one.';

create function event_horizon() returns bigint language sql stable as $$
select least(
  pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
  (
    select min(running::text::bigint)
    from pg_snapshot_xip(pg_current_snapshot()) as running
    where not exists (
      select
      from pg_stat_get_activity(null) as activity
      where backend_xid::text::bigint = running::text::bigint & 4294967295
        and datid <> (select oid from pg_database where datname = current_database())
    )
  )
)
$$;
comment on function event_horizon is
  'Every transaction of this database with a smaller number has ended, as the statement that asks sees it. The snapshot says what runs in all '
  'databases of the server; of these transactions, the ones that are known to run in other databases are left out.';

create table events (
  workspace_id text collate "C" not null,
  epoch bigint not null,
  transaction bigint not null,
  number bigint generated always as identity,
  type text collate "C" not null,
  data jsonb not null,
  created_at timestamptz not null default now(),
  primary key (workspace_id, epoch, transaction, number)
);
comment on table events is
  'One outcome. Without a foreign key: the deletion of a workspace removes its events. Removed by age, see src/maintenance/retention.ts.';
comment on column events.transaction is
  'The number of the transaction that wrote the event. A reader sees only events of transactions below event_horizon().';
comment on column events.number is
  'The order within the transaction.';
comment on column events.data is
  'By the names of the API. What it says does not change.';
comment on index events_pkey is
  'Serves the reader that follows, and the removal by age.';

create function add_event(of_workspace text, event_type text, event_data jsonb) returns void language plpgsql as $$
begin
  insert into events (workspace_id, epoch, transaction, type, data)
  select
    workspaces.id, begin_event_epoch(), pg_current_xact_id()::text::bigint, event_type, event_data
  from workspaces
  where workspaces.id = of_workspace
    and settings ->> 'events_days' is distinct from '0';
end
$$;
comment on function add_event is
  'Writes an event, unless its workspace keeps none.';

create function document_event_data(document documents) returns jsonb language sql stable parallel safe as $$
select jsonb_build_object(
  'document_id', document.id, 'repo_id', document.repo_id, 'doc_id', document.doc_id, 'comp_id', document.comp_id,
  'revision', document.revision)
$$;
comment on function document_event_data is
  'What every event about a document says.';

create function add_events_of_new_documents() returns trigger language plpgsql as $$
declare
  this_epoch bigint := begin_event_epoch();
begin
  insert into events (workspace_id, epoch, transaction, type, data)
  select
    workspaces.id, this_epoch, pg_current_xact_id()::text::bigint, event.type,
    jsonb_build_object(
      'document_id', added.id, 'repo_id', repo_id, 'doc_id', doc_id, 'comp_id', comp_id, 'revision', revision) || event.data
  from added
  join workspaces on workspaces.id = added.workspace_id
  cross join lateral (
    values
      (
        'document.received',
        jsonb_build_object(
          'content_type', content_type, 'size_bytes', size_bytes, 'request_id', request_id,
          'erp_object_type', erp_object_type, 'erp_object_id', erp_object_id, 'ar_object', ar_object)
      ),
      ('document.discarded', jsonb_build_object('reason', case when is_unconnected then 'no_connection' else 'filter' end))
  ) as event (type, data)
  where settings ->> 'events_days' is distinct from '0'
    and (event.type = 'document.received' or added.status = 'discarded')
  order by added.id, event.type desc;
  return null;
end
$$;
comment on function add_events_of_new_documents is
  'Writes document.received, and document.discarded of a document that goes nowhere.';

create trigger events_of_new_documents
  after insert on documents
  referencing new table as added
  for each statement
  execute function add_events_of_new_documents();

create function add_event_of_document() returns trigger language plpgsql as $$
begin
  if old.status is distinct from new.status and new.status in ('delivered', 'failed') then
    perform add_event(new.workspace_id, 'document.' || new.status, document_event_data(new));
  elsif old.status is distinct from new.status and new.status = 'discarded' then
    perform add_event(new.workspace_id, 'document.discarded', document_event_data(new) || jsonb_build_object('reason', 'filter'));
  end if;
  if old.acknowledged_at is null and new.acknowledged_at is not null then
    perform add_event(new.workspace_id, 'document.acknowledged', document_event_data(new));
  end if;
  if (old.erp_object_type, old.erp_object_id, old.ar_object) is distinct from (new.erp_object_type, new.erp_object_id, new.ar_object) then
    perform add_event(new.workspace_id, 'document.metadata_updated', document_event_data(new) || jsonb_build_object('changed', 'business_object'));
  elsif (old.file_name, old.description) is distinct from (new.file_name, new.description) then
    perform add_event(new.workspace_id, 'document.metadata_updated', document_event_data(new) || jsonb_build_object('changed', 'file_name'));
  end if;
  if old.size_bytes <> new.size_bytes then
    perform add_event(new.workspace_id, 'document.appended', document_event_data(new) || jsonb_build_object('size_bytes', new.size_bytes));
  end if;
  return null;
end
$$;
comment on function add_event_of_document is
  'Writes what became of a document.';

create trigger event_of_document
  after update of status, acknowledged_at, erp_object_type, erp_object_id, ar_object, file_name, description, size_bytes on documents
  for each row
  execute function add_event_of_document();

create function add_event_of_fields() returns trigger language plpgsql as $$
begin
  perform add_event(workspace_id, 'document.metadata_updated', document_event_data(documents) || jsonb_build_object('changed', 'fields'))
  from documents
  where id = new.document_id;
  return null;
end
$$;
comment on function add_event_of_fields is
  'Writes that other business data of a document is known. The data itself is not written: an erasure must not leave it here.';

create trigger event_of_fields
  after update of fields on document_enrichments
  for each row
  when (old.fields is distinct from new.fields)
  execute function add_event_of_fields();

create function add_event_of_delivery() returns trigger language plpgsql as $$
begin
  perform add_event(
    new.workspace_id,
    'delivery.' || new.status,
    document_event_data(documents) || jsonb_build_object('destination_id', new.destination_id, 'attempts', new.attempts) || case new.status
      when 'delivered' then jsonb_build_object('location', new.location, 'receipt', new.receipt)
      else jsonb_build_object('ended_by', new.ended_by, 'error_code', new.last_error_code)
    end)
  from documents
  where id = new.document_id;
  return null;
end
$$;
comment on function add_event_of_delivery is
  'Writes how a delivery ended.';

create trigger delivery_ended
  after update of status on deliveries
  for each row
  when (old.status is distinct from new.status and new.status in ('delivered', 'failed', 'cancelled'))
  execute function add_event_of_delivery();
comment on trigger delivery_ended on deliveries is
  'By its name before delivery_status_changed: the end of a delivery comes before that of its document.';

create function add_event_of_certificate() returns trigger language plpgsql as $$
begin
  perform add_event(
    new.workspace_id,
    'certificate.received',
    jsonb_build_object(
      'certificate_id', new.id, 'repository_id', new.repository_id, 'auth_id', new.auth_id, 'subject', new.subject,
      'fingerprint_sha256', new.fingerprint_sha256));
  return null;
end
$$;
comment on function add_event_of_certificate is
  'Writes that a source system has sent a certificate.';

create trigger event_of_certificate
  after insert on certificates
  for each row
  when (new.sent_from is not null)
  execute function add_event_of_certificate();

create table event_subscriptions (
  id text collate "C" primary key,
  workspace_id text collate "C" not null references workspaces (id) on delete cascade,
  name text not null,
  events text[] not null check (cardinality(events) > 0),
  destination_id text collate "C" not null references destinations (id) on delete cascade,
  is_active boolean not null default true,
  epoch bigint not null,
  transaction bigint not null,
  number bigint not null,
  version integer not null default 1,
  attempts integer not null default 0,
  failing_since timestamptz,
  next_attempt_at timestamptz,
  last_error text,
  last_error_code text,
  last_sent_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
comment on table event_subscriptions is
  'Events of these types are sent to a webhook, one after the other.';
comment on column event_subscriptions.number is
  'With epoch and transaction, the position: all events up to it were sent, or are of other types.';
comment on column event_subscriptions.version is
  'Rises when the position is set or what is sent is changed: a workflow that has read an earlier version must not move the position.';
comment on column event_subscriptions.attempts is
  'Attempts to send the next event that have failed.';

create index event_subscriptions_active on event_subscriptions (id)
where is_active;
comment on index event_subscriptions_active is
  'Serves the dispatcher, which starts the workflows of subscriptions that have something to send.';

create index event_subscriptions_of_workspace on event_subscriptions (workspace_id, id);
comment on index event_subscriptions_of_workspace is
  'Serves the list of subscriptions.';

create index event_subscriptions_of_destination on event_subscriptions (destination_id);
comment on index event_subscriptions_of_destination is
  'Serves the deletion of a destination.';
