import { newId } from '../base/ids.ts'
import type { Database } from './database.ts'

export const createInstallation = (db: Database) => {
  let known: Promise<string> | undefined
  const read = async (): Promise<string> => {
    const row = await db('installation').first<{ id: string } | undefined>('id')
    if (!row) throw new Error('the table installation is empty')
    return row.id
  }
  return {
    /** Returns the id of this installation, which the database keeps. Reads it once. */
    id: (): Promise<string> => {
      known ??= read().catch((thrown: unknown) => {
        // The next caller tries again.
        known = undefined
        throw thrown
      })
      return known
    },
  }
}

export type Installation = ReturnType<typeof createInstallation>

/** Gives a new installation its id. */
export const ensureInstallation = async (db: Database): Promise<void> => {
  await db.raw('insert into installation (id) values (?) on conflict (is_only_row) do nothing', [newId()])
}
