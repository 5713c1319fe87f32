// A subject is found by its id alone, because ids are unique. The entries of a member are read in order for each event.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    drop index audit_logs_by_subject, audit_logs_by_user, audit_logs_by_event;
    -- serves: the audit log of one subject
    create index audit_logs_by_subject on audit_logs (workspace_id, subject_id, id);
    -- serve: the audit log by event, by member and by both
    create index audit_logs_by_event on audit_logs (workspace_id, event, id);
    create index audit_logs_by_user on audit_logs (workspace_id, user_id, event, id);
  `)
