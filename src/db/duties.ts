import { createStatement, type Database } from './database.ts'

// Work of the installation that is not done twice at a time: each share of a duty by one process. No session lock: a pool between the relay and PostgreSQL gives each
// transaction another session.

// Rows of processes that were stopped or lost go after this time, in which operators see when they were last there.
const forgottenMs = 3_600_000

// More than that are not of use to a person.
const maxListed = 200

const register = createStatement<{ others: number }>(
  'register-for-duty',
  `
  with registered as (
    insert into duties (name, holder, held_until, done_at, about)
    values (:name || '/' || :holder, :holder, now() + :leaseMs::integer * interval '1 millisecond', now(), :about::jsonb)
    on conflict (name) do update
    set held_until = excluded.held_until, done_at = excluded.done_at
  ), forgotten as (
    delete from duties
    where name > :name || '/'
      and name < :name || '0'
      and held_until < now() - ${forgottenMs} * interval '1 millisecond'
  )
  select count(*) as others
  from duties
  where name > :name || '/'
    and name < :name || '0'
    and held_until >= now()
    and holder <> :holder
  `,
)

// Shares that the process has come before free ones. Shares are locked in one order.
const hold = createStatement<{ share: number }>(
  'hold-shares',
  `
  insert into duties (name, holder, held_until)
  select name, :holder, now() + :leaseMs::integer * interval '1 millisecond'
  from (
    select share.name
    from (select :name || '-' || number as name, number from generate_series(0, :shares::integer - 1) as number) as share
    left join duties on duties.name = share.name
    where duties.name is null
      or duties.holder = :holder
      or held_until < now()
    order by duties.holder is not distinct from :holder desc, number
    limit :most
  ) as wanted
  order by name
  on conflict (name) do update
  set holder = excluded.holder, held_until = excluded.held_until
  where duties.holder = excluded.holder
    or duties.held_until < now()
  returning split_part(name, '-', 2)::integer as share
  `,
)

const giveUp = createStatement(
  'give-up-shares',
  `
  update duties
  set holder = null, held_until = '-infinity'
  where name in (
      select :name || '-' || number
      from generate_series(0, :shares::integer - 1) as number
      where number not in (select jsonb_array_elements_text(:held::jsonb)::integer)
    )
    and holder = :holder
  `,
)

/** A duty that is divided into shares, and a process that takes part in it. */
interface Part {
  name: string
  shares: number
  holder: string
  /** What the process says about itself, for operators. */
  about: object
}

/**
 * Takes or renews the fair part of a process in a duty for `leaseMs`, and gives up what it has beyond that. Every process that calls this
 * takes part. A process that stops calling loses its part when the lease ends; a new one gets its part once the others have called.
 * @returns the shares that the process holds; none if there are enough other processes
 */
export const holdShares = async (db: Database, { name, shares, holder, about }: Part, leaseMs: number): Promise<number[]> => {
  const [registered] = await register(db, { name, holder, leaseMs, about: JSON.stringify(about) })
  const most = Math.ceil(shares / (registered!.others + 1))
  const held = (await hold(db, { name, shares, holder, leaseMs, most })).map(({ share }) => share)
  if (held.length === most) await giveUp(db, { name, shares, holder, held: JSON.stringify(held) })
  return held
}

/** Gives the part of a process up, so that others can take it at once. */
export const leaveShares = async (db: Database, { name, shares, holder }: Part): Promise<void> => {
  await giveUp(db, { name, shares, holder, held: '[]' })
  await db('duties')
    .where({ name: `${name}/${holder}` })
    .update({ held_until: db.fn.now() })
}

/** A process that takes part in a duty, or did so within the last hour. */
export interface Participant<About> {
  about: About
  lastSeenAt: Date
  /** False if it was stopped, or has not called for the time of its lease. */
  isPresent: boolean
}

/** Lists the processes that take part in a divided duty, those that were seen last first. */
export const listParticipants = async <About>(db: Database, name: string): Promise<Participant<About>[]> =>
  await db('duties')
    .where('name', '>', `${name}/`)
    .where('name', '<', `${name}0`)
    .orderBy([{ column: 'done_at', order: 'desc' }, { column: 'name' }])
    .limit(maxListed)
    .select<Participant<About>[]>('about', 'done_at as lastSeenAt', db.raw('held_until >= now() as "isPresent"'))

/** Notes that a duty has been done. */
export const noteDone = async (db: Database, name: string): Promise<void> => {
  await db('duties').insert({ name, done_at: db.fn.now() }).onConflict('name').merge(['done_at'])
}

/** Takes over a duty that no process has done for `maxAgeMs`. One of several processes succeeds. @returns true if the caller has to do it now */
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
