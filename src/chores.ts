import type { Config } from './config.ts'
import { sweepOrphans } from './content/sweep.ts'
import type { ContentStore } from './content/store.ts'
import type { Database } from './db/database.ts'
import type { Held } from './db/held.ts'
import { ensurePartitions } from './db/partitions.ts'
import { createRetention, type Removed, type RetentionConfig } from './db/retention.ts'
import { messageOf } from './errors.ts'
import type { Log } from './log.ts'
import type { Launcher } from './temporal/launcher.ts'

export interface ChoreDeps {
  db: Database
  stores: Record<ContentStore['kind'], ContentStore | undefined>
  held: Pick<Held, 'settleStragglers'>
  launcher: Pick<Launcher, 'sweep' | 'sendAll'>
  config: Pick<Config, 'CONTENT_ORPHAN_AGE_MS'> & RetentionConfig
}

type ChoreConfig = Pick<Config, 'OUTBOX_SWEEP_INTERVAL_MS' | 'HELD_CHECK_INTERVAL_MS' | 'UPKEEP_INTERVAL_MS'>

/** Something that has to be done again and again. Two runs at the same time must do no harm. */
export interface Chore {
  /** Its schedule in Temporal is `relay-<name>`. */
  name: string
  /** For operators to read beside the schedule. */
  note: string
  intervalMs(config: ChoreConfig): number
  /** @returns what was done, in words */
  run(deps: ChoreDeps, at: Run): Promise<string>
}

interface Run {
  /** By the workflow's clock, which tests let run ahead. */
  now: Date
  signal: AbortSignal
}

const chores: readonly Chore[] = [
  {
    name: 'sweep-outbox',
    note: 'Sends what Temporal should have been told, and was not, because of a crash or an outage',
    intervalMs: (config) => config.OUTBOX_SWEEP_INTERVAL_MS,
    run: async ({ launcher }, { signal }) => `${await launcher.sweep(signal)} messages sent`,
  },
  {
    name: 'settle-held',
    note: 'Releases or cancels deliveries that came to be held after their connection was switched on or deleted',
    intervalMs: (config) => config.HELD_CHECK_INTERVAL_MS,
    run: async ({ held, launcher }) => {
      const messages = await held.settleStragglers()
      await launcher.sendAll(messages)
      return `${messages.length} connections settled`
    },
  },
  {
    name: 'make-partitions',
    note: 'Makes the partitions of the time ahead, without which nothing could be recorded then',
    intervalMs: (config) => config.UPKEEP_INTERVAL_MS,
    run: async ({ db }, { now }) => {
      await ensurePartitions(db, now)
      return 'partitions are there'
    },
  },
  {
    name: 'remove-orphans',
    note: 'Removes bytes that no document came to own',
    intervalMs: (config) => config.UPKEEP_INTERVAL_MS,
    run: async ({ db, stores, config }, { now, signal }) =>
      `${await sweepOrphans(db, stores, new Date(now.getTime() - config.CONTENT_ORPHAN_AGE_MS), signal)} contents removed`,
  },
  {
    name: 'end-retention',
    note: 'Removes captured requests, their bodies, audit entries, attempts and content that are older than their workspace keeps them',
    intervalMs: (config) => config.UPKEEP_INTERVAL_MS,
    run: async ({ db, config }, { now, signal }) => inWords(await createRetention(db, config).removeExpired(now, signal)),
  },
]

const inWords = ({ rows, partitions, contents }: Removed): string =>
  [
    ...Object.entries(rows).map(([table, count]) => `${count} of ${table}`),
    `${partitions.length} partitions${partitions.length > 0 ? ` (${partitions.join(', ')})` : ''}`,
    `the content of ${contents} documents`,
  ].join(', ') + ' removed'

/** Every chore of a relay. */
export const allChores = (): readonly Chore[] => chores

export const findChore = (name: string): Chore | undefined => chores.find((chore) => chore.name === name)

/** Runs the chores in this process, where Temporal does not take schedules of ours. @returns what ends that */
export const runChoresHere = (deps: ChoreDeps, config: ChoreConfig, log: Log): (() => Promise<void>) => {
  const stopped = new AbortController()
  const running = new Map<string, Promise<void>>()
  const runOne = (chore: Chore) => {
    if (running.has(chore.name)) return
    const run = chore
      .run(deps, { now: new Date(), signal: stopped.signal })
      .then(
        (done) => log.debug({ chore: chore.name, done }, 'a chore is done'),
        (thrown: unknown) => log.warn({ chore: chore.name, reason: messageOf(thrown) }, 'a chore failed, the next one will try again'),
      )
      .finally(() => running.delete(chore.name))
    running.set(chore.name, run)
  }
  for (const chore of chores) runOne(chore)
  const timers = chores.map((chore) => setInterval(() => runOne(chore), chore.intervalMs(config)))
  return async () => {
    for (const timer of timers) clearInterval(timer)
    stopped.abort()
    await Promise.all(running.values())
  }
}
