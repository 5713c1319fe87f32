import { messageOf, UserError } from '../../base/errors.ts'
import { version } from '../../base/version.ts'
import type { Config } from '../../config/config.ts'
import { isOutage, openDatabase } from '../../db/database.ts'
import { createKeyRing } from '../../security/seal.ts'
import { openTemporal } from '../../temporal/client.ts'
import { explainTemporalError, isTemporalError } from '../../temporal/errors.ts'
import { hardeningChecklist, type HardeningCheck } from './checklist.ts'
import {
  checkCredentials,
  checkContentDir,
  checkDatabase,
  checkDeliveries,
  checkDestinations,
  checkDisk,
  checkDocuments,
  checkDrift,
  checkNode,
  checkSchema,
  checkSchedules,
  checkSearchAttributes,
  checkTemporalClock,
  checkTemporalSettings,
  checkWorkers,
  Problem,
  type Report,
  type WorkspacesFile,
} from './doctor-checks.ts'

export interface Finding {
  name: string
  /** False if the relay cannot work, or if nobody knows. */
  ok: boolean
  status: 'failed' | 'not_checked' | 'warning' | 'ok'
  /** Result of the check. For a line of the hardening checklist, what is required. */
  message: string
  /** Conditions that stop nothing, but that need an operator. */
  warnings: string[]
  /** Remedy; `null` if the status is `ok`. */
  remedy: string | null
}

/** Returns the exit status of `relay doctor`. @param isStrict true if warnings count, too */
export const exitStatusOf = (findings: readonly Pick<Finding, 'ok' | 'status'>[], isStrict: boolean): 0 | 1 =>
  findings.some(({ ok, status }) => !ok || (isStrict && status === 'warning')) ? 1 : 0

export interface DiagnoseOptions {
  /** Where the configuration comes from, for the finding that names the environment. */
  source: string
  /** True if PostgreSQL stores its data in RELAY_DATA_DIR. */
  isEmbedded: boolean
  /** The file that describes the workspaces, if they are to be compared with it, and the environment that it refers to. */
  workspacesFile?: WorkspacesFile | undefined
}

/**
 * Checks everything that the relay needs, what in its workspaces needs an operator, and the hardening checklist. A finding that is not `ok`
 * says what to do. What needs a dependency that is unavailable is not checked.
 * @returns the environment, then the other findings in the order of their urgency
 */
export const diagnose = async (
  config: Config,
  { source, isEmbedded, workspacesFile }: DiagnoseOptions = { source: 'environment variables', isEmbedded: false },
): Promise<Finding[]> => {
  const db = openDatabase(config, 'doctor')
  // Without the retries of the client: a retry that is still waiting when the connection is closed would end the process.
  const connectionOptions = { ...config.temporal.connectionOptions, interceptors: [] }
  const temporal = openTemporal({ ...config, temporal: { ...config.temporal, connectionOptions } })
  const check = createCheck(explainErrors(config))
  try {
    const environment = check('environment', async () => describeEnvironment(config, source))
    const keys = check('secret keys', async () => {
      createKeyRing(config.RELAY_SECRET_KEYS)
      return config.RELAY_SECRET_KEYS.map((entry) => entry.split(':')[0]).join(', ')
    })
    const database = check('database', () => checkDatabase(db, config))
    const schema = check('schema', () => checkSchema(db), [database])
    const server = check('temporal', async () => (await temporal.ping(), describeTemporal(config)))
    const hardening = new Map(
      hardeningChecklist.map((line) => [
        line.name,
        check(
          line.name,
          async () => reportOf(line, await line.find({ config, db })),
          line.needs.map((name) => ({ schema, 'secret keys': keys })[name]),
        ),
      ]),
    )
    const take = (name: string) => {
      const finding = hardening.get(name)!
      hardening.delete(name)
      return finding
    }

    // The order of urgency within one status: first what stops everything, then what loses something, then what delays, then risks.
    const findings = await Promise.all([
      check('node', async () => checkNode()),
      database,
      schema,
      keys,
      server,
      check('workers', () => checkWorkers(temporal, config), [server]),
      check('disk', () => checkDisk(db, isEmbedded ? config.RELAY_DATA_DIR : undefined), [database]),
      check('content directory', () => checkContentDir(config)),
      take('partitions'),
      check('credentials', () => checkCredentials(db, config), [schema, keys]),
      take('unconnected repositories'),
      check('deliveries', () => checkDeliveries(db, config), [schema]),
      check('documents', () => checkDocuments(db), [schema]),
      check('destinations', () => checkDestinations(db), [schema]),
      ...(workspacesFile ? [check('drift', () => checkDrift(db, config, workspacesFile), [schema, keys])] : []),
      check('schedules', () => checkSchedules(temporal, config), [server]),
      take('open receivers'),
      take('clocks'),
      check('Temporal clock', () => checkTemporalClock(temporal, config), [server]),
      check('Temporal settings', () => checkTemporalSettings(temporal, config), [server]),
      check('search attributes', () => checkSearchAttributes(temporal), [server]),
      ...hardening.values(),
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

interface Explanation {
  message: string
  remedy: string
}

/** Returns a function that runs a check after the checks that it depends on. */
const createCheck =
  (explain: (thrown: unknown) => Explanation) =>
  async (name: string, run: () => Promise<string | Report>, needs: Promise<Finding>[] = []): Promise<Finding> => {
    const missing = (await Promise.all(needs)).find(({ ok }) => !ok)
    if (missing) {
      const remedy = `Correct ${missing.name} first, then run relay doctor again.`
      return { name, ok: false, status: 'not_checked', message: `needs: ${missing.name}`, warnings: [], remedy }
    }
    try {
      const result = await run()
      if (typeof result === 'string') return { name, ok: true, status: 'ok', message: result, warnings: [], remedy: null }
      const { message, warnings, remedy } = result
      const hasWarnings = warnings.length > 0
      return { name, ok: true, status: hasWarnings ? 'warning' : 'ok', message, warnings, remedy: hasWarnings ? remedy : null }
    } catch (thrown) {
      return { name, ok: false, status: 'failed', warnings: [], ...explain(thrown) }
    }
  }

const environmentRemedy = 'Run relay doctor with the environment variables of the API, after correcting them.'

/** Explains errors in the words of the relay, with addresses and without passwords. */
const explainErrors =
  (config: Config) =>
  (thrown: unknown): Explanation => {
    if (thrown instanceof Problem) return { message: thrown.message, remedy: thrown.remedy }
    if (thrown instanceof UserError) return { message: thrown.message, remedy: environmentRemedy }
    if (isOutage(thrown)) {
      const message = `PostgreSQL does not answer at ${databaseOf(config)}. (${messageOf(thrown)})`
      return { message, remedy: 'Check that it runs, and DATABASE_URL.' }
    }
    if (isTemporalError(thrown)) return explainTemporalError(thrown, config.temporal)
    return { message: messageOf(thrown), remedy: 'See the log of the API and of PostgreSQL, and report the message if it stays.' }
  }

const databaseOf = ({ DATABASE_URL }: Config) => {
  if (DATABASE_URL === undefined || !URL.canParse(DATABASE_URL)) return 'the address in DATABASE_URL'
  const { host, pathname } = new URL(DATABASE_URL)
  return `${host}${pathname}`
}

const describeTemporal = ({ temporal: { connectionOptions, namespace }, TEMPORAL_TASK_QUEUE }: Config) =>
  `${connectionOptions.address ?? '127.0.0.1:7233'}, namespace ${namespace ?? 'default'}, task queue ${TEMPORAL_TASK_QUEUE}`

const describeEnvironment = (config: Config, source: string): Report => ({
  message: `relay ${version}, configured by ${source}: database ${databaseOf(config)}`,
  warnings: config.unknownVariables.map((name) => `The relay does not know the variable ${name}.`),
  remedy: 'Correct its name, or remove it. docs/configuration.md lists all variables.',
})
