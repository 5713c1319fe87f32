// Records of what happened: delivery attempts, audit entries, captured requests and their bodies. These tables grow
// until retention removes the oldest rows, so they are partitioned by id. A ULID begins with its time: a lookup by id
// reads one partition, a page of the newest rows reads partitions in order, and retention drops whole tables.
// src/db/partitions.ts creates the partitions ahead of time. The decision: docs/adr/0004-partitions-by-ulid.md.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    create table delivery_attempts (
      id text collate "C" primary key,
      workspace_id text collate "C" not null,
      document_id text collate "C" not null,
      destination_id text collate "C" not null,
      number integer not null,
      started_at timestamptz not null,
      duration_ms integer not null,
      outcome text not null check (outcome in ('delivered', 'retryable', 'permanent', 'interrupted')),
      error_code text,
      error_message text,
      -- the response of the target: status, selected headers and the beginning of the body, redacted and truncated
      answer jsonb,
      bytes_sent bigint
    ) partition by range (id);
    -- serves: the attempts of one document, in order
    create index delivery_attempts_of_document on delivery_attempts (document_id, id);

    create table audit_logs (
      id text collate "C" primary key,
      workspace_id text collate "C" not null,
      event text not null,
      subject_type text not null,
      subject_id text not null,
      description text not null,
      metadata jsonb not null default '{}',
      user_id text collate "C",
      actor_type text not null check (actor_type in ('user', 'api_key', 'system')),
      created_at timestamptz not null default now()
    ) partition by range (id);
    -- serve: the audit log, newest first: unfiltered, by event, by subject and by member
    create index audit_logs_of_workspace on audit_logs (workspace_id, id);
    create index audit_logs_by_event on audit_logs (workspace_id, event text_pattern_ops, id);
    create index audit_logs_by_subject on audit_logs (workspace_id, subject_type, subject_id, id);
    create index audit_logs_by_user on audit_logs (workspace_id, user_id, id);

    create table captured_requests (
      id text collate "C" primary key,
      workspace_id text collate "C" not null,
      channel text not null check (channel in ('receiver', 'bridge')),
      http_method text not null,
      uri text not null,
      query_string text not null,
      repo_id text,
      doc_id text,
      request_headers jsonb not null,
      request_content_type text,
      request_content_length bigint,
      request_body_truncated boolean not null default false,
      source_ip text not null,
      request_at timestamptz not null,
      status_code smallint not null,
      response_headers jsonb not null,
      response_content_type text,
      response_content_length bigint,
      response_body_truncated boolean not null default false,
      duration_ms integer not null,
      response_at timestamptz not null,
      replay_of text collate "C",
      created_at timestamptz not null default now()
    ) partition by range (id);
    -- serve: the list of requests, newest first: unfiltered, by status, by repository and by docId
    create index captured_requests_of_workspace on captured_requests (workspace_id, id);
    create index captured_requests_by_status on captured_requests (workspace_id, status_code, id);
    create index captured_requests_by_repository on captured_requests (workspace_id, repo_id, id);
    create index captured_requests_by_doc_id on captured_requests (workspace_id, doc_id, id);

    create table captured_bodies (
      request_id text collate "C" not null,
      kind text not null check (kind in ('request', 'response')),
      workspace_id text collate "C" not null,
      data bytea not null,
      primary key (request_id, kind)
    ) partition by range (request_id);
  `)
