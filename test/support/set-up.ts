// Starts or finds the servers that tests run against, and publishes their addresses and paths in TEST_* variables. A variable that is
// already set is kept.
import { mkdtemp, rm, statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { messageOf, UserError } from '../../src/base/errors.ts'
import { newId } from '../../src/base/ids.ts'
import { createLog } from '../../src/base/log.ts'
import { readConfig } from '../../src/config/config.ts'
import { openDatabase } from '../../src/db/database.ts'
import { migrate } from '../../src/db/migrations.ts'
import { findTemporal } from '../../src/dev/find-temporal.ts'
import { startPostgres } from '../../src/dev/postgres-server.ts'
import { bundleCheckout } from '../../src/temporal/checkout-bundle.ts'
import { databaseConfig } from './database.ts'
import { findApiTools, findMoto } from './python-tools.ts'
import { startSharedDevServer } from './shared-dev-server.ts'
import cleanUp, { registerCleanup } from './tear-down.ts'
import { startTemporalCluster } from './temporal-cluster.ts'
import {
  findAzurite,
  findSpectral,
  findBrowser,
  findExim,
  findHaproxy,
  findHelm,
  findJava,
  findKubeconform,
  findKubernetesApi,
  findNginx,
  findPgbouncer,
  findPostfix,
  findProFtpd,
  findPostgresPrograms,
  findPrometheus,
  findSshd,
  temporalServerFolder,
  findTimeSkippingServer,
  findVersitygw,
  type ToolOptions,
} from './tools.ts'

const GiB = 1024 ** 3

/**
 * Returns the folder for the files of PostgreSQL: in memory if there is enough of it. A run creates 300 databases of 12 MB, and each takes 30
 * instead of 400 ms of processor time there.
 */
const workFolder = async (): Promise<string> => {
  const memory = await statfs('/dev/shm').catch(() => undefined)
  const isLarge = memory !== undefined && memory.bavail * memory.bsize >= 4 * GiB && process.availableMemory() >= 8 * GiB
  return isLarge ? '/dev/shm' : tmpdir()
}

const say = (line: string) => void process.stderr.write(`${line}\n`)

/** Prepares a tier. jest does not run the teardown if the set-up fails. */
const setUp = (prepare: (workDir: string) => Promise<void>) => async (): Promise<void> => {
  const workDir = await mkdtemp(join(await workFolder(), 'relay-test-'))
  registerCleanup(() => rm(workDir, { recursive: true, force: true }))
  try {
    await prepare(workDir)
  } catch (thrown) {
    await cleanUp()
    throw thrown
  }
}

const startDatabase = async (workDir: string): Promise<void> => {
  await provide('TEST_DATABASE_URL', async () => {
    const config = readConfig()
    const postgres = await startPostgres({ dataDir: join(workDir, 'data'), config, log: createLog('warn'), say: () => {}, fast: true })
    registerCleanup(() => postgres.stop())
    await allowDatabases(postgres.adminUrl)
    return postgres.url
  })
  await provide('TEST_DATABASE_TEMPLATE', () => createTemplate(process.env.TEST_DATABASE_URL!))
}

// Each test file creates a database of its own, and one changes a setting that only PostgreSQL 15 and newer can allow to a role. Apart from
// that, the role has the rights of the relay's role in production. Tests that read plans make the statistics that they need: autovacuum would make
// others at any moment, and it would use a database that is being dropped.
const allowDatabases = async (adminUrl: string): Promise<void> => {
  const admin = openDatabase(databaseConfig(adminUrl), 'test setup')
  await admin.raw('alter role relay createdb')
  await admin.raw('alter system set autovacuum = off')
  await admin.raw('select pg_reload_conf()')
  const { rows } = await admin.raw<{ rows: { isNew: boolean }[] }>(
    `select current_setting('server_version_num')::integer >= 150000 as "isNew"`,
  )
  await admin.raw(rows[0]!.isNew ? 'grant set on parameter deadlock_timeout to relay' : 'alter role relay superuser')
  await admin.destroy()
}

/** Prepares the tier db. Fails without PostgreSQL. Without PgBouncer, only the tests that need it fail. */
export const setUpDb = setUp(async (workDir) => {
  await startDatabase(workDir)
  await orWarn(provide('TEST_PGBOUNCER_BIN', () => findPgbouncer({ config: readConfig(), say })))
})

const prepareSystem = async (workDir: string): Promise<void> => {
  const tools = { config: readConfig(), say }
  process.env['TEST_WORK_DIR'] = workDir
  await startDatabase(workDir)
  await Promise.all([
    provide('TEST_WORKFLOW_BUNDLE', () => bundleInto(workDir)),
    orWarn(provide('TEST_TEMPORAL_BIN', () => findTemporal(tools))),
    orWarn(provide('TEST_TIME_SKIPPING_BIN', () => findTimeSkippingServer(tools))),
    orWarn(provide('TEST_VERSITYGW_BIN', () => findVersitygw(tools))),
    orWarn(provide('TEST_AZURITE_BIN', () => findAzurite(tools))),
    orWarn(provide('TEST_SSHD_BIN', () => findSshd(tools))),
    orWarn(provide('TEST_BROWSER_BIN', () => findBrowser(tools))),
    orWarn(provide('TEST_API_TOOLS_DIR', () => findApiTools(tools))),
    orWarn(provide('TEST_MOTO_DIR', () => findMoto(tools))),
    orWarn(provide('TEST_PROMETHEUS_DIR', () => findPrometheus(tools))),
    orWarn(provide('TEST_JAVA_BIN', () => findJava(tools))),
  ])
  // script/test --temporal postgres
  if (process.env['TEST_TEMPORAL'] === 'postgres') await provide('TEST_TEMPORAL_CLUSTER', () => startCluster(workDir, tools))
  else await provide('TEST_TEMPORAL_DEV_SERVER', () => startDevServer(join(workDir, 'namespaces')))
}

/** Prepares the tier system. Fails without PostgreSQL. If another program is missing, only the tests that need it fail. */
export const setUpSystem = setUp(prepareSystem)

/** What the system tests need, and the programs that only tests of the tier release run. */
export const setUpRelease = setUp(async (workDir) => {
  if (process.env['TEST_WORK_DIR'] === undefined) await prepareSystem(workDir)
  const tools = { config: readConfig(), say }
  await Promise.all([
    orWarn(provide('TEST_SPECTRAL_BIN', () => findSpectral(tools))),
    orWarn(provide('TEST_HELM_BIN', () => findHelm(tools))),
    orWarn(provide('TEST_KUBECONFORM_BIN', () => findKubeconform(tools))),
    orWarn(provide('TEST_KUBERNETES_API_DIR', () => findKubernetesApi(tools))),
    orWarn(provide('TEST_HAPROXY_BIN', () => findHaproxy(tools))),
    orWarn(provide('TEST_NGINX_BIN', () => findNginx(tools))),
    orWarn(provide('TEST_PROFTPD_BIN', () => findProFtpd(tools))),
    orWarn(provide('TEST_EXIM_BIN', () => findExim(tools))),
    orWarn(provide('TEST_POSTFIX_DIR', () => findPostfix(tools))),
    orWarn(provide('TEST_POSTGRES_DIR', () => findPostgresPrograms(tools))),
    orWarn(provide('TEST_PGBOUNCER_BIN', () => findPgbouncer(tools))),
  ])
})

/** Starts the dev server. If its program is missing, every file that needs a server says so. */
const startDevServer = async (folder: string): Promise<string> => {
  const program = process.env.TEST_TEMPORAL_BIN
  if (!program) return ''
  const { text, stop } = await startSharedDevServer(program, folder)
  registerCleanup(stop)
  return text
}

const startCluster = async (workDir: string, tools: ToolOptions): Promise<string> => {
  const programs = await temporalServerFolder(tools)
  say('Starting Temporal: frontend, history, matching and worker services with PostgreSQL, 512 history shards, mTLS.')
  const { cluster, stop } = await startTemporalCluster({
    folder: join(workDir, 'temporal'),
    programs,
    cli: process.env.TEST_TEMPORAL_BIN!,
    serverUrl: process.env.TEST_DATABASE_URL!,
  })
  registerCleanup(stop)
  return JSON.stringify(cluster)
}

const provide = async (variable: string, make: () => Promise<string>): Promise<void> => {
  process.env[variable] ||= await make()
}

const orWarn = async (providing: Promise<void>) => {
  try {
    await providing
  } catch (thrown) {
    if (!(thrown instanceof UserError)) throw thrown
    say(`Tests will fail: ${messageOf(thrown)}`)
  }
}

/** Creates the database that every test database of the run is a copy of. @returns its name */
const createTemplate = async (serverUrl: string): Promise<string> => {
  const name = `template_${newId().toLowerCase()}`
  const admin = openDatabase(databaseConfig(serverUrl), 'test setup')
  registerCleanup(async () => {
    await admin.raw('drop database ?? with (force)', [name])
    await admin.destroy()
  })
  await admin.raw('create database ??', [name])

  const templateUrl = new URL(serverUrl)
  templateUrl.pathname = `/${name}`
  const template = openDatabase(databaseConfig(templateUrl.href), 'test template')
  await migrate(template)
  await template.destroy()
  return name
}

// One bundle serves the workers of all test files.
const bundleInto = async (workDir: string): Promise<string> => {
  const path = join(workDir, 'workflow-bundle.js')
  await writeFile(path, await bundleCheckout())
  return path
}
