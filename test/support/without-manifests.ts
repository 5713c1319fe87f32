import type { Database } from '../../src/db/database.ts'

const yearMs = 365 * 86_400_000

/** Moves the first day of which the workspaces of a test have a manifest into the next year, so that retention waits for none. */
export const withoutManifests = (db: Database): Promise<unknown> => db('workspaces').update({ created_at: new Date(Date.now() + yearMs) })
