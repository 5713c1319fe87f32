import { messageOf, UserError } from '../../base/errors.ts'
import type { Config } from '../../config/config.ts'
import { openDatabase } from '../../db/database.ts'
import { isOutage } from '../../db/errors.ts'
import { openTemporal } from '../../temporal/client.ts'
import { explainTemporalError, isTemporalError } from '../../temporal/errors.ts'
import { correctVariables, Problem, urgencies, type Check, type CheckDeps } from './check.ts'
import { hardeningChecks } from './hardening-checks.ts'
import { databaseOf, operationChecks } from './operation-checks.ts'

export interface Finding {
  name: string
  /** False if the relay cannot work, or if the check could not find out. */
  ok: boolean
  status: 'failed' | 'not_checked' | 'warning' | 'ok'
  /** Result of the check. For a line of the hardening checklist, what is required. */
  message: string
  /** Conditions that stop nothing, but that need an operator. */
  warnings: string[]
  /** Remedy; `null` if the status is `ok`. */
  remedy: string | null
}

const statuses: Finding['status'][] = ['failed', 'not_checked', 'warning', 'ok']

const checks: readonly Check[] = [...operationChecks, ...hardeningChecks].toSorted(
  (one, other) => urgencies.indexOf(one.urgency ?? 'is a risk') - urgencies.indexOf(other.urgency ?? 'is a risk'),
)

/** Returns the exit status of `relay doctor`. @param isStrict true if warnings also count */
export const exitStatusOf = (findings: readonly Pick<Finding, 'ok' | 'status'>[], isStrict: boolean): 0 | 1 =>
  findings.some(({ ok, status }) => !ok || (isStrict && status === 'warning')) ? 1 : 0

/**
 * Checks everything that the relay needs, what in its workspaces needs an operator, and the hardening checklist. A finding that is not `ok`
 * says what to do. What needs a dependency that is unavailable is not checked.
 * @returns the environment, then the other findings by their status, and in the order of their urgency within one
 */
export const diagnose = async (
  config: Config,
  options: Pick<CheckDeps, 'source' | 'isEmbedded' | 'workspacesFile'> = { source: 'environment variables', isEmbedded: false },
): Promise<Finding[]> => {
  const db = openDatabase(config, 'doctor')
  // The interceptors, which retry, are left out: a retry that is still waiting when the connection is closed would end the process.
  const connectionOptions = { ...config.temporal.connectionOptions, interceptors: [] }
  const temporal = openTemporal({ ...config, temporal: { ...config.temporal, connectionOptions } })
  const deps: CheckDeps = { config, db, temporal, ...options }
  const running = new Map<string, Promise<Finding>>()
  /** Runs a check once, after those that it needs. */
  const find = (check: Check): Promise<Finding> => {
    const known = running.get(check.name)
    if (known) return known
    const needed = (check.needs ?? []).map((name) => find(checks.find((other) => other.name === name)!))
    const finding = Promise.all(needed).then((found) => runCheck(check, deps, found))
    running.set(check.name, finding)
    return finding
  }
  try {
    const [environment, ...findings] = await Promise.all(checks.filter(({ applies }) => applies?.(deps) ?? true).map(find))
    return [environment!, ...findings.toSorted((one, other) => statuses.indexOf(one.status) - statuses.indexOf(other.status))]
  } finally {
    await temporal.close()
    await db.destroy()
  }
}

const runCheck = async ({ name, requirement, remedy: usual, find }: Check, deps: CheckDeps, needed: Finding[]): Promise<Finding> => {
  const missing = needed.find(({ ok }) => !ok)
  if (missing) {
    const remedy = `Correct ${missing.name} first, then run relay doctor again.`
    return { name, ok: false, status: 'not_checked', message: `needs: ${missing.name}`, warnings: [], remedy }
  }
  try {
    const found = await find(deps)
    if (typeof found === 'string') return { name, ok: true, status: 'ok', message: found, warnings: [], remedy: null }
    const inOrder = requirement?.replaceAll('`', '') ?? 'checked'
    const { message, warnings, remedy = usual } = Array.isArray(found) ? { message: inOrder, warnings: found } : found
    const hasWarnings = warnings.length > 0
    return { name, ok: true, status: hasWarnings ? 'warning' : 'ok', message, warnings, remedy: hasWarnings ? remedy : null }
  } catch (thrown) {
    return { name, ok: false, status: 'failed', warnings: [], ...explain(thrown, usual, deps.config) }
  }
}

/** Explains an error in the words of the relay, with addresses and without passwords. */
const explain = (thrown: unknown, usual: string, config: Config): { message: string; remedy: string } => {
  if (thrown instanceof Problem) return { message: thrown.message, remedy: thrown.remedy ?? usual }
  if (thrown instanceof UserError) return { message: thrown.message, remedy: correctVariables }
  if (isOutage(thrown)) {
    const message = `PostgreSQL does not answer at ${databaseOf(config)}. (${messageOf(thrown)})`
    return { message, remedy: 'Check that it runs, and DATABASE_URL.' }
  }
  if (isTemporalError(thrown)) return explainTemporalError(thrown, config.temporal)
  return { message: messageOf(thrown), remedy: 'See the log of the API and of PostgreSQL, and report the message if it stays.' }
}
