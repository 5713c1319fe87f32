// A Temporal server as production runs it: each service is a process, PostgreSQL keeps the state and the visibility, all connections of the
// cluster and of its clients use mTLS. The scripts and the dynamic configuration are those of docker-compose.yml.
import { appendFile, copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Client } from 'pg'
import { parse } from 'yaml'
import { newId } from '../../src/base/ids.ts'
import { readConfig } from '../../src/config/config.ts'
import { findFreePort } from '../../src/programs/ports.ts'
import { runProgram } from '../../src/programs/programs.ts'
import { createAuthority } from './certificates.ts'
import { startServer, type RunningServer } from './server-program.ts'

export const historyShards = 512
export const sqlPlugin = 'postgres12_pgx'
// The first to start writes the metadata of the cluster, which two cannot do at the same time.
const services = ['history', 'frontend', 'matching', 'worker'] as const
type Service = (typeof services)[number]

/** Where a cluster is and what it consists of. Another process can start a further service from it. */
export interface TemporalCluster {
  /** Folder of the certificates, the configurations and the logs. */
  folder: string
  /** Folder with the programs temporal-server and temporal-sql-tool. */
  programs: string
  /** A database of the PostgreSQL server. Its role may create databases. */
  serverUrl: string
  database: string
  visibilityDatabase: string
  /** Variables with which the relay, an SDK or the CLI connects: address, and certificates. */
  variables: Record<string, string>
}

interface ServiceOptions {
  /** Settings under `global`, beside TLS. */
  global?: object
  /** False: the service accepts clients without a certificate. */
  requireClientAuth?: boolean
  /** How far the service gives way to others when the processors are busy. */
  niceness?: number
}

export interface RunningService extends RunningServer {
  address: string
}

const compose = (name: string) => fileURLToPath(new URL(`../../deploy/compose/${name}`, import.meta.url))
const dynamicConfigFile = 'dynamic-config.yaml'
// The shortest interval that the server accepts.
const dynamicConfigPollMs = 5_000
const hostName = 'temporal.test'
const schemaTimeoutMs = 120_000
const namespaceTimeoutMs = 150_000

/** Returns the configuration of a process that runs one service. */
export const serviceConfig = (
  { folder, serverUrl, database, visibilityDatabase, variables }: Omit<TemporalCluster, 'programs'>,
  ports: { grpcPort: number; membershipPort: number },
  { global = {}, requireClientAuth = true }: ServiceOptions = {},
) => {
  const file = (name: string) => join(folder, name)
  const { hostname, port, username, password } = new URL(serverUrl)
  const store = (databaseName: string, connections: number) => ({
    sql: {
      pluginName: sqlPlugin,
      databaseName,
      connectAddr: `${hostname}:${port || 5432}`,
      connectProtocol: 'tcp',
      user: decodeURIComponent(username),
      password: decodeURIComponent(password),
      maxConns: connections,
      maxIdleConns: connections,
      maxConnLifetime: '1h',
    },
  })
  const server = (required: boolean) => ({
    certFile: file('server.pem'),
    keyFile: file('server.key'),
    requireClientAuth: required,
    ...(required && { clientCaFiles: [file('ca.pem')] }),
  })
  const client = { serverName: hostName, rootCaFiles: [file('ca.pem')] }
  return {
    log: { stdout: true, level: 'warn' },
    persistence: {
      numHistoryShards: historyShards,
      defaultStore: 'default',
      visibilityStore: 'visibility',
      datastores: { default: store(database, 16), visibility: store(visibilityDatabase, 4) },
    },
    global: {
      membership: { maxJoinDuration: '30s', broadcastAddress: '127.0.0.1' },
      tls: {
        internode: { server: server(true), client },
        frontend: { server: server(requireClientAuth), client },
        systemWorker: { certFile: file('client.pem'), keyFile: file('client.key'), client },
      },
      ...global,
    },
    // The server requires an entry for each service, and takes only that of the service that it runs. It finds the others by membership.
    services: Object.fromEntries(services.map((name) => [name, { rpc: { ...ports, bindOnIP: '127.0.0.1' } }])),
    clusterMetadata: {
      enableGlobalNamespace: false,
      failoverVersionIncrement: 10,
      masterClusterName: 'active',
      currentClusterName: 'active',
      clusterInformation: {
        active: { enabled: true, initialFailoverVersion: 1, rpcName: 'frontend', rpcAddress: variables['TEMPORAL_ADDRESS'] },
      },
    },
    publicClient: { hostPort: variables['TEMPORAL_ADDRESS'] },
    dynamicConfigClient: { filepath: file(dynamicConfigFile), pollInterval: `${dynamicConfigPollMs / 1_000}s` },
  }
}

const writeCertificates = async (folder: string): Promise<void> => {
  const authority = await createAuthority()
  try {
    await writeFile(join(folder, 'ca.pem'), authority.certificate)
    for (const name of ['server', 'client']) {
      const { key, cert } = await authority.issue(`DNS:${hostName}`)
      await writeFile(join(folder, `${name}.key`), key, { mode: 0o600 })
      await writeFile(join(folder, `${name}.pem`), cert)
    }
  } finally {
    await authority.remove()
  }
}

const childEnvironment = () => readConfig().childEnvironment

const createSchemas = async ({ programs, serverUrl, database, visibilityDatabase }: TemporalCluster): Promise<void> => {
  const { hostname, port, username, password } = new URL(serverUrl)
  const env = childEnvironment()
  const variables = {
    PATH: `${programs}:${env['PATH']}`,
    SQL_PLUGIN: sqlPlugin,
    SQL_HOST: hostname,
    SQL_PORT: port || '5432',
    SQL_USER: decodeURIComponent(username),
    SQL_PASSWORD: decodeURIComponent(password),
    DBNAME: database,
    VISIBILITY_DBNAME: visibilityDatabase,
  }
  await runProgram('/bin/sh', [compose('temporal-schema.sh')], { env: { ...env, ...variables }, timeoutMs: schemaTimeoutMs })
}

/** Creates a namespace, which takes until the cluster answers. */
export const createNamespace = async ({ variables }: TemporalCluster, cli: string, namespace: string): Promise<void> => {
  const script = `temporal() { "$TEMPORAL_CLI" "$@"; }; . '${compose('temporal-namespace.sh')}'`
  await runProgram('/bin/sh', ['-c', script], {
    env: { ...childEnvironment(), ...variables, TEMPORAL_NAMESPACE: namespace, TEMPORAL_CLI: cli },
    timeoutMs: namespaceTimeoutMs,
  })
}

/**
 * Adds `name=value` to the dynamic configuration of a namespace, unless all namespaces have it already.
 * @throws `Error` if the setting is there with another value or for another namespace: two test files cannot use it in one run
 */
export const addSetting = async ({ folder }: TemporalCluster, namespace: string, setting: string): Promise<void> => {
  const file = join(folder, dynamicConfigFile)
  const [name, value] = setting.split('=') as [string, string]
  type Entry = { value: unknown; constraints?: object }
  const read = async () => parse(await readFile(file, 'utf8')) as Record<string, Entry[]>
  const present = (await read())[name]
  if (present?.length === 1 && present[0]!.constraints === undefined && present[0]!.value === parse(value)) return
  if (present) throw new Error(`the cluster has the setting ${name} already: ${JSON.stringify(present)}`)
  await appendFile(file, `${name}:\n  - value: ${value}\n    constraints:\n      namespace: ${namespace}\n`)
  // Fails if another process has added the same name: a name that stands there twice is an error.
  await read()
  // Each service reads the file on its own timer.
  await delay(2 * dynamicConfigPollMs)
}

/** Starts one service, on a port of its own or on this one. */
export const startService = async (
  cluster: TemporalCluster,
  service: Service,
  { niceness = 0, grpcPort, ...options }: ServiceOptions & { grpcPort?: number } = {},
): Promise<RunningService> => {
  // In PostgreSQL, the server stores the port of membership in two bytes with a sign.
  const ports = { grpcPort: grpcPort ?? (await findFreePort()), membershipPort: await findFreePort() }
  const name = `${service}-${ports.grpcPort}`
  const configFile = join(cluster.folder, `${name}.json`)
  // YAML includes JSON.
  await writeFile(configFile, JSON.stringify(serviceConfig(cluster, ports, options), null, 2), { mode: 0o600 })
  const args = ['--config-file', configFile, '--allow-no-auth', 'start', '--service', service]
  const running = await startServer(join(cluster.programs, 'temporal-server'), args, {
    name: `The service ${service} of Temporal`,
    port: ports.grpcPort,
    logFile: join(cluster.folder, `${name}.log`),
    niceness,
  })
  return { ...running, address: `127.0.0.1:${ports.grpcPort}` }
}

/** Starts a cluster in databases of its own, and creates the namespace `default`. */
export const startTemporalCluster = async (options: {
  folder: string
  programs: string
  cli: string
  serverUrl: string
  niceness?: number
}): Promise<{
  cluster: TemporalCluster
  stop(): Promise<void>
  /** Kills the services, and leaves the databases. */
  kill(): Promise<void>
}> => {
  const { folder, programs, cli, serverUrl, niceness = 0 } = options
  await mkdir(folder, { recursive: true })
  await writeCertificates(folder)
  await copyFile(compose('temporal-dynamic-config.yaml'), join(folder, dynamicConfigFile))
  const grpcPort = await findFreePort()
  const id = newId().toLowerCase()
  const cluster: TemporalCluster = {
    folder,
    programs,
    serverUrl,
    database: `temporal_${id}`,
    visibilityDatabase: `temporal_visibility_${id}`,
    variables: {
      TEMPORAL_ADDRESS: `127.0.0.1:${grpcPort}`,
      TEMPORAL_NAMESPACE: 'default',
      TEMPORAL_TLS: 'true',
      TEMPORAL_TLS_SERVER_NAME: hostName,
      TEMPORAL_TLS_SERVER_CA_CERT_PATH: join(folder, 'ca.pem'),
      TEMPORAL_TLS_CLIENT_CERT_PATH: join(folder, 'client.pem'),
      TEMPORAL_TLS_CLIENT_KEY_PATH: join(folder, 'client.key'),
    },
  }
  const running: RunningService[] = []
  const stop = async () => {
    await Promise.all(running.splice(0).map((service) => service.stop()))
    await dropDatabases(cluster)
  }
  try {
    await createSchemas(cluster)
    const start = async (service: Service) => {
      running.push(await startService(cluster, service, { niceness, ...(service === 'frontend' ? { grpcPort } : {}) }))
    }
    for (const service of services) await start(service)
    await createNamespace(cluster, cli, 'default')
    const kill = async () => void (await Promise.all(running.splice(0).map((service) => service.kill())))
    return { cluster, stop, kill }
  } catch (thrown) {
    await stop()
    throw thrown
  }
}

const dropDatabases = async ({ serverUrl, database, visibilityDatabase }: TemporalCluster): Promise<void> => {
  const client = new Client({ connectionString: serverUrl })
  await client.connect()
  try {
    for (const name of [database, visibilityDatabase])
      await client.query(`drop database if exists ${client.escapeIdentifier(name)} with (force)`)
  } finally {
    await client.end()
  }
}

/** The cluster of this run, or undefined if each file has a dev server. */
export const temporalCluster = (): TemporalCluster | undefined => {
  const text = process.env['TEST_TEMPORAL_CLUSTER']
  return text === undefined ? undefined : (JSON.parse(text) as TemporalCluster)
}

/** A server of a test. One of the cluster has options for TLS. */
export interface TemporalConnection {
  address: string
  namespace?: string
  connectionOptions?: { tls?: unknown }
}

/** Returns the variables with which a process of the relay, or the CLI, connects to this server. */
export const temporalVariables = ({ address, namespace, connectionOptions }: TemporalConnection): Record<string, string> => ({
  ...(connectionOptions?.tls ? temporalCluster()!.variables : {}),
  TEMPORAL_ADDRESS: address,
  TEMPORAL_NAMESPACE: namespace ?? 'default',
})
