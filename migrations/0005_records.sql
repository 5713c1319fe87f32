-- Records of what happened. They grow until retention removes the oldest rows, so they are partitioned by id, like delivery_attempts. A
-- ULID begins with its time: a lookup by id reads one partition, a page of the newest rows reads partitions in order, and retention drops
-- whole tables. src/db/partitions.ts creates the partitions. The decision: docs/adr/0004-partitions-by-ulid.md.

create table audit_logs (
  id text collate "C" primary key,
  workspace_id text collate "C" not null,
  event text not null,
  subject_type text not null,
  subject_id text not null,
  description text not null,
  metadata jsonb not null default '{}',
  actor_type text not null check (actor_type in ('user', 'api_key', 'system')),
  user_id text collate "C",
  created_at timestamptz not null default now()
) partition by range (id);
comment on table audit_logs is
  'One change by a person, an API key or the relay. Partitioned by month.';

create index audit_logs_by_event on audit_logs (workspace_id, event, id);
comment on index audit_logs_by_event is
  'Serves the audit log by event.';

create index audit_logs_by_subject on audit_logs (workspace_id, subject_id, id);
comment on index audit_logs_by_subject is
  'Serves the audit log of one subject.';

create index audit_logs_by_user on audit_logs (workspace_id, user_id, event, id);
comment on index audit_logs_by_user is
  'Serves the audit log by member, and by member and event.';

create index audit_logs_by_actor on audit_logs (workspace_id, lower(coalesce(metadata->>'person_name', metadata->>'key_name')), event, id)
where actor_type <> 'system';
comment on index audit_logs_by_actor is
  'Serves the audit log by the name of the API key or person, and by name and event.';

create index audit_logs_of_workspace on audit_logs (workspace_id, id);
comment on index audit_logs_of_workspace is
  'Serves the audit log, newest first.';

create table captured_requests (
  id text collate "C" primary key,
  workspace_id text collate "C" not null,
  channel text not null check (channel in ('receiver', 'bridge')),
  http_method text not null,
  uri text not null,
  query_string text not null,
  query_sealed bytea,
  repo_id text,
  doc_id text,
  request_headers jsonb not null,
  request_content_type text,
  request_content_length bigint,
  request_body_truncation_reason text
    check (request_body_truncation_reason in ('too_large', 'incomplete', 'not_json', 'unreadable', 'memory', 'refused', 'unread')),
  source_ip text not null,
  request_at timestamptz not null,
  status_code smallint not null,
  error_code text collate "C",
  response_headers jsonb not null,
  response_content_type text,
  response_content_length bigint,
  response_body_truncation_reason text
    check (response_body_truncation_reason in ('too_large', 'incomplete', 'not_json', 'unreadable', 'memory', 'refused', 'unread')),
  duration_ms integer not null,
  response_at timestamptz not null,
  replay_of text collate "C",
  created_at timestamptz not null default now()
) partition by range (id);
comment on table captured_requests is
  'One HTTP request to a receiver or the bridge with its response, redacted. Partitioned by day.';
comment on column captured_requests.error_code is
  'The code of the error that the request was answered with. Null if it has none.';
comment on column captured_requests.query_sealed is
  'The query string with its secKey, sealed for a replay. Null if it has none. In query_string, the secKey is redacted.';
comment on column captured_requests.request_body_truncation_reason is
  'Why the body is not stored. Null if it was stored or empty.';
comment on column captured_requests.replay_of is
  'The captured request that this one repeats.';

create index captured_requests_by_channel on captured_requests (workspace_id, channel, id) include (http_method, status_code, repo_id);
comment on index captured_requests_by_channel is
  'Serves the list of requests by channel. Other conditions are checked without the rows.';

create index captured_requests_by_doc_id on captured_requests (workspace_id, doc_id, id);
comment on index captured_requests_by_doc_id is
  'Serves the list of requests by docId.';

create index captured_requests_by_error_code on captured_requests (workspace_id, error_code, id) include (channel, http_method, status_code, repo_id)
where error_code is not null;
comment on index captured_requests_by_error_code is
  'Serves the list of requests by error code. Other conditions are checked without the rows.';

create index captured_requests_by_method on captured_requests (workspace_id, http_method, id) include (status_code, repo_id);
comment on index captured_requests_by_method is
  'Serves the list of requests by method. Other conditions are checked without the rows.';

create index captured_requests_by_repository on captured_requests (workspace_id, repo_id, id);
comment on index captured_requests_by_repository is
  'Serves the list of requests by repository.';

create index captured_requests_by_status on captured_requests (workspace_id, status_code, id) include (repo_id);
comment on index captured_requests_by_status is
  'Serves the list of requests by status. Other conditions are checked without the rows.';

create index captured_requests_by_status_class on captured_requests (workspace_id, (status_code / 100), id) include (status_code, repo_id);
comment on index captured_requests_by_status_class is
  'Serves the list of requests by status class, such as 4xx. Other conditions are checked without the rows.';

create index captured_requests_of_workspace on captured_requests (workspace_id, id);
comment on index captured_requests_of_workspace is
  'Serves the list of requests, newest first.';

create table captured_bodies (
  request_id text collate "C" not null,
  kind text not null check (kind in ('request', 'response')),
  workspace_id text collate "C" not null,
  data bytea,
  pieces jsonb,
  redacted boolean not null default false,
  primary key (request_id, kind)
) partition by range (request_id);
comment on table captured_bodies is
  'The body of a captured request or response. Apart from captured_requests because it is kept for a shorter time. Partitioned by day.';
comment on column captured_bodies.data is
  'The body as it is shown. Null if the pieces are shown, or nothing is. Stored out of line and uncompressed, like content_chunks.data.';
comment on column captured_bodies.pieces is
  'The parts of the body, in their order: a range of a content (contentId, start, sizeBytes), or bytes in Base64 (data). Null if data is '
  'the body. Of a redacted body, only a replay reads them.';
comment on column captured_bodies.redacted is
  'Something was removed from data, or would have to be removed from the pieces. Without pieces, the body cannot be replayed.';

alter table captured_bodies alter column data set storage external;

create index captured_bodies_of_workspace on captured_bodies (workspace_id, request_id);
comment on index captured_bodies_of_workspace is
  'Serves the removal of bodies in a workspace that keeps them for a shorter time than others.';
