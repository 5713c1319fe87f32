import { access, constants } from 'node:fs/promises'
import { isChangeable } from '../../access/people.ts'
import { findUnreadableCredentials } from '../../access/sealing-keys.ts'
import { readSignInSettings } from '../../app/sign-in-file.ts'
import { messageOf } from '../../base/errors.ts'
import { version } from '../../base/version.ts'
import type { Config } from '../../config/config.ts'
import { createContentDirectory } from '../../content/content-directory.ts'
import type { Database } from '../../db/database.ts'
import { requireSchema, TooOldError } from '../../db/migrations.ts'
import { requireServer } from '../../db/require-server.ts'
import { countOverdue, maxCountedOverdue } from '../../delivery/overdue.ts'
import { listTwins } from '../../home/sole-place.ts'
import { maintenanceJobs } from '../../maintenance/jobs.ts'
import { readFreeBytes } from '../../observe/metrics.ts'
import { ForwardProxyError } from '../../security/forward-proxy.ts'
import { createOpenIdProvider, createProviderGuard, redirectUriOf, SignInError } from '../../security/oidc.ts'
import { checkForwardProxy } from '../../security/outbound.ts'
import { createKeyRing } from '../../security/seal.ts'
import { listPollers, readServerTime } from '../../temporal/pollers.ts'
import { createSchedules } from '../../temporal/schedules.ts'
import { createWorkspaces } from '../../workspace/workspaces.ts'
import { applyFile, withApplyDeps } from '../apply/apply.ts'
import { isDrift, kindName } from '../apply/change.ts'
import { correctVariables, describeClockDifference, listed, listNames, Problem, problemWith, type Check, type Found } from './check.ts'
import { operatorChecks } from './operator-checks.ts'

const oldestNode = [22, 18] as const
const oldestPostgres = 14
// Older servers ignore fairness keys.
const oldestFairTemporal = [1, 29] as const

const freeSpace = 'Free space on this disk, or enlarge it.'

const isAtLeast = (found: string, [major, minor]: readonly [number, number]): boolean => {
  const [ownMajor = 0, ownMinor = 0] = found.split('.').map(Number)
  return ownMajor > major || (ownMajor === major && ownMinor >= minor)
}

const fairnessSettings = 'matching.useNewMatcher and matching.enableFairness'

/** Checks that the provider by which people sign in can be discovered, and that the workspaces of the file exist. */
const checkSignIn = async (config: Config, db: Database): Promise<Found> => {
  const { name, provider, rules } = await readSignInSettings(config.RELAY_OIDC_FILE!).catch(problemWith(undefined))
  const guard = createProviderGuard(config)
  try {
    await createOpenIdProvider(provider, guard).check()
  } catch (thrown) {
    if (!(thrown instanceof SignInError)) throw thrown
    throw new Problem(
      `People cannot sign in: ${thrown.message}.`,
      'Correct issuer and ca_certificate in the file, or restore the provider.',
    )
  } finally {
    await guard.close()
  }
  const existing = new Set((await createWorkspaces(db).list()).map(({ userSlug, workspaceSlug }) => `${userSlug}/${workspaceSlug}`))
  const named = new Set(rules.map(({ userSlug, workspaceSlug }) => `${userSlug}/${workspaceSlug}`))
  const missing = [...named].filter((workspace) => !existing.has(workspace))
  const baseUrl = config.RELAY_BASE_URL
  return {
    message: `${name} answers as ${provider.issuer}. It has to know the redirect URI ${redirectUriOf(baseUrl ?? 'RELAY_BASE_URL')}`,
    warnings: [
      ...(baseUrl === undefined ? ['RELAY_BASE_URL is not set: the redirect URI follows the Host header of a request.'] : []),
      ...(isChangeable(provider.claim)
        ? [
            `Access follows the claim ${provider.claim}, which a person or an administrator of the provider may give to somebody else. Use groups or roles.`,
          ]
        : []),
      ...(missing.length > 0 ? [`The file gives access to workspaces that do not exist: ${listed(missing)}.`] : []),
    ],
  }
}

/** Checks of the parts that the relay needs, and of conditions in its workspaces that need an operator. */
export const operationChecks: readonly Check[] = [
  {
    name: 'environment',
    urgency: 'stops',
    remedy: 'Correct its name, or remove it. `/docs/configuration` of the relay lists all variables.',
    find: ({ config, source }) => ({
      message: `relay ${version}, configured by ${source}: database ${databaseOf(config)}`,
      warnings: config.unknownVariables.map((name) => `The relay does not know the variable ${name}.`),
    }),
  },
  {
    name: 'node',
    urgency: 'stops',
    remedy: `Install Node.js ${oldestNode.join('.')} or newer.`,
    find: () => {
      const { node } = process.versions
      if (!isAtLeast(node, oldestNode)) throw new Problem(`Node.js v${node} is too old.`)
      return `v${node}`
    },
  },
  {
    name: 'database',
    urgency: 'stops',
    remedy: 'Set the limit, and let the pooler open its connections again.',
    find: async ({ db, config }) => {
      const warnings = await requireServer(db, config).catch(problemWith('Correct the variables of all processes, and restart them.'))
      const { rows } = await db.raw<{ rows: { version: number; name: string }[] }>(
        "select current_setting('server_version_num')::integer / 10000 as version, current_setting('server_version') as name",
      )
      const { version: major = 0, name = '' } = rows[0] ?? {}
      if (major < oldestPostgres) throw new Problem(`PostgreSQL ${name} is too old.`, `Use version ${oldestPostgres} or newer.`)
      return { message: `PostgreSQL ${name}`, warnings }
    },
  },
  {
    name: 'schema',
    urgency: 'stops',
    needs: ['database'],
    remedy: 'Run relay migrate. Running processes need no restart.',
    find: ({ db }) => checkSchema(db),
  },
  {
    name: 'secret keys',
    urgency: 'stops',
    remedy: correctVariables,
    find: ({ config: { RELAY_SECRET_KEYS: keys } }) => {
      createKeyRing(keys)
      return keys.map((entry) => entry.split(':')[0]).join(', ')
    },
  },
  {
    name: 'temporal',
    urgency: 'stops',
    remedy: correctVariables,
    find: async ({ temporal, config: { temporal: own, TEMPORAL_TASK_QUEUE: queue } }) => {
      await temporal.ping()
      return `${own.connectionOptions.address ?? '127.0.0.1:7233'}, namespace ${own.namespace ?? 'default'}, task queue ${queue}`
    },
  },
  {
    name: 'workers',
    urgency: 'stops',
    needs: ['temporal'],
    remedy: 'Start relay worker. If workers run, compare their TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE and TEMPORAL_TASK_QUEUE.',
    find: async ({ temporal: { connection, client }, config }) => {
      const pollers = await listPollers(connection, client.options.namespace, config)
      if (pollers.length > 0) return `${pollers.length} poll the task queue ${config.TEMPORAL_TASK_QUEUE}: ${listed(pollers)}`
      throw new Problem(`No worker polls the task queue ${config.TEMPORAL_TASK_QUEUE}, so nothing is delivered.`)
    },
  },
  {
    name: 'disk',
    urgency: 'stops',
    needs: ['database'],
    remedy: freeSpace,
    find: ({ db, isEmbedded, config }) => checkDisk(db, isEmbedded ? config.RELAY_DATA_DIR : undefined),
  },
  {
    name: 'content directory',
    urgency: 'stops',
    needs: ['schema'],
    remedy: 'Mount or create the directory, for the account of the relay.',
    find: async ({ db, config: { CONTENT_DIR: directory } }) => {
      if (directory === undefined) return 'not used'
      await access(directory, constants.R_OK | constants.W_OK).catch((thrown: unknown) => {
        throw new Problem(`Contents cannot be stored in CONTENT_DIR: ${messageOf(thrown)}.`)
      })
      const problem = await createContentDirectory(db, directory).problem()
      if (problem !== undefined) throw new Problem(`Contents cannot be stored in CONTENT_DIR: ${problem}.`)
      return directory
    },
  },
  {
    name: 'credentials',
    urgency: 'stops',
    needs: ['schema', 'secret keys'],
    remedy: 'Add the key that sealed them, or enter the credentials again.',
    find: async ({ db, config }) => {
      const unreadable = await findUnreadableCredentials(db, createKeyRing(config.RELAY_SECRET_KEYS))
      if (unreadable.length === 0) return 'every sealed credential opens'
      const named = `${unreadable.length} destinations or workspaces: ${listed(unreadable)}`
      throw new Problem(`No key in RELAY_SECRET_KEYS opens the credentials of ${named}.`)
    },
  },
  {
    name: 'outgoing proxy',
    urgency: 'delays',
    remedy: 'Correct RELAY_OUTBOUND_PROXY in all processes, or restore the proxy. Until then, attempts are retried.',
    applies: ({ config }) => config.RELAY_OUTBOUND_PROXY !== undefined,
    find: async ({ config }) => {
      await checkForwardProxy(config.RELAY_OUTBOUND_PROXY!, config.DELIVERY_CONNECT_TIMEOUT_MS).catch((thrown: unknown) => {
        throw thrown instanceof ForwardProxyError ? new Problem(`Targets cannot be reached: ${thrown.message}.`) : thrown
      })
      return 'answers, and accepts the user and the password of RELAY_OUTBOUND_PROXY'
    },
  },
  {
    name: 'sign-in',
    urgency: 'is a risk',
    needs: ['schema'],
    remedy: 'Correct the file of RELAY_OIDC_FILE, and restart the processes of the API.',
    applies: ({ config }) => config.RELAY_OIDC_FILE !== undefined,
    find: ({ config, db }) => checkSignIn(config, db),
  },
  ...operatorChecks,
  {
    name: 'deliveries',
    urgency: 'delays',
    needs: ['schema'],
    remedy: 'The schedule relay-reconcile checks them while a worker runs. To check them now, run relay reconcile.',
    find: async ({ db, config }) => {
      const overdue = await countOverdue(db, config)
      const count = `${overdue}${overdue === maxCountedOverdue ? ' or more' : ''}`
      return overdue === 0 ? 'none is overdue' : [`${count} are overdue, and nobody has asked Temporal about them.`]
    },
  },
  {
    name: 'documents',
    urgency: 'delays',
    needs: ['schema'],
    remedy: 'List them with relay failures. Retry them when their cause is gone, and acknowledge those that are not needed.',
    find: async ({ db }) => {
      const failed = await countFailedDocuments(db)
      return failed.length === 0 ? 'none is failed' : [`failed: ${listed(failed)}.`]
    },
  },
  {
    name: 'destinations',
    urgency: 'delays',
    needs: ['schema'],
    remedy: 'Correct what the last errors name, and test the destinations.',
    find: async ({ db }) => {
      const failing = await listFailingDestinations(db)
      return failing.length === 0 ? 'none is failing' : [`${failing.length} are failing: ${listed(failing)}.`]
    },
  },
  {
    name: 'homes',
    urgency: 'loses',
    needs: ['schema'],
    remedy: 'Give the other destination another bucket or folder: a delivery there replaces what only the home has.',
    find: async ({ db }) => {
      const twins = await listTwins(db)
      return twins.length === 0 ? 'no other destination names the place of one' : twins
    },
  },
  {
    name: 'drift',
    urgency: 'delays',
    needs: ['schema', 'secret keys'],
    remedy: 'Apply the file or correct it.',
    applies: ({ workspacesFile }) => workspacesFile !== undefined,
    find: async ({ db, config, workspacesFile }) => {
      const { path: file, variables } = workspacesFile!
      const changes = await withApplyDeps(config, variables, (deps) => applyFile(db, file, deps, { dryRun: true })).catch(
        problemWith('Correct the file, or set what it refers to.'),
      )
      const names = changes.filter(isDrift).map(({ workspace, kind, name }) => `${kindName(kind)} ${name} of ${workspace}`)
      if (names.length === 0) return `the workspaces are as ${file} describes them`
      const remedy = `See the differences with: relay apply -f ${file} --dry-run. Then apply the file or correct it.`
      return {
        message: `the workspaces are as ${file} describes them`,
        warnings: [`not as ${file} describes them: ${names.join(', ')}`],
        remedy,
      }
    },
  },
  {
    name: 'schedules',
    urgency: 'delays',
    needs: ['temporal'],
    remedy: 'Start relay worker, which creates them.',
    find: async ({ temporal: { client, connection }, config }) => {
      const jobs = maintenanceJobs(config)
      const missing = await createSchedules(client, connection, config).findMissing(jobs)
      if (missing.length > 0) throw new Problem(`Missing: ${missing.join(', ')}.`)
      return `${jobs.length} created`
    },
  },
  {
    name: 'Temporal clock',
    urgency: 'delays',
    needs: ['temporal'],
    remedy: 'Synchronize the clocks of all machines: the times of retries and the reconciler depend on them.',
    find: async ({ temporal: { connection, client }, config }) => {
      const reading = await readServerTime(connection, client.options.namespace, config.TEMPORAL_START_TIMEOUT_MS)
      const warnings = describeClockDifference('Temporal', reading)
      return { message: 'The clocks of this machine and of Temporal differ by less than 5 seconds', warnings }
    },
  },
  {
    name: 'Temporal settings',
    urgency: 'delays',
    needs: ['temporal'],
    remedy: `Upgrade Temporal to ${oldestFairTemporal.join('.')} or newer, and set ${fairnessSettings} to true in its dynamic configuration.`,
    find: async ({ temporal: { connection }, config }) => {
      const deadline = Date.now() + config.TEMPORAL_START_TIMEOUT_MS
      const { serverVersion } = await connection.withDeadline(deadline, () => connection.workflowService.getSystemInfo({}))
      return reportTemporalSettings(serverVersion)
    },
  },
  {
    name: 'search attributes',
    urgency: 'delays',
    needs: ['temporal'],
    remedy: 'Run relay migrate, or ask the operator of the Temporal cluster to register them.',
    find: async ({ temporal }) => {
      if (await temporal.hasSearchAttributes()) return 'registered'
      throw new Problem('Not registered: the list filters of the Temporal UI find nothing.')
    },
  },
]

/** Returns the address of the database, without its password. */
export const databaseOf = ({ DATABASE_URL }: Pick<Config, 'DATABASE_URL'>) => {
  if (DATABASE_URL === undefined || !URL.canParse(DATABASE_URL)) return 'the address in DATABASE_URL'
  const { host, pathname } = new URL(DATABASE_URL)
  return `${host}${pathname}`
}

export const checkSchema = async (db: Database): Promise<string> => {
  await requireSchema(db).catch((thrown: unknown) => {
    const remedy = thrown instanceof TooOldError ? 'Install the version of the relay that has migrated this database.' : undefined
    return problemWith(remedy)(thrown)
  })
  return 'up to date'
}

const GiB = 1024 ** 3
// The limit of the alert rule RelayDataDirFull, and one for an early warning. PostgreSQL stops if its disk is full.
const freeBytesMin = 2 * GiB
const freeBytesEnough = 10 * GiB

const inGiB = (bytes: number) => `${(bytes / GiB).toFixed(1)} GiB`

/** @param dataDir directory of the embedded PostgreSQL; undefined if the database is elsewhere and its disk cannot be seen from here */
export const checkDisk = async (db: Database, dataDir: string | undefined, readFree = readFreeBytes): Promise<Found> => {
  const { rows } = await db.raw<{ rows: { bytes: number }[] }>('select pg_database_size(current_database()) as bytes')
  const size = `The database has ${inGiB(rows[0]!.bytes)}`
  if (dataDir === undefined) return `${size}. PostgreSQL does not show how much is free on its disk`
  const free = await readFree(dataDir)
  const message = `${size}, and ${inGiB(free)} are free on the disk of ${dataDir}`
  if (free < freeBytesMin) throw new Problem(`${message}. PostgreSQL and Temporal stop if it is full.`, freeSpace)
  return { message, warnings: free < freeBytesEnough ? [`${message}.`] : [] }
}

/** Names the destinations whose last delivery failed or whose circuit is not closed, with the last error. The tables are small. */
const listFailingDestinations = (db: Database) =>
  listNames(
    db,
    `
    select
      user_slug || '/' || workspace_slug || ' ' || destinations.name || ' (' || destinations.id
        || coalesce(', ' || nullif(failed_attempts, 0) || ' failed in a row', '') || coalesce(', ' || last_error_code, '')
        || coalesce(': ' || left(last_error, 200), '') || ')' as name
    from destinations
    join workspaces on workspaces.id = destinations.workspace_id
    left join destination_gates on destination_id = destinations.id
    where (destinations.status = 'failing' or circuit <> 'closed')
      and destinations.deleted_at is null
    order by destinations.id
    `,
  )

const failedMax = 1_000

/** Counts the failed documents of each workspace that are not acknowledged, up to a limit. The index documents_failed_and_open serves it. */
const countFailedDocuments = async (db: Database): Promise<string[]> => {
  const { rows } = await db.raw<{ rows: { workspace: string; count: number }[] }>(
    `
    select
      workspace.user_slug || '/' || workspace.workspace_slug as workspace,
      failed.count
    from workspaces as workspace
    cross join lateral (
      select count(*)::integer as count
      from (
        select
        from documents
        where workspace_id = workspace.id
          and status = 'failed'
          and acknowledged_at is null
        limit :limit
      ) as document
    ) as failed
    where failed.count > 0
    order by workspace
    `,
    { limit: failedMax + 1 },
  )
  return rows.map(({ workspace, count }) => `${workspace} ${count > failedMax ? `more than ${failedMax}` : count}`)
}

/** Reports what the version of the server implies. Temporal does not show its dynamic configuration. */
export const reportTemporalSettings = (serverVersion: string) => ({
  message:
    `Temporal ${serverVersion || 'of an unknown version'}. Its API does not show the dynamic configuration. ` +
    `Make sure that ${fairnessSettings}, and system.enableActivityEagerExecution before 1.32, are true`,
  warnings:
    serverVersion && !isAtLeast(serverVersion, oldestFairTemporal)
      ? [`Temporal ${serverVersion} ignores fairness keys, so a workspace with many documents delays the others.`]
      : [],
})
