import { setTimeout as delay } from 'node:timers/promises'
import { Client } from 'pg'
import { messageOf, UserError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'

// A lock of a session ends with its connection, so a crash leaves nothing to clean up.
const connectTimeoutMs = 5_000
const answerTimeoutMs = 5_000
const watchIntervalMs = 5_000
const retryMs = 500
// A session whose machine has lost its power is noticed after 11 seconds: the settings below.
const predecessorMaxMs = 20_000

const ownerLock = 'relay temporal'
const schemaLock = 'relay temporal schemas'

type LockConfig = Pick<Config, 'DATABASE_URL'>

const connect = async ({ DATABASE_URL }: LockConfig, queryTimeoutMs?: number): Promise<Client> => {
  const client = new Client({
    connectionString: DATABASE_URL,
    application_name: ownerLock,
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
    ...(queryTimeoutMs !== undefined && { query_timeout: queryTimeoutMs }),
  })
  // Without a listener, the loss of an idle connection would end the process. The next query reports it.
  client.on('error', () => {})
  await client.connect()
  await client.query('set tcp_keepalives_idle = 5; set tcp_keepalives_interval = 2; set tcp_keepalives_count = 3')
  return client
}

/** Works on the schemas of Temporal while no other process does. Another one waits, until its signal is aborted. */
export const whileNoOtherPrepares = async <T>(
  config: LockConfig,
  work: (client: Client) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> => {
  const client = await connect(config)
  try {
    await client.query('set statement_timeout = 0; set idle_session_timeout = 0')
    // A statement that waits for the lock would be in a transaction, for whose end the tool waits when it creates an index concurrently.
    while (!(await tryToLock(client, schemaLock)).locked) {
      signal?.throwIfAborted()
      await delay(retryMs)
    }
    return await work(client)
  } finally {
    await client.end()
  }
}

const tryToLock = async (client: Client, name: string): Promise<{ pid: number; locked: boolean }> => {
  const { rows } = await client.query<{ pid: number; locked: boolean }>(
    'select pg_backend_pid() as pid, pg_try_advisory_lock(hashtextextended($1, 0)) as locked',
    [name],
  )
  return rows[0]!
}

interface Session {
  pid: number
  address: string | null
  since: Date
}

const tryToOwn = async (client: Client): Promise<{ pid: number } | { owner: Session | undefined }> => {
  const { pid, locked } = await tryToLock(client, ownerLock)
  if (locked) return { pid }
  const { rows: owners } = await client.query<Session>(
    `
    select pid, host(client_addr) as address, backend_start as since
    from pg_locks
    join pg_stat_activity using (pid)
    where locktype = 'advisory'
      and granted
      and database = (select oid from pg_database where datname = current_database())
      and (classid::bigint << 32) | objid::bigint = hashtextextended($1, 0)
      and objsubid = 1
    `,
    [ownerLock],
  )
  return { owner: owners[0] }
}

const taken = (owner: Session | undefined): UserError =>
  new UserError(
    `Another relay runs Temporal on this database${owner ? ` (connected from ${owner.address ?? 'this machine'} since ${owner.since.toISOString()})` : ''}. ` +
      'One database has one Temporal: stop the other relay, or set TEMPORAL_ADDRESS instead of RELAY_TEMPORAL=local.',
  )

export interface Ownership {
  /** Is rejected with a `UserError` if another relay has taken the place of this one. */
  lost: Promise<never>
  /** Removes the addresses of former servers from Temporal's table of members. */
  forgetMembers(): Promise<void>
  release(): Promise<void>
}

/**
 * Makes this process the only one that runs a Temporal server on the database, until it is released or its connection ends. After a restart
 * of PostgreSQL it takes its place again. A second server would answer for the first one's workflows at addresses of its own machine.
 * @param waitMs how long a predecessor that has just ended is waited for
 * @param answerMaxMs how long PostgreSQL may take for an answer before the connection counts as lost
 * @throws `UserError` that names the other process, if there is one
 */
export const ownTemporal = async (
  config: LockConfig,
  log: Pick<Log, 'warn' | 'info'>,
  {
    signal,
    waitMs = predecessorMaxMs,
    answerMaxMs = answerTimeoutMs,
  }: { signal?: AbortSignal; waitMs?: number; answerMaxMs?: number } = {},
): Promise<Ownership> => {
  const released = new AbortController()
  const { promise: lost, reject } = Promise.withResolvers<never>()
  // The caller may not have asked yet.
  lost.catch(() => {})
  let client = await connect(config, answerMaxMs)
  let ownPid: number

  /** Waits for a predecessor that has just ended. The former session of this process is ended: it may outlive its connection. */
  const own = async (): Promise<number> => {
    for (const deadline = performance.now() + waitMs; ;) {
      const answer = await tryToOwn(client)
      if ('pid' in answer) return answer.pid
      if (answer.owner?.pid === ownPid) await client.query('select pg_terminate_backend($1)', [ownPid])
      if (performance.now() > deadline) throw taken(answer.owner)
      await delay(retryMs, undefined, { signal })
    }
  }

  const watch = async (): Promise<void> => {
    while (!released.signal.aborted) {
      try {
        await client.query('select 1')
        await delay(watchIntervalMs, undefined, { signal: released.signal })
      } catch (thrown) {
        if (released.signal.aborted) return
        log.warn({ reason: messageOf(thrown) }, 'the connection that holds the place of Temporal is lost, and is opened again')
        await client.end().catch(() => {})
        await openAgain()
      }
    }
  }
  const openAgain = async (): Promise<void> => {
    while (!released.signal.aborted) {
      try {
        client = await connect(config, answerMaxMs)
        ownPid = await own()
        log.info('Temporal has its place again')
        return
      } catch (thrown) {
        await client.end().catch(() => {})
        if (thrown instanceof UserError) return reject(thrown)
        await delay(retryMs, undefined, { signal: released.signal }).catch(() => {})
      }
    }
  }

  try {
    ownPid = await own()
  } catch (thrown) {
    await client.end().catch(() => {})
    throw thrown
  }
  const watching = watch()
  return {
    lost,
    forgetMembers: async () => void (await client.query('delete from temporal.cluster_membership')),
    release: async () => {
      released.abort()
      await watching
      await client.end().catch(() => {})
    },
  }
}
