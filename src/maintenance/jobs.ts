import { logFailure } from '../base/failure-log.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import type { FindConnector } from '../connectors/connector.ts'
import type { Stores } from '../content/store.ts'
import { foldCounters } from '../db/counters.ts'
import type { Database } from '../db/database.ts'
import type { OnItsOwn, PassOver } from '../db/on-its-own.ts'
import { ensurePartitions } from '../db/partitions.ts'
import { describeReconciled, type Reconcile } from '../delivery/reconcile.ts'
import type { Release } from '../delivery/release.ts'
import { settleEarlyMetadata } from '../delivery/set-metadata.ts'
import type { CallLines } from '../delivery/wake.ts'
import type { MoveHome } from '../home/move.ts'
import type { CheckUpstreams } from '../migration/failures.ts'
import { describeChecked, type CheckIncidents } from '../notifications/check-incidents.ts'
import { computeAggregates } from '../observe/aggregates.ts'
import { copyManifests, type CopyDeps } from '../proof/copy-manifests.ts'
import { makeManifests, type ManifestDeps } from '../proof/make-manifests.ts'
import type { Launcher } from '../temporal/launcher.ts'
import type { ScheduledJob } from '../temporal/schedules.ts'
import { createRetention, type Removed, type RetentionConfig } from './retention.ts'
import { sweepOrphans, type SweepFailure } from './sweep-orphans.ts'

export interface MaintenanceDeps extends ManifestDeps, CopyDeps {
  db: Database
  outbound: CopyDeps['outbound']
  keyRing: ManifestDeps['keyRing']
  installation: CopyDeps['installation']
  stores: Stores
  release: Pick<Release, 'releaseOverdue'>
  launcher: Pick<Launcher, 'sweep' | 'sendAll'>
  callLines: CallLines
  reconcile: Reconcile
  checkIncidents: CheckIncidents
  checkUpstreams: CheckUpstreams
  moveHome: MoveHome
  /** Starts the workflows of running migrations, unless they are open. @returns their number */
  startMigrations(): Promise<number>
  findConnector: FindConnector
  onItsOwn: OnItsOwn
  passOver: PassOver
  config: Pick<Config, 'CONTENT_ORPHAN_AGE_MS'> & RetentionConfig & ManifestDeps['config'] & CopyDeps['config']
}

type IntervalConfig = Pick<Config, 'RECONCILE_INTERVAL_MS'>

interface Run {
  /** Time by the workflow's clock, which tests can advance. */
  now: Date
  signal: AbortSignal
}

/** A recurring job. It must be safe to run twice at the same time. */
interface MaintenanceJob {
  /** The schedule in Temporal is named `relay-<name>`. */
  name: string
  /** Shown to operators beside the schedule. */
  description: string
  intervalMs: number | keyof IntervalConfig
  /** @returns a summary for operators */
  run(deps: MaintenanceDeps, run: Run): Promise<string>
}

const minuteMs = 60_000
const hourMs = 60 * minuteMs

const jobs: readonly MaintenanceJob[] = [
  {
    name: 'sweep-outbox',
    description: 'Sends commands to Temporal that a crash or an outage left in the outbox',
    intervalMs: 15_000,
    run: async ({ launcher, callLines }, { signal }) => {
      const sent = await launcher.sweep(signal)
      return `${sent} messages sent, ${await callLines()} lines called`
    },
  },
  {
    name: 'start-document-migrations',
    description: 'Starts the workflows of migrations of documents that were started or resumed, or that Temporal has lost',
    intervalMs: 15_000,
    run: async ({ startMigrations }) => `${await startMigrations()} migrations run`,
  },
  {
    name: 'reconcile',
    description: 'Has deliveries begun again that Temporal has lost, and releases or cancels what should not be held or open any more',
    intervalMs: 'RECONCILE_INTERVAL_MS',
    run: async ({ release, reconcile, launcher }, { signal }) => {
      await launcher.sendAll(await release.releaseOverdue())
      return describeReconciled(await reconcile({ signal }))
    },
  },
  {
    name: 'settle-early-metadata',
    description:
      'Sets metadata that were told at the moment in which their document was created, and removes those that no document has taken',
    intervalMs: 60_000,
    run: async ({ db, findConnector }) => `${await settleEarlyMetadata(db, { findConnector })} documents got their metadata`,
  },
  {
    name: 'fold-counters',
    description: 'Adds up the changes of the number of documents, deliveries and attempts, so that totals and statistics read few rows',
    intervalMs: 15_000,
    run: async ({ db }, { signal }) => `${await foldCounters(db, signal)} changes added up`,
  },
  {
    name: 'compute-metrics',
    description: 'Computes metrics about all documents, destinations and repositories, which /metrics of the API then shows',
    intervalMs: 30_000,
    run: async ({ db, onItsOwn }) => `${await computeAggregates(db, onItsOwn)} values computed`,
  },
  {
    name: 'check-incidents',
    description: 'Opens and closes incidents, and announces them by the notifications of the workspaces',
    intervalMs: 30_000,
    run: async ({ checkIncidents, launcher }, { now }) => {
      const checked = await checkIncidents(now)
      await launcher.sendAll(checked.messages)
      return describeChecked(checked)
    },
  },
  {
    name: 'check-upstreams',
    description: 'Asks the upstreams of repositories that have failed whether they answer again',
    intervalMs: 60_000,
    run: async ({ checkUpstreams }, { signal }) => {
      const { asked, answering } = await checkUpstreams(signal)
      return `${answering} of ${asked} upstreams that have failed answer again`
    },
  },
  {
    name: 'make-manifests',
    description: 'Makes the manifest of each day that is over, asks for its time stamp, and brings both to destinations',
    intervalMs: 15 * minuteMs,
    run: async (deps, { now, signal }) =>
      `${await makeManifests(deps, now, signal)}, ${await copyManifests(deps, signal)} copied to destinations`,
  },
  {
    name: 'move-home',
    description: 'Removes contents that are at the home of their repository, after it has read them there, and reads altered ones again',
    intervalMs: 10 * minuteMs,
    run: async ({ moveHome }, { now, signal }) => {
      const { moved, waiting, checked } = await moveHome(now, signal)
      return `${moved} contents left for their home, ${waiting} wait, ${checked} altered ones read again`
    },
  },
  {
    name: 'create-partitions',
    description: 'Creates partitions ahead of time; without them, nothing could be recorded',
    intervalMs: hourMs,
    run: async ({ db }, { now }) => {
      await ensurePartitions(db, now)
      return 'all partitions exist'
    },
  },
  {
    name: 'remove-orphans',
    description: 'Removes contents that no document owns',
    intervalMs: hourMs,
    run: async ({ db, stores, passOver, config }, { now, signal }) => {
      const failures: SweepFailure[] = []
      const olderThan = new Date(now.getTime() - config.CONTENT_ORPHAN_AGE_MS)
      const removed = await sweepOrphans(db, stores, olderThan, signal, (failure) => {
        failures.push(failure)
        const { store, contentId, reason } = failure
        passOver('orphans', { store, ...(contentId !== undefined && { content_id: contentId }) }, new Error(reason))
      })
      const summary = summarizeSweep(removed, failures)
      // Temporal repeats the job until the store is back.
      if (failures.some(({ contentId }) => contentId === undefined)) throw new Error(summary)
      return summary
    },
  },
  {
    name: 'apply-retention',
    description:
      'Removes captured requests and bodies, audit entries, attempts, contents, documents, idempotency keys, incidents and events that are past their ' +
      'retention',
    intervalMs: hourMs,
    run: async ({ db, config, onItsOwn }, { now, signal }) =>
      summarize(await createRetention(db, config, { onItsOwn }).removeExpired(now, signal)),
  },
]

const summarize = ({
  rows,
  partitions,
  contents,
  documents,
  capturedContents,
  idempotencyKeys,
  incidents,
  events,
  passedOver,
}: Removed): string =>
  [
    ...(passedOver > 0 ? [`${passedOver} parts passed over, see the log of the workers`] : []),
    ...Object.entries(rows).map(([table, count]) => `${count} rows of ${table}`),
    `${partitions.length} partitions${partitions.length > 0 ? ` (${partitions.join(', ')})` : ''}`,
    `contents of ${contents} documents`,
    `${documents} documents`,
    `${capturedContents} contents of captured bodies`,
    `${idempotencyKeys} idempotency keys`,
    `${incidents} incidents`,
    `${events} events`,
  ].join(', ') + ' removed'

// More would not fit into a line.
const namedFailures = 3

const summarizeSweep = (removed: number, failures: SweepFailure[]): string => {
  const named = failures
    .slice(0, namedFailures)
    .map(({ store, contentId, reason }) => (contentId === undefined ? `${store} store: ${reason}` : `${contentId} (${store}): ${reason}`))
  return [
    `${removed} contents removed`,
    ...(failures.length > 0 ? [`${failures.length} failures`, ...named, ...(failures.length > named.length ? ['...'] : [])] : []),
  ].join('; ')
}

/** Returns every job with its interval, for the schedules. */
export const maintenanceJobs = (config: IntervalConfig): ScheduledJob[] =>
  jobs.map(({ name, description, intervalMs }) => ({
    name,
    description,
    intervalMs: typeof intervalMs === 'number' ? intervalMs : config[intervalMs],
  }))

export const maintenanceJobNames = (): string[] => jobs.map(({ name }) => name)

export const findJob = (name: string): MaintenanceJob | undefined => jobs.find((job) => job.name === name)

/**
 * Runs the jobs on timers of this process, if Temporal does not accept schedules.
 * @returns a function that stops them
 */
export const runJobsLocally = (deps: MaintenanceDeps, scheduled: readonly ScheduledJob[], log: Log): (() => Promise<void>) => {
  const stopped = new AbortController()
  const running = new Map<string, Promise<void>>()
  const runOne = ({ name }: ScheduledJob) => {
    if (running.has(name)) return
    const run = findJob(name)!
      .run(deps, { now: new Date(), signal: stopped.signal })
      .then(
        (summary) => log.debug({ job: name, summary }, 'maintenance job completed'),
        (thrown: unknown) => logFailure(log, thrown, 'maintenance job failed, the next run tries again', { job: name }),
      )
      .finally(() => running.delete(name))
    running.set(name, run)
  }
  for (const job of scheduled) runOne(job)
  const timers = scheduled.map((job) => setInterval(() => runOne(job), job.intervalMs))
  return async () => {
    for (const timer of timers) clearInterval(timer)
    stopped.abort()
    await Promise.all(running.values())
  }
}
