import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { createConnectors } from '../../src/connectors/index.ts'
import { credentialsOwner } from '../../src/connectors/target.ts'
import type { Database } from '../../src/db/database.ts'
import { createKeyRing } from '../../src/security/seal.ts'
import { createClient } from './client.ts'
import type { TestDatabase } from './database.ts'
import { createRoutes, testConfig } from './factories.ts'
import { temporalVariables, type TemporalConnection } from './temporal-cluster.ts'
import { until } from './until.ts'

const sourceMain = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
// Generous: on a machine that runs the other tests at the same time, a start has taken more than a minute, and two with Temporal in it.
const startTimeoutMs = { api: 110_000, worker: 110_000, server: 300_000 }
// Generous for the same reason. Only a failing test waits this long.
const deliveredTimeoutMs = 240_000

/** Is killed when it is disposed of. */
export interface RelayProcess extends AsyncDisposable {
  child: ChildProcess
  /** Address of an api process, or of the probes of a worker. */
  baseUrl: string
  /** Address of `/healthz`, `/readyz` and `/metrics` of an api process or a worker; that of `relay server` is in ready.json. */
  probesUrl: string
  pid: number
  /** Sends SIGKILL, so the process cannot clean up. */
  kill(): Promise<void>
  /** Sends SIGTERM and waits. @returns the exit status */
  stop(): Promise<number | null>
  /** Returns resident memory in bytes: the current value and the highest so far. */
  memory(): Promise<{ now: number; peak: number }>
}

export type Verb = 'api' | 'worker' | 'server'

interface StartOptions {
  /** Module that is loaded first, and that may exchange messages with this process. */
  preload?: string | undefined
  /** Path of the program; the one of the checkout by default. */
  main?: string
  /** Options of Node, for example `--cpu-prof`. */
  nodeOptions?: string[]
  /** Takes all output. To read it from a pipe would use time of a process that measures. */
  logFile?: string
  /** How to run a verb of another installation, with these variables and no others. */
  command?: (verb: Verb, variables: Record<string, string>) => { file: string; args: string[]; options: SpawnOptions }
}

/** Starts `relay api`, `relay worker` or `relay server` as a child process. */
export const spawnRelay = (
  verb: Verb,
  variables: Record<string, string>,
  { preload, main = sourceMain, nodeOptions = [], logFile, command }: StartOptions = {},
): ChildProcess => {
  const settings = {
    RELAY_PORT: '0',
    RELAY_PROBES_PORT: '0',
    RELAY_WORKER_PORT: '0',
    RELAY_HOST: '127.0.0.1',
    RELAY_LOG_LEVEL: 'info',
    ...variables,
  }
  const { file, args, options } = command?.(verb, settings) ?? {
    file: process.execPath,
    args: [...nodeOptions, ...(preload === undefined ? [] : ['--import', preload]), main, verb],
    options: { env: { ...process.env, ...settings } },
  }
  if (logFile === undefined) {
    return spawn(file, args, { ...options, stdio: ['ignore', 'ignore', 'pipe', ...(preload === undefined ? [] : ['ipc' as const])] })
  }
  const log = openSync(logFile, 'a')
  const child = spawn(file, args, { ...options, stdio: ['ignore', log, log] })
  closeSync(log)
  return child
}

/** Starts `relay api`, `relay worker` or `relay server` as a child process and waits until it is ready. */
export const startRelayProcess = async (
  verb: Verb,
  variables: Record<string, string>,
  options: StartOptions = {},
): Promise<RelayProcess> => {
  const child = spawnRelay(verb, variables, options)
  const exited = once(child, 'exit') as Promise<[number | null]>
  const { baseUrl, probesUrl } = await untilReady(child, verb, options.logFile)
  const kill = async () => {
    child.kill('SIGKILL')
    await exited
  }
  return {
    child,
    baseUrl,
    probesUrl,
    pid: child.pid!,
    kill,
    [Symbol.asyncDispose]: kill,
    stop: async () => {
      child.kill('SIGTERM')
      return (await exited)[0]
    },
    memory: async () => {
      const status = await readFile(`/proc/${child.pid}/status`, 'utf8')
      const kibibytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024
      return { now: kibibytes('VmRSS'), peak: kibibytes('VmHWM') }
    },
  }
}

/** Returns a function that starts processes with these variables, and one that kills all of them. */
export const createRelayProcesses = (variables: Record<string, string>) => {
  const started: Promise<RelayProcess>[] = []
  const killAll = async () => {
    for (const result of await Promise.allSettled(started.splice(0))) if (result.status === 'fulfilled') await result.value.kill()
  }
  return {
    /** @param more variables of this process */
    start: (verb: Verb, more: Record<string, string> = {}, options: StartOptions = {}): Promise<RelayProcess> => {
      const starting = startRelayProcess(verb, { ...variables, ...more }, options)
      started.push(starting)
      return starting
    },
    killAll,
    [Symbol.asyncDispose]: killAll,
  }
}

const untilReady = async (child: ChildProcess, verb: Verb, logFile: string | undefined): Promise<Addresses> => {
  const log: string[] = []
  const ready = Promise.withResolvers<Addresses>()
  const look = (lines: string[]) => {
    const addresses = addressesIn(lines, verb)
    if (addresses) ready.resolve(addresses)
  }
  const readLog = async (file: string) => {
    log.splice(0, log.length, ...(await readFile(file, 'utf8')).split('\n'))
    look(log)
  }
  if (logFile === undefined) {
    createInterface({ input: child.stderr! }).on('line', (line) => {
      log.push(line)
      look([line])
    })
  }
  const poll = logFile === undefined ? undefined : setInterval(() => void readLog(logFile), 20)
  const timer = setTimeout(() => ready.reject(new Error(`relay ${verb} was not ready in time`)), startTimeoutMs[verb])
  child.once('exit', (code) => ready.reject(new Error(`relay ${verb} ended with ${code}`)))
  try {
    return await ready.promise
  } catch (thrown) {
    child.kill('SIGKILL')
    if (logFile !== undefined) await readLog(logFile)
    throw new Error(`${(thrown as Error).message}:\n${log.join('\n')}`, { cause: thrown })
  } finally {
    clearInterval(poll)
    clearTimeout(timer)
  }
}

type Addresses = Pick<RelayProcess, 'baseUrl' | 'probesUrl'>

/** Returns the addresses that a process has logged when it was ready. */
const addressesIn = (lines: string[], verb: Verb): Addresses | undefined => {
  // That of development tells it to people.
  const told = lines.map((text) => /The relay is ready at (\S+)/.exec(text)?.[1]).find((address) => address !== undefined)
  if (told !== undefined) return { baseUrl: told, probesUrl: '' }
  const line = lines.find((each) => each.includes(`the ${verb} is ready`))
  if (line === undefined) return undefined
  const { base_url, probes_url = '' } = JSON.parse(line) as { base_url?: string; probes_url?: string }
  return { baseUrl: base_url ?? probes_url, probesUrl: probes_url }
}

/** Returns the variables that api and worker of a test share: database, Temporal, keys, and permission to deliver to loopback addresses. */
export const relayVariables = (database: Pick<TestDatabase, 'url'>, temporal: TemporalConnection): Record<string, string> => {
  const { RELAY_SECRET_KEYS, RELAY_ALLOWED_PRIVATE_CIDRS } = testConfig()
  return {
    DATABASE_URL: database.url,
    ...temporalVariables(temporal),
    RELAY_SECRET_KEYS: RELAY_SECRET_KEYS.join(','),
    RELAY_ALLOWED_PRIVATE_CIDRS: RELAY_ALLOWED_PRIVATE_CIDRS.join(','),
  }
}

/** Creates a workspace whose repository Z1 has a route to a webhook at this URL. */
export const routeToWebhook = (database: TestDatabase, url: string, workspaceSettings?: object) =>
  routeTo(database, 'webhook', { url }, {}, workspaceSettings)

interface DeliveredRow {
  id: string
  status: string
}

/** Creates a workspace whose repository Z1 has a route to this target, and functions that send documents and wait for them. */
export const routeTo = async ({ db }: TestDatabase, connector: string, config: object, credentials: object, workspaceSettings = {}) => {
  const routes = await createRoutes(db, [{ name: 'target', connector, config }], { workspaceSettings })
  const destinationId = routes.destinations['target']!
  await saveTarget(db, { workspaceId: routes.workspaceId, id: destinationId }, connector, config, credentials)
  const { workspaceId, workspaceSlug } = routes
  return {
    ...routes,
    destinationId,
    /** Sends a document of one component to an API process. @throws Error unless it is acknowledged */
    send: async ({ baseUrl }: { baseUrl: string }, docId: string, body: string | Buffer = 'hello'): Promise<void> => {
      const { sendCreate } = createClient({ baseUrl, name: `acme/${workspaceSlug}`, key: '' })
      const { status, text } = await sendCreate('Z1', docId, body, 'application/octet-stream')
      if (status !== 201) throw new Error(`the create of ${docId} was answered ${status}: ${text}`)
    },
    /** Waits until the workspace has so many documents, and all are delivered. @returns their ids */
    untilDelivered: async (count: number): Promise<string[]> => {
      const documents = () => db('documents').where({ workspace_id: workspaceId }).select<DeliveredRow[]>('id', 'status')
      const areDelivered = (rows: DeliveredRow[]) => rows.length === count && rows.every(({ status }) => status === 'delivered')
      return (await until('all documents are delivered', documents, areDelivered, deliveredTimeoutMs)).map(({ id }) => id)
    },
  }
}

/** Saves the config of a destination, with credentials that are sealed for it. */
export const saveTarget = async (
  db: Database,
  { workspaceId, id }: { workspaceId: string; id: string },
  connector: string,
  config: object,
  credentials: object,
) => {
  const owner = credentialsOwner(createConnectors().find(connector)!, { workspaceId, id, config: { ...config } })
  const sealed = createKeyRing(testConfig().RELAY_SECRET_KEYS).seal(credentials, owner)
  await db('destinations')
    .where({ id })
    .update({ config: JSON.stringify(config), credentials_sealed: sealed })
}
