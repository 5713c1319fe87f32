import { countFailedDocuments, listFailingDestinations } from './commands/workspace-checks.ts'
import { findUnreadableCredentials } from './commands/sealing-keys.ts'
import type { Config } from './config.ts'
import { isOutage, openDatabase, type Database } from './db/database.ts'
import { requireSchema } from './db/migrations.ts'
import { countOverdue, maxCountedOverdue } from './delivery/reconcile.ts'
import { messageOf, UserError } from './errors.ts'
import { hardeningChecklist, type HardeningCheck } from './hardening/checklist.ts'
import { maintenanceJobs } from './maintenance.ts'
import { createKeyRing } from './security/seal.ts'
import { openTemporal } from './temporal/client.ts'
import { describeTemporalError, isTemporalError } from './temporal/errors.ts'
import { listPollers } from './temporal/pollers.ts'
import { createSchedules } from './temporal/schedules.ts'
import { version } from './version.ts'

export interface Finding {
  name: string
  /** False if the relay cannot work, or if nobody knows. */
  ok: boolean
  status: 'failed' | 'not_checked' | 'warning' | 'ok'
  /** Result of the check. For a line of the hardening checklist, what is required. */
  message: string
  /** Conditions that stop nothing, but that need an operator. */
  warnings: string[]
  /** Remedy for the warnings, unless they name it themselves. */
  remedy: string | null
}

/** Returns the exit status of `relay doctor`. @param isStrict true if warnings count, too */
export const exitStatusOf = (findings: readonly Pick<Finding, 'ok' | 'status'>[], isStrict: boolean): 0 | 1 =>
  findings.some(({ ok, status }) => !ok || (isStrict && status === 'warning')) ? 1 : 0

type Report = Pick<Finding, 'message' | 'warnings'> & Partial<Pick<Finding, 'remedy'>>

const oldestNode = [22, 18] as const
const oldestPostgres = 14

/**
 * Checks everything that the relay needs, what in its workspaces needs an operator, and the hardening checklist. A finding that is not `ok`
 * says what to do. What needs a dependency that is unavailable is not checked.
 * @param source where the configuration comes from, for the finding that names the environment
 * @returns the environment, then the other findings in the order of their urgency
 */
export const diagnose = async (config: Config, source = 'environment variables'): Promise<Finding[]> => {
  const db = openDatabase(config, 'doctor')
  // Without the retries of the client: a retry that is still waiting when the connection is closed would end the process.
  const connectionOptions = { ...config.temporal.connectionOptions, interceptors: [] }
  const temporal = openTemporal({ ...config, temporal: { ...config.temporal, connectionOptions } })
  const describe = describeErrors(config)
  const check = createCheck(describe)
  try {
    const environment = check('environment', async () => describeEnvironment(config, source))
    const node = check('node', async () => checkNode())
    const keys = check('secret keys', async () => {
      createKeyRing(config.RELAY_SECRET_KEYS)
      return config.RELAY_SECRET_KEYS.map((entry) => entry.split(':')[0]).join(', ')
    })
    const database = check('database', () => checkDatabase(db))
    const schema = check('schema', async () => (await requireSchema(db), 'up to date'), [database])
    const server = check('temporal', async () => (await temporal.ping(), describeTemporal(config)))
    const hardening = hardeningChecklist.map((line) =>
      check(
        line.name,
        async () => reportOf(line, await line.find({ config, db })),
        line.needs.map((name) => ({ schema, 'secret keys': keys })[name]),
      ),
    )
    const findings = await Promise.all([
      node,
      database,
      schema,
      keys,
      check('credentials', () => checkCredentials(db, config), [schema, keys]),
      check('destinations', () => checkDestinations(db), [schema]),
      check('documents', () => checkDocuments(db), [schema]),
      check('deliveries', () => checkDeliveries(db, config), [schema]),
      server,
      check('search attributes', () => checkSearchAttributes(temporal), [server]),
      check('workers', () => checkWorkers(temporal, config), [server]),
      check('schedules', () => checkSchedules(temporal, config), [server]),
      ...hardening,
    ])
    return [await environment, ...findings.toSorted((one, other) => urgency.indexOf(one.status) - urgency.indexOf(other.status))]
  } finally {
    await temporal.close()
    await db.destroy()
  }
}

const urgency: Finding['status'][] = ['failed', 'not_checked', 'warning', 'ok']

const reportOf = ({ requirement, remedy }: HardeningCheck, found: string[]): Report => ({
  message: requirement.replaceAll('`', ''),
  warnings: found,
  remedy,
})

type Temporal = ReturnType<typeof openTemporal>

/** Returns a function that runs a check after the checks that it depends on. */
const createCheck =
  (describe: (thrown: unknown) => string) =>
  async (name: string, run: () => Promise<string | Report>, needs: Promise<Finding>[] = []): Promise<Finding> => {
    const missing = (await Promise.all(needs)).find(({ ok }) => !ok)
    if (missing) return { name, ok: false, status: 'not_checked', message: `needs: ${missing.name}`, warnings: [], remedy: null }
    try {
      const result = await run()
      const { message, warnings, remedy = null } = typeof result === 'string' ? { message: result, warnings: [] } : result
      const hasWarnings = warnings.length > 0
      return { name, ok: true, status: hasWarnings ? 'warning' : 'ok', message, warnings, remedy: hasWarnings ? remedy : null }
    } catch (thrown) {
      return { name, ok: false, status: 'failed', message: describe(thrown), warnings: [], remedy: null }
    }
  }

/** Describes errors in the words of the relay, with addresses and without passwords. */
const describeErrors = (config: Config) => (thrown: unknown) => {
  if (thrown instanceof UserError) return thrown.message
  if (isOutage(thrown))
    return `PostgreSQL does not answer at ${databaseOf(config)}. Check that it runs, and DATABASE_URL (${messageOf(thrown)}).`
  if (isTemporalError(thrown)) return describeTemporalError(thrown, config.temporal)
  return messageOf(thrown)
}

const databaseOf = ({ DATABASE_URL }: Config) => {
  if (DATABASE_URL === undefined || !URL.canParse(DATABASE_URL)) return 'the address in DATABASE_URL'
  const { host, pathname } = new URL(DATABASE_URL)
  return `${host}${pathname}`
}

const describeTemporal = ({ temporal: { connectionOptions, namespace }, TEMPORAL_TASK_QUEUE }: Config) =>
  `${connectionOptions.address ?? '127.0.0.1:7233'}, namespace ${namespace ?? 'default'}, task queue ${TEMPORAL_TASK_QUEUE}`

const describeEnvironment = (config: Config, source: string) => `relay ${version}, configured by ${source}: database ${databaseOf(config)}`

const checkNode = () => {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const isSupported = major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1])
  if (!isSupported) throw new UserError(`Node.js ${process.version} is too old. Install ${oldestNode.join('.')} or newer.`)
  return process.version
}

const checkDatabase = async (db: Database): Promise<string> => {
  const { rows } = await db.raw<{ rows: { version: number; name: string }[] }>(
    "select current_setting('server_version_num')::integer / 10000 as version, current_setting('server_version') as name",
  )
  const { version: major = 0, name = '' } = rows[0] ?? {}
  if (major < oldestPostgres) throw new UserError(`PostgreSQL ${name} is too old. Use version ${oldestPostgres} or newer.`)
  return `PostgreSQL ${name}`
}

const listed = (names: string[], total = names.length) => `${names.slice(0, 5).join(', ')}${total > 5 ? ` and ${total - 5} more` : ''}`

const checkCredentials = async (db: Database, config: Config): Promise<string | Report> => {
  const unreadable = await findUnreadableCredentials(db, createKeyRing(config.RELAY_SECRET_KEYS))
  if (unreadable.length === 0) return 'every sealed credential opens'
  throw new UserError(
    `No key in RELAY_SECRET_KEYS opens the credentials of ${unreadable.length} destinations or workspaces: ${listed(unreadable)}. ` +
      'Add the key that sealed them, or enter the credentials again.',
  )
}

const checkDestinations = async (db: Database): Promise<string | Report> => {
  const failing = await listFailingDestinations(db)
  if (failing.length === 0) return 'none is failing'
  const names = failing.map(({ workspace, name, id }) => `${workspace} ${name} (${id})`)
  return {
    message: 'checked',
    warnings: [`${failing.length} are failing: ${listed(names)}. See last_error of GET /destinations, and test them.`],
  }
}

const checkDocuments = async (db: Database): Promise<string | Report> => {
  const failed = await countFailedDocuments(db)
  if (failed.length === 0) return 'none is failed'
  const counts = failed.map(({ workspace, count, more }) => `${workspace} ${more ? 'more than ' : ''}${count}`)
  const remedy = 'List them with GET /documents?status=failed, and retry them when their cause is gone.'
  return { message: 'checked', warnings: [`failed: ${listed(counts)}. ${remedy}`] }
}

const checkDeliveries = async (db: Database, config: Config): Promise<string | Report> => {
  const overdue = await countOverdue(db, config)
  if (overdue === 0) return 'none is overdue'
  const count = `${overdue}${overdue === maxCountedOverdue ? ' or more' : ''}`
  const remedy = 'The schedule relay-reconcile checks them while a worker runs. To check them now, run relay reconcile.'
  return { message: 'checked', warnings: [`${count} are overdue, and nobody has asked Temporal about them. ${remedy}`] }
}

const checkSearchAttributes = async (temporal: Temporal) => {
  if (await temporal.hasSearchAttributes()) return 'registered'
  throw new UserError('Not registered. Run relay migrate, or ask the operator of the Temporal cluster to register them.')
}

const checkWorkers = async ({ connection, client }: Temporal, config: Config): Promise<string | Report> => {
  const pollers = await listPollers(connection, client.options.namespace, config)
  if (pollers.length > 0) return `${pollers.length} poll the task queue ${config.TEMPORAL_TASK_QUEUE}: ${listed(pollers)}`
  throw new UserError(`No worker polls the task queue ${config.TEMPORAL_TASK_QUEUE}, so nothing is delivered. Start: relay worker`)
}

const checkSchedules = async ({ client, connection }: Temporal, config: Config): Promise<string | Report> => {
  const jobs = maintenanceJobs(config)
  const missing = await createSchedules(client, connection, config).findMissing(jobs)
  if (missing.length > 0) throw new UserError(`Missing: ${missing.join(', ')}. A relay worker creates them when it starts.`)
  return `${jobs.length} created`
}
