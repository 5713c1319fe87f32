import { access, constants } from 'node:fs/promises'
// Checks of `relay doctor` that do not belong to the hardening checklist.
import type { Connection } from '@temporalio/client'
import { messageOf, UserError } from '../../base/errors.ts'
import type { Config } from '../../config/config.ts'
import type { Database } from '../../db/database.ts'
import { requireSchema, TooOldError } from '../../db/migrations.ts'
import { requireServer } from '../../db/require-server.ts'
import { countOverdue, maxCountedOverdue } from '../../delivery/overdue.ts'
import { maintenanceJobs } from '../../maintenance/jobs.ts'
import { readFreeBytes } from '../../observe/metrics.ts'
import { createKeyRing } from '../../security/seal.ts'
import type { openTemporal } from '../../temporal/client.ts'
import { listPollers } from '../../temporal/pollers.ts'
import { readServerTime } from '../../temporal/pollers.ts'
import { createSchedules } from '../../temporal/schedules.ts'
import { findUnreadableCredentials } from '../../workspace/sealing-keys.ts'
import { withApplyDeps } from '../apply/apply-kinds.ts'
import { applyFile } from '../apply/apply.ts'
import { isDrift, kindName } from '../apply/change.ts'
import { describeClockDifference } from './database-checks.ts'
import { countFailedDocuments, listFailingDestinations } from './workspace-checks.ts'

/** A condition that a check has found and that prevents the relay from working. */
export class Problem extends UserError {
  readonly remedy: string

  constructor(message: string, remedy: string) {
    super(message)
    this.name = 'Problem'
    this.remedy = remedy
  }
}

/** Result of a check that has not failed. */
export interface Report {
  message: string
  /** Conditions that stop nothing, but that need an operator. */
  warnings: string[]
  /** Remedy for the warnings. */
  remedy: string
}

const oldestNode = [22, 18] as const
const oldestPostgres = 14
// Older servers ignore fairness keys.
const oldestFairTemporal = [1, 29] as const

const isAtLeast = (version: string, [major, minor]: readonly [number, number]): boolean => {
  const [ownMajor = 0, ownMinor = 0] = version.split('.').map(Number)
  return ownMajor > major || (ownMajor === major && ownMinor >= minor)
}

export const checkNode = (): string => {
  const { node } = process.versions
  if (isAtLeast(node, oldestNode)) return `v${node}`
  throw new Problem(`Node.js v${node} is too old.`, `Install Node.js ${oldestNode.join('.')} or newer.`)
}

export const checkDatabase = async (db: Database, config: Config): Promise<string | Report> => {
  const warnings = await requireServer(db, config).catch((thrown: unknown) => {
    throw thrown instanceof UserError ? new Problem(thrown.message, 'Correct the variables of all processes, and restart them.') : thrown
  })
  const { rows } = await db.raw<{ rows: { version: number; name: string }[] }>(
    "select current_setting('server_version_num')::integer / 10000 as version, current_setting('server_version') as name",
  )
  const { version: major = 0, name = '' } = rows[0] ?? {}
  if (major < oldestPostgres) throw new Problem(`PostgreSQL ${name} is too old.`, `Use version ${oldestPostgres} or newer.`)
  const message = `PostgreSQL ${name}`
  return warnings.length > 0 ? { message, warnings, remedy: 'Set the limit, and let the pooler open its connections again.' } : message
}

export const checkSchema = async (db: Database): Promise<string> => {
  try {
    await requireSchema(db)
    return 'up to date'
  } catch (thrown) {
    if (thrown instanceof TooOldError)
      throw new Problem(thrown.message, 'Install the version of the relay that has migrated this database.')
    throw thrown instanceof UserError ? new Problem(thrown.message, 'Run relay migrate. Running processes need no restart.') : thrown
  }
}

const GiB = 1024 ** 3
// Those of the alert rule RelayDataDirFull, and an early warning. PostgreSQL stops if its disk is full.
const freeBytesMin = 2 * GiB
const freeBytesEnough = 10 * GiB

const inGiB = (bytes: number) => `${(bytes / GiB).toFixed(1)} GiB`

/** @param dataDir directory of the embedded PostgreSQL; undefined if the database is elsewhere and its disk cannot be seen from here */
export const checkDisk = async (db: Database, dataDir: string | undefined, readFree = readFreeBytes): Promise<string | Report> => {
  const { rows } = await db.raw<{ rows: { bytes: number }[] }>('select pg_database_size(current_database()) as bytes')
  const size = `The database has ${inGiB(rows[0]!.bytes)}`
  if (dataDir === undefined) return `${size}. PostgreSQL does not show how much is free on its disk`
  const free = await readFree(dataDir)
  const message = `${size}, and ${inGiB(free)} are free on the disk of ${dataDir}`
  const remedy = 'Free space on this disk, or enlarge it.'
  if (free < freeBytesMin) throw new Problem(`${message}. PostgreSQL and Temporal stop if it is full.`, remedy)
  return { message, warnings: free < freeBytesEnough ? [`${message}.`] : [], remedy }
}

export const checkContentDir = async ({ CONTENT_DIR: directory }: Pick<Config, 'CONTENT_DIR'>): Promise<string> => {
  if (directory === undefined) return 'not used'
  try {
    await access(directory, constants.R_OK | constants.W_OK)
  } catch (thrown) {
    throw new Problem(
      `Contents cannot be stored in CONTENT_DIR: ${messageOf(thrown)}.`,
      'Mount or create the directory, for the account of the relay.',
    )
  }
  return directory
}

const listed = (names: string[], total = names.length) => `${names.slice(0, 5).join(', ')}${total > 5 ? ` and ${total - 5} more` : ''}`

export const checkCredentials = async (db: Database, config: Config): Promise<string> => {
  const unreadable = await findUnreadableCredentials(db, createKeyRing(config.RELAY_SECRET_KEYS))
  if (unreadable.length === 0) return 'every sealed credential opens'
  throw new Problem(
    `No key in RELAY_SECRET_KEYS opens the credentials of ${unreadable.length} destinations or workspaces: ${listed(unreadable)}.`,
    'Add the key that sealed them, or enter the credentials again.',
  )
}

export const checkDestinations = async (db: Database): Promise<string | Report> => {
  const failing = await listFailingDestinations(db)
  if (failing.length === 0) return 'none is failing'
  const names = failing.map(({ workspace, name, id }) => `${workspace} ${name} (${id})`)
  return {
    message: 'checked',
    warnings: [`${failing.length} are failing: ${listed(names)}.`],
    remedy: 'See last_error of GET /destinations, correct the cause, and test them.',
  }
}

export const checkDocuments = async (db: Database): Promise<string | Report> => {
  const failed = await countFailedDocuments(db)
  if (failed.length === 0) return 'none is failed'
  const counts = failed.map(({ workspace, count, more }) => `${workspace} ${more ? 'more than ' : ''}${count}`)
  return {
    message: 'checked',
    warnings: [`failed: ${listed(counts)}.`],
    remedy: 'List them with GET /documents?status=failed, and retry them when their cause is gone.',
  }
}

export const checkDeliveries = async (db: Database, config: Config): Promise<string | Report> => {
  const overdue = await countOverdue(db, config)
  if (overdue === 0) return 'none is overdue'
  const count = `${overdue}${overdue === maxCountedOverdue ? ' or more' : ''}`
  return {
    message: 'checked',
    warnings: [`${count} are overdue, and nobody has asked Temporal about them.`],
    remedy: 'The schedule relay-reconcile checks them while a worker runs. To check them now, run relay reconcile.',
  }
}

type Temporal = ReturnType<typeof openTemporal>

export const checkSearchAttributes = async (temporal: Temporal): Promise<string> => {
  if (await temporal.hasSearchAttributes()) return 'registered'
  throw new Problem(
    'Not registered: the list filters of the Temporal UI find nothing.',
    'Run relay migrate, or ask the operator of the Temporal cluster to register them.',
  )
}

export const checkWorkers = async ({ connection, client }: Temporal, config: Config): Promise<string> => {
  const pollers = await listPollers(connection, client.options.namespace, config)
  if (pollers.length > 0) return `${pollers.length} poll the task queue ${config.TEMPORAL_TASK_QUEUE}: ${listed(pollers)}`
  throw new Problem(
    `No worker polls the task queue ${config.TEMPORAL_TASK_QUEUE}, so nothing is delivered.`,
    'Start relay worker. If workers run, compare their TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE and TEMPORAL_TASK_QUEUE.',
  )
}

export const checkSchedules = async ({ client, connection }: Temporal, config: Config): Promise<string> => {
  const jobs = maintenanceJobs(config)
  const missing = await createSchedules(client, connection, config).findMissing(jobs)
  if (missing.length > 0) throw new Problem(`Missing: ${missing.join(', ')}.`, 'Start relay worker, which creates them.')
  return `${jobs.length} created`
}

export const checkTemporalClock = async ({ connection, client }: Temporal, config: Config): Promise<Report> => ({
  message: 'The clocks of this machine and of Temporal differ by less than 5 seconds',
  warnings: describeClockDifference(
    'Temporal',
    await readServerTime(connection, client.options.namespace, config.TEMPORAL_START_TIMEOUT_MS),
  ),
  remedy: 'Synchronize the clocks of all machines: the times of retries and the reconciler depend on them.',
})

const fairnessSettings = 'matching.useNewMatcher and matching.enableFairness'

/** Reports what the version of the server implies. Temporal shows its dynamic configuration to nobody. */
export const reportTemporalSettings = (serverVersion: string): Report => ({
  message:
    `Temporal ${serverVersion || 'of an unknown version'}. Its API does not show the dynamic configuration. ` +
    `Make sure that ${fairnessSettings}, and system.enableActivityEagerExecution before 1.32, are true`,
  warnings:
    serverVersion && !isAtLeast(serverVersion, oldestFairTemporal)
      ? [`Temporal ${serverVersion} ignores fairness keys, so a workspace with many documents delays the others.`]
      : [],
  remedy: `Upgrade Temporal to ${oldestFairTemporal.join('.')} or newer, and set ${fairnessSettings} to true in its dynamic configuration.`,
})

export const checkTemporalSettings = async (
  { connection }: { connection: Pick<Connection, 'withDeadline' | 'workflowService'> },
  config: Config,
): Promise<Report> => {
  const { serverVersion } = await connection.withDeadline(Date.now() + config.TEMPORAL_START_TIMEOUT_MS, () =>
    connection.workflowService.getSystemInfo({}),
  )
  return reportTemporalSettings(serverVersion)
}

/** The file of `relay apply`, and the environment that it refers to. */
export interface WorkspacesFile {
  path: string
  variables: NodeJS.ProcessEnv
}

/** Compares the workspaces with the file that describes them. @throws Problem if the file cannot be applied */
export const checkDrift = async (db: Database, config: Config, { path: file, variables }: WorkspacesFile): Promise<Report> => {
  try {
    const changes = await withApplyDeps(config, variables, (deps) => applyFile(db, file, deps, { dryRun: true }))
    const names = changes.filter(isDrift).map(({ workspace, kind, name }) => `${kindName(kind)} ${name} of ${workspace}`)
    return {
      message: `the workspaces are as ${file} describes them`,
      warnings: names.length > 0 ? [`not as ${file} describes them: ${names.join(', ')}`] : [],
      remedy: `See the differences with: relay apply -f ${file} --dry-run. Then apply the file or correct it.`,
    }
  } catch (thrown) {
    if (thrown instanceof UserError) throw new Problem(thrown.message, 'Correct the file, or set what it refers to.')
    throw thrown
  }
}
