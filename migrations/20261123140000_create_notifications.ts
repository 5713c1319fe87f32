// Operators who are not looking at the relay learn of incidents: a notification is a rule that says which incidents are announced, and at
// which destination.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    create table notifications (
      id text collate "C" primary key,
      workspace_id text collate "C" not null references workspaces (id) on delete cascade,
      name text not null,
      events text[] not null check (cardinality(events) > 0),
      destination_id text collate "C" not null references destinations (id) on delete cascade,
      quiet_seconds integer not null,
      is_active boolean not null default true,
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now()
    );
    comment on table notifications is 'A rule: incidents of these kinds are announced at this destination.';
    comment on column notifications.events is 'Kinds of incidents, see src/domain/notices.ts.';
    comment on column notifications.quiet_seconds is 'Time after a notice in which no other incident of the same subject is announced.';
    create index notifications_of_workspace on notifications (workspace_id, id);
    comment on index notifications_of_workspace is 'Serves the list of notifications.';
    create index notifications_of_destination on notifications (destination_id);
    comment on index notifications_of_destination is 'Serves the deletion of a destination.';
    create index notifications_active on notifications (workspace_id) where is_active;
    comment on index notifications_active is 'Serves the check for incidents, which looks only at workspaces with an active notification.';
  `)
