import { statfs } from 'node:fs/promises'
import { Gauge, type Metric } from 'prom-client'
import { gaugeOf } from '../base/metrics.ts'
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import type { Outbox } from '../db/outbox.ts'
import { countOverdue, maxCountedOverdue } from '../delivery/overdue.ts'
import { measureWaiting } from '../delivery/to-begin.ts'
import { measureHeldBack } from '../events/event-log.ts'
import { findRepositoryWarnings } from '../routing/repository-warnings.ts'

interface Pool {
  numUsed(): number
  numFree(): number
  numPendingAcquires(): number
  max: number
  on(event: 'release' | 'acquireFail', listener: () => void): void
  removeListener(event: 'release', listener: () => void): void
}

// Every statement ends within DATABASE_STATEMENT_TIMEOUT_MS. Work that borrows all connections for longer than this has lost them.
const poolStuckMs = 180_000

/** Counts the connections of all pools of a process, and notices a pool whose connections are never given back. */
export const createPools = (stuckMs = poolStuckMs): { metric: Metric; watch(db: Database): void; areStuck(): boolean } => {
  const pools: Pool[] = []
  const stuck: (() => boolean)[] = []
  const sum = (count: (pool: Pool) => number) => pools.reduce((total, pool) => total + count(pool), 0)
  const metric = new Gauge({
    name: 'relay_database_pool_connections',
    help: 'Database connections of this process by state: `used`, `free`, or `waiting`: statements that wait for a connection',
    labelNames: ['state'],
    registers: [],
    collect() {
      const [used, free, waiting] = [sum((pool) => pool.numUsed()), sum((pool) => pool.numFree()), sum((pool) => pool.numPendingAcquires())]
      for (const [state, count] of Object.entries({ used, free, waiting })) this.set({ state }, count)
    },
  })
  return {
    metric,
    watch: ({ client }) => {
      const { pool } = client as { pool: Pool }
      pools.push(pool)
      let refusedAt: number | undefined
      const noteRelease = () => {
        refusedAt = undefined
        pool.removeListener('release', noteRelease)
      }
      pool.on('acquireFail', () => {
        if (refusedAt !== undefined) return
        refusedAt = performance.now()
        // Not before: every statement ends with a release.
        pool.on('release', noteRelease)
      })
      // During an outage of PostgreSQL nothing is borrowed, and a restart would not help.
      stuck.push(() => refusedAt !== undefined && pool.numUsed() >= pool.max && performance.now() - refusedAt > stuckMs)
    },
    areStuck: () => stuck.some((isStuck) => isStuck()),
  }
}

/** What waits for Temporal: commands in the outbox, and deliveries to begin. */
export const createWaitingMetrics = (db: Database, outbox: Pick<Outbox, 'count' | 'oldestDueSeconds'>): Metric[] => [
  gaugeOf('relay_waiting', 'Commands not yet sent to Temporal, and deliveries that are due and not yet begun', async () => {
    const [commands, deliveries] = await Promise.all([outbox.count(), measureWaiting(db)])
    return commands + deliveries.count
  }),
  gaugeOf(
    'relay_waiting_oldest_seconds',
    'Time for which the oldest unsent command, or the oldest new document that is not begun, has been due; 0 if there is none',
    async () => {
      const [commandSeconds, { oldestSeconds }] = await Promise.all([outbox.oldestDueSeconds(), measureWaiting(db)])
      return Math.max(commandSeconds, oldestSeconds)
    },
  ),
]

interface Storage {
  bytes: number
  usedRatio: number
}

/** Reads the stored bytes of all workspaces, and how much of its quota the fullest one has used. */
const readStorage = async (db: Database, maxBytes: number): Promise<Storage> => {
  const { rows } = await db.raw<{ rows: Storage[] }>(
    `
    select
      coalesce(sum(stored), 0)::bigint as bytes,
      coalesce(max(stored / case when quota > 0 then quota when quota = 0 then 1 end), 0)::float8 as "usedRatio"
    from (
      select sum(bytes) as stored, least(nullif(:maxBytes::bigint, 0), (settings ->> 'receiver_max_bytes')::bigint) as quota
      from workspace_storage
      join workspaces on workspaces.id = workspace_storage.workspace_id
      group by workspaces.id
    ) as workspace
    `,
    { maxBytes },
  )
  return rows[0]!
}

export const createStorageMetrics = (
  db: Database,
  { RELAY_WORKSPACE_MAX_BYTES: maxBytes }: Pick<Config, 'RELAY_WORKSPACE_MAX_BYTES'>,
): Metric[] => [
  gaugeOf('relay_stored_bytes', 'Bytes of content that all workspaces store', async () => (await readStorage(db, maxBytes)).bytes),
  gaugeOf(
    'relay_workspace_quota_used_ratio',
    'Stored bytes of the fullest workspace, divided by its quota; 0 if no workspace has a quota',
    async () => (await readStorage(db, maxBytes)).usedRatio,
  ),
]

export const createRepositoryMetrics = (db: Database): Metric[] => [
  new Gauge({
    name: 'relay_repository_warnings',
    help: 'Active repositories with a warning, by its code. `not_connected`: what the repository receives is discarded',
    labelNames: ['code'],
    registers: [],
    async collect() {
      this.reset()
      const found = await findRepositoryWarnings(db).catch(() => ({}))
      for (const [code, names] of Object.entries<string[]>(found)) this.set({ code }, names.length)
    },
  }),
]

export const createHeldBackMetric = (db: Database): Metric =>
  gaugeOf(
    'relay_events_held_back_seconds',
    'Age of the oldest event that readers do not see yet, because a transaction that began earlier still runs; 0 if there is none',
    () => measureHeldBack(db),
  )

export const createOverdueMetric = (db: Database, config: Pick<Config, 'RECONCILE_INTERVAL_MS'>): Metric =>
  gaugeOf(
    'relay_deliveries_overdue',
    `Open deliveries whose next attempt is overdue and about which nobody has asked Temporal, up to ${maxCountedOverdue}`,
    () => countOverdue(db, config),
  )

// Several Prometheus servers and people may read the metrics, and Temporal should be asked less often than that.
const keptMs = 10_000

/** @param list asks Temporal for the workers that poll the task queue. Must have its own timeout */
export const createPollersMetric = (taskQueue: string, list: () => Promise<unknown[]>): Metric => {
  let asked: Promise<number> | undefined
  let askAgainAt = 0
  const count = () => {
    if (!asked || performance.now() >= askAgainAt) {
      askAgainAt = performance.now() + keptMs
      asked = list().then(
        (found) => found.length,
        () => Number.NaN,
      )
    }
    return asked
  }
  return new Gauge({
    name: 'relay_task_queue_pollers',
    help: 'Workers that wait for tasks of the task queue, as Temporal says; NaN if Temporal does not answer',
    labelNames: ['task_queue'],
    registers: [],
    async collect() {
      this.set({ task_queue: taskQueue }, await count())
    },
  })
}

/** Returns the number of bytes that this user can still write to the file system of a directory. */
export const readFreeBytes = async (directory: string): Promise<number> => {
  const { bavail, bsize } = await statfs(directory)
  return bavail * bsize
}

/** Name of a metric that only the embedded stack has. */
export const dataDirMetricName = 'relay_data_dir_free_bytes'

export const createDataDirMetric = (dataDir: string): Metric =>
  gaugeOf(
    dataDirMetricName,
    'Free bytes of the disk with RELAY_DATA_DIR, on which the embedded PostgreSQL and Temporal store their data',
    () => readFreeBytes(dataDir),
  )
