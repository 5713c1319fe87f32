-- Operators who are not looking at the relay learn of incidents. An incident is opened when a condition holds, such as an open circuit, and
-- closed when the condition has ended. Each transition is announced at most once per notification: the notice is inserted with it.

create table notifications (
  id text collate "C" primary key,
  workspace_id text collate "C" not null references workspaces (id) on delete cascade,
  name text not null,
  events text[] not null check (cardinality(events) > 0),
  destination_id text collate "C" not null references destinations (id) on delete cascade,
  quiet_seconds integer not null,
  silence_hours integer not null,
  is_active boolean not null default true,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
comment on table notifications is
  'A rule: incidents of these kinds are announced at this destination.';
comment on column notifications.events is
  'Kinds of incidents, see src/domain/notices.ts.';
comment on column notifications.quiet_seconds is
  'Time after a notice in which no other incident of the same subject is announced.';
comment on column notifications.silence_hours is
  'Time without a request to a repository after which source.silent is announced.';

create index notifications_active on notifications (workspace_id)
where is_active;
comment on index notifications_active is
  'Serves the check for incidents, which looks only at workspaces with an active notification.';

create index notifications_of_destination on notifications (destination_id);
comment on index notifications_of_destination is
  'Serves the deletion of a destination.';

create index notifications_of_workspace on notifications (workspace_id, id);
comment on index notifications_of_workspace is
  'Serves the list of notifications.';

create table incidents (
  id text collate "C" primary key,
  workspace_id text collate "C" not null references workspaces (id) on delete cascade,
  event text not null,
  subject text not null,
  count bigint not null,
  details jsonb not null,
  opened_at timestamptz not null,
  last_seen_at timestamptz not null,
  closed_at timestamptz
);
comment on table incidents is
  'A condition that is announced to operators, from its beginning to its end.';
comment on column incidents.event is
  'The kind of the incident, see src/domain/notices.ts.';
comment on column incidents.subject is
  'What the condition holds for: the id of a destination, with an error code, of a repository, or of a certificate.';
comment on column incidents.count is
  'How many things the condition holds for, such as failed deliveries, at the last check that changed it.';
comment on column incidents.details is
  'What a notice says about the incident, by the names of the API.';
comment on column incidents.last_seen_at is
  'The last check that found the condition with other values.';
comment on column incidents.closed_at is
  'Null while the condition holds.';

create index incidents_closed on incidents (closed_at)
where closed_at is not null;
comment on index incidents_closed is
  'Serves the removal of incidents by age.';

create index incidents_of_subject on incidents (workspace_id, event, subject, id);
comment on index incidents_of_subject is
  'Serves the search for earlier notices about the same subject.';

create unique index incidents_open on incidents (workspace_id, event, subject)
where closed_at is null;
comment on index incidents_open is
  'Serves the check for incidents. Allows one open incident per subject.';

create table notices (
  id text collate "C" primary key,
  workspace_id text collate "C" not null,
  notification_id text collate "C" not null references notifications (id) on delete cascade,
  incident_id text collate "C" not null references incidents (id) on delete cascade,
  transition text not null check (transition in ('opened', 'closed')),
  data jsonb not null,
  status text not null default 'pending' check (status in ('pending', 'delivered', 'failed')),
  attempts integer not null default 0,
  last_error text,
  last_error_code text,
  next_attempt_at timestamptz,
  delivered_at timestamptz,
  created_at timestamptz not null
);
comment on table notices is
  'One message about the beginning or the end of an incident, to the destination of one notification.';
comment on column notices.workspace_id is
  'Without a foreign key: a notice is deleted together with its notification.';
comment on column notices.data is
  'What is sent, by the names of the API. The same in every attempt.';
comment on column notices.next_attempt_at is
  'When the next attempt is due, while the notice is pending.';

create unique index notices_by_transition on notices (incident_id, notification_id, transition);
comment on index notices_by_transition is
  'Allows one notice per incident, notification and transition.';

create index notices_of_notification on notices (notification_id, id);
comment on index notices_of_notification is
  'Serves the list of notices.';

create index notices_pending on notices (next_attempt_at)
where status = 'pending';
comment on index notices_pending is
  'Serves the search for notices whose workflow was lost.';
