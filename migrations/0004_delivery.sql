-- Documents as destinations see them. The status of a document follows from those of its deliveries: src/domain/delivery-states.ts states
-- the same rule for the workflow, and a test compares them. The outbox is explained in docs/adr/0005-transactional-outbox.md.

create table deliveries (
  document_id text collate "C" not null references documents (id) on delete cascade,
  destination_id text collate "C" not null references destinations (id),
  workspace_id text collate "C" not null references workspaces (id) on delete cascade,
  connection_id text collate "C" not null,
  path text not null,
  status text not null check (status in ('pending', 'held', 'retrying', 'delivered', 'failed', 'cancelled')),
  status_since timestamptz not null default now(),
  attempts integer not null default 0,
  attempt_id text collate "C",
  round text,
  failures integer not null default 0,
  round_remaining_ms bigint,
  round_expires_at timestamptz,
  next_attempt_at timestamptz default now(),
  waiting text check (waiting in ('in_line', 'called', 'paused', 'data')),
  begin_at timestamptz,
  begin_as text not null default 'document' check (begin_as in ('document', 'delivery', 'retry')),
  checked_at timestamptz,
  stuck_run text,
  last_error text,
  last_error_code text,
  ended_by text check (ended_by in ('permanent_error', 'max_retries', 'retry_ttl_seconds', 'workflow_cancelled', 'workflow_terminated',
    'destination_deleted', 'connection_deleted', 'connection_changed', 'document_erased', 'content_removed', 'check_ended')),
  needs_attention boolean not null default false,
  delivered_at timestamptz,
  location text,
  receipt jsonb,
  overwrites integer not null default 0,
  again integer not null default 0,
  bulk_retry_id text collate "C",
  primary key (document_id, destination_id)
);
comment on table deliveries is
  'One document on its way to one destination.';
comment on column deliveries.connection_id is
  'The connection that planned the delivery. It may have been deleted since.';
comment on column deliveries.path is
  'The planned path below the destination''s prefix. Every attempt uses it.';
comment on column deliveries.status_since is
  'When the delivery got its status.';
comment on column deliveries.attempt_id is
  'The attempt that is under way, as delivery_attempts.id will name it. If the next attempt still finds it, its worker was lost.';
comment on column deliveries.round is
  'The latest round of attempts with a failure. Each has a retry budget of its own: the first round, and each manual retry.';
comment on column deliveries.failures is
  'Failed attempts of the round.';
comment on column deliveries.round_remaining_ms is
  'Rest of the time to live of the round when its next attempt is due. Less is left if the attempt is late. Null if a manual retry has ended '
  'the round.';
comment on column deliveries.round_expires_at is
  'When the time to live of the round ends.';
comment on column deliveries.next_attempt_at is
  'When the next attempt is due, while the delivery is pending or retrying. An attempt under way is past it. For a delivery in line, it is '
  'when the delivery asks again by itself, or infinity.';
comment on column deliveries.waiting is
  'The delivery waits in the line of its destination, for a slot or behind a circuit, or was called and is about to start; an operator has paused '
  'its workflow or activity in Temporal, as the reconciler has seen; or the filter of its connection needs business data that is not known yet.';
comment on column deliveries.begin_at is
  'When the dispatcher has to begin the delivery. Null once its workflow has begun an attempt or waits for one, and if it has none to make: '
  'an open delivery whose begin_at is due is the work that waits.';
comment on column deliveries.begin_as is
  'How the dispatcher begins it. document: by the workflow of its document, together with the other deliveries. delivery: by a workflow of '
  'its own, after a release or a loss of Temporal. retry: by a signal that starts a new round. No meaning if begin_at is null.';
comment on column deliveries.checked_at is
  'When the reconciler last asked Temporal about the delivery, because its next attempt was overdue.';
comment on column deliveries.stuck_run is
  'The run of its workflow that could not go on at checked_at, and the length of its history, as run/length. If the next check finds the same, '
  'the reconciler terminates the run and has the delivery begun again. The run stays here without the length then, so that its end is not taken '
  'for that of a person.';
comment on column deliveries.last_error_code is
  'The code of last_error. Null if the error is not one of an attempt.';
comment on column deliveries.ended_by is
  'What ended a failed or cancelled delivery: an error that no retry can fix, the limit that was reached, a person in Temporal, or what was deleted.';
comment on column deliveries.needs_attention is
  'The delivery has failed or was cancelled, its document has failed, and that is not acknowledged. Kept by triggers.';
comment on column deliveries.again is
  'Times that somebody has asked to deliver the document again, although it had been delivered.';
comment on column deliveries.location is
  'Where the destination stored the document, as it reported. Null until delivered.';
comment on column deliveries.receipt is
  'What the destination has last acknowledged: the digest and the size of what was sent, the attempt, the time, and its own names of the stored '
  'object (src/delivery/receipt.ts). It outlives the attempts. Null until then.';
comment on column deliveries.overwrites is
  'Counts the attempts for older documents at the same path that may have overwritten this one. Each repeats the delivery.';

comment on column deliveries.bulk_retry_id is
  'The last bulk retry that has taken or planned the delivery, or whose replay has created it. Null if there is none.';

create index deliveries_by_connection on deliveries (connection_id, document_id);
comment on index deliveries_by_connection is
  'Serves the search for documents by connection.';

create index deliveries_by_destination on deliveries (destination_id, status, document_id);
comment on index deliveries_by_destination is
  'Serves the search for documents by destination, connector or status of a delivery.';

create index deliveries_by_due_time on deliveries (greatest(next_attempt_at, checked_at), document_id, destination_id)
where status in ('pending', 'retrying') and begin_at is null;
comment on index deliveries_by_due_time is
  'Serves the reconciler, which asks Temporal about the deliveries that have shown no sign of life for the longest time.';

create index deliveries_in_line on deliveries (destination_id, waiting, document_id)
where waiting is not null;
comment on index deliveries_in_line is
  'Serves the lines of destinations: who is next, and who has been called.';

create index deliveries_by_error on deliveries (destination_id, status, coalesce(last_error_code, 'none'), document_id)
where last_error is not null;
comment on index deliveries_by_error is
  'Serves the search for documents by the code of an error.';

create index deliveries_held_by_connection on deliveries (connection_id, document_id)
where status = 'held';
comment on index deliveries_held_by_connection is
  'Serves the release and the cancellation of held deliveries, and the search for documents that a connection holds.';

create index deliveries_of_bulk_retry on deliveries (bulk_retry_id, status)
where bulk_retry_id is not null;
comment on index deliveries_of_bulk_retry is
  'Serves the count of what became of the deliveries that a bulk retry has taken.';

create index deliveries_open_of_destination on deliveries (destination_id, document_id)
where status in ('pending', 'held', 'retrying', 'failed');
comment on index deliveries_open_of_destination is
  'Serves the cancellation of open deliveries when a destination is deleted.';

create index deliveries_to_begin on deliveries ((hashtextextended(workspace_id, 0) & 15), workspace_id, begin_as, begin_at, document_id)
where begin_at is not null;
comment on index deliveries_to_begin is
  'Serves the dispatchers, each of which has a share of the workspaces by their hash and lets them take turns, and the create, which asks if '
  'another document of its workspace waits.';

create index failures_by_time on deliveries (destination_id, status, coalesce(last_error_code, 'none'), status_since)
where needs_attention or status = 'retrying';
comment on index failures_by_time is
  'Serves the oldest and the newest failure of a group, also for its incident, and failures of a minimum age.';

create table late_data (
  document_id text collate "C" not null,
  destination_id text collate "C" not null,
  digest text,
  status text not null check (status in ('current', 'pending', 'updated', 'failed', 'not_possible')),
  found_at timestamptz not null default now(),
  updated_at timestamptz,
  error text,
  attempts integer not null default 0,
  next_try_at timestamptz not null default now(),
  primary key (document_id, destination_id),
  foreign key (document_id, destination_id) references deliveries on delete cascade
);
comment on table late_data is
  'The business data that a delivered copy has. Only documents with an enrichment have rows, and copies without the properties of their connection.';
comment on column late_data.digest is
  'Of the data that the copy has. Null if it may have none.';
comment on column late_data.status is
  'current: the copy was delivered with what was known. The others are of data that was found later: it is still to be brought, was brought, '
  'could not be brought, or cannot be at this kind of destination.';
comment on column late_data.next_try_at is
  'When the next try is due to bring data that is pending.';
comment on column late_data.attempts is
  'Failed tries since the data was found.';
comment on column late_data.found_at is
  'When the data that the copy lacked was found.';

create index late_data_due on late_data (destination_id, next_try_at, document_id)
where status = 'pending';
comment on index late_data_due is
  'Serves the dispatcher, which looks for destinations with copies that lack data, and their runs, which take the oldest.';

create table outbox (
  key text collate "C" primary key,
  message jsonb not null,
  created_at timestamptz not null default now(),
  due_at timestamptz not null default now()
);
comment on table outbox is
  'Commands for Temporal that have not been sent yet. Each is inserted with the change that causes it and deleted once it is sent.';
comment on column outbox.key is
  'Identifies the message: inserting it again changes nothing. It contains the id of the request, so that a later request is another message.';
comment on column outbox.due_at is
  'The message is not sent before this time.';

create index outbox_by_due_at on outbox (due_at);
comment on index outbox_by_due_at is
  'Serves the sweep, and the metric of the oldest message.';

create table duties (
  name text collate "C" primary key,
  holder text collate "C",
  held_until timestamptz not null default '-infinity'::timestamptz,
  done_at timestamptz,
  about jsonb
);
comment on table duties is
  'Work that one process of the installation does at a time, or that some process must have done lately.';
comment on column duties.holder is
  'The process that does it, and renews its lease. After held_until, another process may take it over.';
comment on column duties.done_at is
  'When it was last done, if it is done from time to time; when a process that takes part in a divided duty last said so.';
comment on column duties.about is
  'What such a process says about itself.';

create table side_queues (
  kind text collate "C" not null check (kind in ('events', 'enrichment', 'late_data')),
  id text collate "C" not null,
  workspace_id text collate "C" not null references workspaces (id) on delete cascade,
  claimed_until timestamptz not null default '-infinity'::timestamptz,
  failures integer not null default 0,
  opens_at timestamptz not null default '-infinity'::timestamptz,
  last_error text,
  primary key (kind, id)
) with (fillfactor = 50);
comment on table side_queues is
  'Queues of side work that a workflow works through, or whose last work has failed: the events of a subscription, the documents of an enrichment '
  'that wait for business data, the late data of a destination. A queue without a row is free.';
comment on column side_queues.id is
  'The subscription, the enrichment or the destination.';
comment on column side_queues.claimed_until is
  'Until then, a workflow works through the queue, or is being started. After it, another one is started if something is due.';
comment on column side_queues.failures is
  'Consecutive failures of the system that the queue leads to. From a limit on, one piece of work tries it.';
comment on column side_queues.opens_at is
  'After a failure: nothing of the queue is done before this time.';

create index side_queues_of_workspace on side_queues (workspace_id, kind);
comment on index side_queues_of_workspace is
  'Serves the limit of queues of a workspace that are worked through at a time.';

create table delivery_attempts (
  id text collate "C" primary key,
  workspace_id text collate "C" not null,
  document_id text collate "C" not null,
  destination_id text collate "C" not null,
  number integer not null,
  started_at timestamptz not null,
  duration_ms integer not null,
  outcome text not null check (outcome in ('delivered', 'superseded', 'retryable', 'permanent', 'interrupted')),
  error_code text,
  error_message text,
  answer jsonb,
  bytes_sent bigint
) partition by range (id);
comment on table delivery_attempts is
  'One attempt of a delivery, and its outcome. Partitioned by month.';
comment on column delivery_attempts.answer is
  'The response of the target: status, selected headers and the beginning of the body, redacted and truncated.';

create index delivery_attempts_of_document on delivery_attempts (document_id, id);
comment on index delivery_attempts_of_document is
  'Serves the attempts of one document, in order.';

create index delivery_attempts_of_workspace on delivery_attempts (workspace_id, id);
comment on index delivery_attempts_of_workspace is
  'Serves the removal of attempts by age.';

create table bulk_retries (
  id text collate "C" primary key,
  workspace_id text collate "C" not null references workspaces (id) on delete cascade,
  action text not null check (action in ('retry', 'replay', 'acknowledge', 'deliver')),
  status text not null default 'running' check (status in ('running', 'completed', 'cancelled')),
  filter jsonb not null,
  matched_documents bigint not null,
  matched_deliveries bigint not null,
  retried_documents bigint not null default 0,
  retried_deliveries bigint not null default 0,
  skipped_documents bigint not null default 0,
  document_cursor text collate "C" not null default '',
  received_cursor timestamptz,
  checked_at timestamptz,
  stuck_run text,
  actor_type text not null check (actor_type in ('user', 'api_key', 'system')),
  user_id text collate "C",
  actor_id text collate "C",
  actor_name text,
  created_at timestamptz not null default now(),
  ended_at timestamptz
);
comment on table bulk_retries is
  'A retry of every failed delivery that a filter matches; the replay of the requests of discarded documents, or their '
  'acknowledgement; or the delivery of documents to a destination that was connected later. Stored here as well as in Temporal, so that it can be '
  'shown after its workflow has been removed.';
comment on column bulk_retries.filter is
  'repoId, destinationId, errorCode, origin, dateFrom and dateTo, each optional.';
comment on column bulk_retries.action is
  'retry: of failed documents. replay, acknowledge: of documents that were discarded for lack of a connection. deliver: of documents that were '
  'never planned for the destination of the filter.';
comment on column bulk_retries.skipped_documents is
  'Documents to which the action could not be applied.';
comment on column bulk_retries.matched_documents is
  'Counted when the bulk retry was created, up to a limit for deliver. Never less than what it has taken.';
comment on column bulk_retries.matched_deliveries is
  'Counted when the bulk retry was created.';
comment on column bulk_retries.document_cursor is
  'The last document that was processed, in the order of their receipt.';
comment on column bulk_retries.received_cursor is
  'When it was received. Null before the first one.';
comment on column bulk_retries.checked_at is
  'When the reconciler found stuck_run.';
comment on column bulk_retries.stuck_run is
  'The run of its workflow that could not go on at checked_at, as deliveries.stuck_run.';
comment on column bulk_retries.actor_type is
  'The actor who requested it.';
comment on column bulk_retries.actor_id is
  'Id of the API key, or of the person at the sign-in provider.';
comment on column bulk_retries.actor_name is
  'Name of the API key or person at that time, which every audit log entry of the bulk retry contains.';

create index bulk_retries_of_workspace on bulk_retries (workspace_id, id);
comment on index bulk_retries_of_workspace is
  'Serves the list of bulk retries, newest first.';

create index bulk_retries_running on bulk_retries (id)
where status = 'running';
comment on index bulk_retries_running is
  'Serves the reconciler, which asks Temporal about running bulk retries.';

create table destination_slots (
  destination_id text collate "C" not null references destinations (id) on delete cascade,
  number integer not null,
  holder text collate "C",
  place text,
  leased_until timestamptz not null default '-infinity'::timestamptz,
  primary key (destination_id, number)
) with (fillfactor = 50);
comment on table destination_slots is
  'Permission for one attempt at a destination. Rows are added up to its limit of concurrent deliveries when an attempt finds too few.';
comment on column destination_slots.holder is
  'The attempt that runs in the slot, as deliveries.attempt_id.';
comment on column destination_slots.place is
  'Where the attempt writes: see placeOf in src/archive/place.ts. What lies there must not leave for its home meanwhile.';
comment on column destination_slots.leased_until is
  'A running attempt renews its lease. The slot of a lost worker becomes free when the lease has run out.';
comment on index destination_slots_pkey is
  'Serves the search for a free slot of a destination.';

create table destination_gates (
  destination_id text collate "C" primary key references destinations (id) on delete cascade,
  next_start_at timestamptz not null default '-infinity'::timestamptz,
  circuit text not null default 'closed' check (circuit in ('closed', 'open', 'half_open')),
  circuit_since timestamptz,
  failures integer not null default 0,
  failing_since timestamptz,
  pause_ms integer not null default 0,
  trial_at timestamptz,
  trial_id text collate "C",
  failed_attempts integer not null default 0,
  last_error text,
  last_error_code text,
  last_error_at timestamptz
) with (fillfactor = 50);
comment on table destination_gates is
  'When the next attempt at a destination may start, and how its last attempts ended. Apart from destinations, because it changes with attempts.';
comment on column destination_gates.next_start_at is
  'When its deliveries per minute would allow the next attempt, if attempts were spread evenly.';
comment on column destination_gates.circuit is
  'closed: attempts start. open: none starts until trial_at. half_open: one attempt tries the target. See src/domain/circuit.ts.';
comment on column destination_gates.circuit_since is
  'When the circuit got its state. Null if it has always been closed.';
comment on column destination_gates.failures is
  'Consecutive failed attempts that a retry may help.';
comment on column destination_gates.failing_since is
  'When the first of these attempts ended. Null if there is none.';
comment on column destination_gates.pause_ms is
  'The pause before the latest trial. It doubles with each trial that fails.';
comment on column destination_gates.trial_at is
  'When the next trial may start. While one is under way: when another one replaces it, unless it is renewed, because its worker was '
  'lost.';
comment on column destination_gates.trial_id is
  'The attempt that tries the target, as deliveries.attempt_id.';
comment on column destination_gates.failed_attempts is
  'Attempts that have failed since the last success, whether a retry may help or not. Broken-off attempts do not count, unless one failed its delivery.';
comment on column destination_gates.last_error is
  'The error of the last of these attempts. Null after a success.';

create function derive_document_status(of_document text) returns text language plpgsql stable as $$
begin
  return (
    select case
      when count(*) = 0 then 'discarded'
      when bool_or(status = 'failed') then 'failed'
      when bool_or(status = 'retrying') then 'retrying'
      when bool_or(status in ('pending', 'held')) then 'pending'
      when bool_or(status = 'delivered') then 'delivered'
      else 'failed'
    end
    from deliveries
    where document_id = of_document
  );
end
$$;
comment on function derive_document_status is
  'The status of a document by the statuses of its deliveries. src/domain/delivery-states.ts states the same rule.';

create function mark_failures(of_document text) returns void language plpgsql as $$
begin
  update deliveries
  set needs_attention = not needs_attention
  from documents
  where documents.id = of_document
    and document_id = of_document
    and needs_attention <> (deliveries.status in ('failed', 'cancelled') and documents.status = 'failed' and acknowledged_at is null);
end
$$;
comment on function mark_failures is
  'Sets needs_attention of the deliveries of a document.';

create function mark_failures_of_delivery() returns trigger language plpgsql as $$
begin
  perform mark_failures(new.document_id);
  return null;
end
$$;
comment on function mark_failures_of_delivery is
  'Sets needs_attention of a delivery that was inserted with its final status.';

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
comment on function mark_failures_of_document is
  'Sets needs_attention of the deliveries of a document that fails or is acknowledged.';

create trigger failures_changed
  after update of status, acknowledged_at on documents
  for each row
  when ((old.status = 'failed' and old.acknowledged_at is null) is distinct from (new.status = 'failed' and new.acknowledged_at is null))
  execute function mark_failures_of_document();

create function note_delivery_status() returns trigger language plpgsql as $$
begin
  new.status_since = now();
  new.waiting = null;
  new.ended_by = case when new.status in ('failed', 'cancelled') then new.ended_by end;
  if new.status not in ('pending', 'retrying') then
    new.next_attempt_at = null;
    new.begin_at = null;
  elsif new.next_attempt_at is not distinct from old.next_attempt_at then
    new.next_attempt_at = now();
  end if;
  return new;
end
$$;
comment on function note_delivery_status is
  'Sets the time of the last change of a delivery''s status, and takes the delivery out of line. Nothing has ended an open or '
  'delivered one. The next attempt of an open delivery is due at once, unless the statement says when; any other delivery has none, and '
  'nothing to begin.';

create trigger delivery_status_noted
  before update of status on deliveries
  for each row
  when (old.status is distinct from new.status)
  execute function note_delivery_status();
comment on trigger delivery_status_noted on deliveries is
  'Whatever changes the status of a delivery, the time is noted.';

create function update_document_status() returns trigger language plpgsql as $$
declare
  derived text;
begin
  perform 1 from documents where id = new.document_id for no key update;
  derived := derive_document_status(new.document_id);
  update documents
  set status = derived, acknowledged_at = null
  where id = new.document_id
    and (
      status <> derived
      or (acknowledged_at is not null
        and (new.status = 'failed' or (new.status = 'retrying' and old.status in ('failed', 'cancelled'))))
    );
  if old.status in ('failed', 'cancelled') or new.status in ('failed', 'cancelled') then
    perform mark_failures(new.document_id);
  end if;
  return null;
end
$$;
comment on function update_document_status is
  'Updates the status of a document, and ends its acknowledgement if that changes, or if a delivery fails or is made again that the '
  'acknowledgement did not mean. Two of its deliveries may end at the same moment: the row lock makes the second wait for the first, '
  'and each statement sees what was committed before that statement began, so the second counts the first.';

create trigger delivery_status_changed
  after update of status on deliveries
  for each row
  when (old.status is distinct from new.status)
  execute function update_document_status();
comment on trigger delivery_status_changed on deliveries is
  'Whatever changes a delivery, its document follows.';
