import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Connection } from '@temporalio/client'
import { UserError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { readPidFile, stopOrphanedProcess, writePidFile } from '../programs/orphaned-processes.ts'
import { isListening, stablePort } from '../programs/ports.ts'
import { processorWaitMs } from '../programs/processor-wait.ts'
import { backgroundNiceness, exitCodeOf, signalGroup, startProgram } from '../programs/programs.ts'
import { stopServer, stopTimeoutMs, waitUntilReady } from '../programs/server-process.ts'
import { supervise, type Started } from '../programs/supervised.ts'
import { serverConfiguration, services, type ServicePorts } from './configuration.ts'
import { dynamicConfig, dynamicConfigFile, garbageCollector, memoryLimits } from './dynamic-config.ts'
import type { TemporalPrograms } from './find-programs.ts'
import { forwardLog, isOfStart } from './log-lines.ts'
import { ensureNamespace } from './namespace.ts'
import type { Ownership } from './ownership.ts'
import { storeOf, type StoreConfig } from './store.ts'

interface TemporalServerOptions {
  /** Directory for all its files: the configuration with the password of the database, the ports, the process id. */
  folder: string
  config: StoreConfig & Pick<Config, 'childEnvironment' | 'temporal'>
  programs: Pick<TemporalPrograms, 'server'>
  ownership: Ownership
  log: Log
  say: (line: string) => void
  signal?: AbortSignal | undefined
  health?: Health
}

/** When a server counts as one that does not answer. */
interface Health {
  /** Time that one call may take, and the pause after it. */
  callMaxMs: number
  pauseMs: number
  /** Time without an answer after which it is killed. What it waited for a processor does not count, up to `starvedMaxMs` in sum. */
  silentMaxMs: number
  starvedMaxMs: number
}

interface TemporalServer {
  /** Address of the frontend, which stays the same while this process runs. */
  address: string
  /** Is rejected when the server can run here no longer. */
  ended: Promise<never>
  stop(): Promise<void>
}

const usualHealth: Health = { callMaxMs: 5_000, pauseMs: 2_000, silentMaxMs: 30_000, starvedMaxMs: 300_000 }
const silentCallsMin = 5
const namespaceMaxMs = 20_000
const namespacePauseMs = 200
const frontendService = 'temporal.api.workflowservice.v1.WorkflowService'
// CANCELLED, DEADLINE_EXCEEDED and UNAVAILABLE of gRPC: no answer. Any other error is an answer.
const silentCodes = new Set<unknown>([1, 4, 14])

/**
 * Starts the Temporal server in one process, and keeps it running: it is started again if it ends, and killed if it has stopped to answer. It
 * ends with this process, even if that is killed.
 * @throws `UserError` if it does not start
 */
export const startTemporalServer = async (options: TemporalServerOptions): Promise<TemporalServer> => {
  const { folder, config, programs, ownership, log, say, signal, health = usualHealth } = options
  const store = storeOf(config)
  const configFile = join(folder, 'server.json')
  const pidFile = join(folder, 'temporal.pid')
  const dynamicConfigPath = join(folder, 'dynamic-config.yaml')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const pid = await readPidFile(pidFile)
  if (pid !== undefined && (await stopOrphanedProcess({ pid, marker: configFile, timeoutMs: stopTimeoutMs })))
    say('Stopped a Temporal server that a crashed process had left running.')
  await writeFile(dynamicConfigPath, dynamicConfigFile([...dynamicConfig, ...memoryLimits]))

  let isStopping = false
  let failure: unknown
  let address: string | undefined
  const moved = Promise.withResolvers<never>()

  const startOnce = async (): Promise<Started<true>> => {
    const ports = await choosePorts(folder)
    const { grpcPort } = ports.frontend
    // The API and the worker are connected to this address.
    if (address !== undefined && address !== `127.0.0.1:${grpcPort}`) {
      const taken = new UserError(
        `Another program has taken the port of Temporal (${address}). Start the relay again: it takes another port.`,
      )
      moved.reject(taken)
      throw taken
    }
    address = `127.0.0.1:${grpcPort}`
    // This process owns the database, so no other server lives. A new one would look for the former one at its former ports.
    await ownership.forgetMembers()
    await rm(configFile, { force: true })
    await writeFile(configFile, JSON.stringify(serverConfiguration(store, ports, dynamicConfigPath), null, 2), { mode: 0o600 })
    const child = await startProgram(programs.server, ['--config-file', configFile, '--allow-no-auth', 'start'], {
      // It asks who its user is, who may have no name on this machine.
      env: { USER: 'relay', HOME: folder, ...config.childEnvironment, ...garbageCollector },
      stdio: ['ignore', 'pipe', 'pipe'],
      niceness: backgroundNiceness,
    })
    await writePidFile(pidFile, child)
    let isHealthy = false
    const lastTexts = [child.stdout!, child.stderr!].map((output) =>
      forwardLog(output, log, (line) => isStopping || (!isHealthy && isOfStart(line))),
    )
    // Without the SDK's repetition of calls, which throws into the void if the connection is closed in between.
    const connection = Connection.lazy({ address, interceptors: [], channelArgs: { 'grpc.max_reconnect_backoff_ms': 1_000 } })
    const ended = new AbortController()
    const exited = exitCodeOf(child).finally(() => {
      ended.abort()
      void connection.close()
    })
    const becomeReady = async (): Promise<true | undefined> => {
      try {
        await waitUntilReady(child, {
          name: 'Temporal',
          logFile: () => lastTexts.map((read) => read()).join(' | '),
          isReady: async () => (await isListening(grpcPort)) && (await isServing(connection, health)),
        })
        await createNamespace(connection, config.temporal.namespace ?? 'default', ended.signal)
        isHealthy = true
        void killIfSilent(ended.signal)
        return true
      } catch (thrown) {
        failure = thrown
        await stopServer(child)
        return undefined
      }
    }
    const killIfSilent = async (end: AbortSignal): Promise<void> => {
      const waited = () => processorWaitMs(child.pid!)
      for (let calls = 0, since = performance.now(), waitedSince = await waited(); !end.aborted;) {
        if (await answers(connection, health)) [calls, since, waitedSince] = [0, performance.now(), await waited()]
        else calls += 1
        if (end.aborted) return
        const silentMs = Math.round(performance.now() - since)
        const starvedMs = Math.min((await waited()) - waitedSince, health.starvedMaxMs)
        // A machine that has slept has lost time, and no calls.
        if (calls >= silentCallsMin && silentMs - starvedMs >= health.silentMaxMs) {
          log.error({ silent_ms: silentMs }, 'Temporal has stopped to answer and is killed')
          return signalGroup(child, 'SIGKILL')
        }
        await delay(health.pauseMs, undefined, { signal: end }).catch(() => {})
      }
    }
    return { child, exited, ready: becomeReady() }
  }

  const removeFiles = () => Promise.all([pidFile, configFile].map((file) => rm(file, { force: true })))
  const server = await supervise({ name: 'Temporal', start: startOnce, log, signal }).catch(async (thrown: unknown) => {
    await removeFiles()
    throw thrown
  })
  if (server.first === undefined) {
    await removeFiles()
    throw failure
  }
  const stop = async () => {
    isStopping = true
    await server.stop()
    await removeFiles()
  }
  // The relay that has taken the place has started its own.
  ownership.lost.catch(() => void stop())
  const ended = Promise.race([ownership.lost, moved.promise])
  // The caller may ask later.
  ended.catch(() => {})
  return { address: address!, ended, stop }
}

/** Returns the ports that the server had, and another one for each that is taken. They are below 32768: PostgreSQL stores them in two bytes with a sign. */
const choosePorts = async (folder: string): Promise<ServicePorts> => {
  const chosen = new Set<number>()
  const choose = async (name: string): Promise<number> => {
    const port = await stablePort(join(folder, `${name}.port`), chosen)
    chosen.add(port)
    return port
  }
  const entries: [string, ServicePorts['frontend']][] = []
  for (const service of services)
    entries.push([service, { grpcPort: await choose(service), membershipPort: await choose(`${service}-membership`) }])
  return Object.fromEntries(entries) as ServicePorts
}

/** Creates the namespace. A server that is healthy may refuse the first calls. */
const createNamespace = async (connection: Connection, namespace: string, end: AbortSignal): Promise<void> => {
  for (const endsAt = Date.now() + namespaceMaxMs; ; await delay(namespacePauseMs)) {
    try {
      return await connection.withDeadline(endsAt, () => ensureNamespace(connection, namespace))
    } catch (thrown) {
      if (end.aborted || Date.now() + namespacePauseMs > endsAt) throw thrown
    }
  }
}

const check = (connection: Connection, { callMaxMs }: Health) =>
  connection.withDeadline(Date.now() + callMaxMs, () => connection.healthService.check({ service: frontendService }))

// ServingStatus of gRPC's health service, whose enumeration the SDK does not export.
const serving = 1

const isServing = async (connection: Connection, health: Health): Promise<boolean> => {
  try {
    const status: number = (await check(connection, health)).status
    return status === serving
  } catch {
    return false
  }
}

const answers = async (connection: Connection, health: Health): Promise<boolean> => {
  try {
    await check(connection, health)
    return true
  } catch (thrown) {
    return !silentCodes.has((thrown as { code?: unknown }).code)
  }
}
