import type { Database } from './database.ts'

// Work that one process of the installation does at a time. No session lock: a pool between the relay and PostgreSQL gives each
// transaction another session.

/** Takes a duty for `leaseMs`, or renews it. @returns false if another process holds it */
export const holdDuty = async (db: Database, name: string, holder: string, leaseMs: number): Promise<boolean> => {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `
    insert into duties (name, holder, held_until)
    values (:name, :holder, now() + :leaseMs::integer * interval '1 millisecond')
    on conflict (name) do update
    set holder = excluded.holder, held_until = excluded.held_until
    where duties.holder = excluded.holder
      or duties.held_until < now()
    returning name
    `,
    { name, holder, leaseMs },
  )
  return rows.length > 0
}

/** Gives a duty up, so that another process can take it at once. */
export const leaveDuty = async (db: Database, name: string, holder: string): Promise<void> => {
  await db('duties').where({ name, holder }).update({ holder: null, held_until: '-infinity' })
}

/** Notes that a duty has been done. */
export const noteDone = async (db: Database, name: string): Promise<void> => {
  await db('duties').insert({ name, done_at: db.fn.now() }).onConflict('name').merge(['done_at'])
}

/** Takes over a duty that nobody has done for `maxAgeMs`. Of several processes, one does. @returns true if the caller has to do it now */
export const takeOverLate = async (db: Database, name: string, maxAgeMs: number): Promise<boolean> => {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `
    insert into duties (name, done_at)
    values (:name, now())
    on conflict (name) do update
    set done_at = excluded.done_at
    where duties.done_at <= now() - :maxAgeMs::float8 * interval '1 millisecond'
    returning name
    `,
    { name, maxAgeMs },
  )
  return rows.length > 0
}
