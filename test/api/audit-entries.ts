import { idPrefixAt } from '../../src/base/ids.ts'
import type { Database } from '../../src/db/database.ts'

/** Inserts entries of the audit log in one statement, for speed. */
export const insertEntries = (db: Database, workspaceId: string, rows: number, descriptionCharacters: number) =>
  db.raw(
    `insert into audit_logs (id, workspace_id, event, subject_type, subject_id, description, metadata, actor_type)
    select :prefix || lpad(n::text, 16, '0'), :workspaceId, 'rfc.call', 'RfcCall', 'S' || n, repeat('x', :descriptionCharacters), '{"name": "value"}', 'system'
    from generate_series(1, :rows) as n`,
    { prefix: idPrefixAt(new Date()), workspaceId, rows, descriptionCharacters },
  )
