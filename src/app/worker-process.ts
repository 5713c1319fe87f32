import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { extname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { messageOf, UserError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { acquireTimeoutMs } from '../db/database.ts'
import { backgroundNiceness, exitCodeOf, startProgram } from '../programs/programs.ts'
import { stopServer, stopTimeoutMs } from '../programs/server-process.ts'

interface WorkerProcessOptions {
  /** Environment of the worker. */
  variables: Record<string, string>
  config: Pick<Config, 'RELAY_SHUTDOWN_GRACE_MS' | 'TEMPORAL_START_TIMEOUT_MS'>
  log: Pick<Log, 'error'>
  /** Aborts the start. */
  signal: AbortSignal
}

export interface WorkerProcess {
  /** Address of `/healthz`, `/readyz` and `/metrics` of the worker. */
  probesUrl: string
  /** @throws `UserError` unless the worker takes tasks */
  requireReady(): Promise<void>
  stop(): Promise<void>
}

interface Started {
  child: ChildProcess
  exited: Promise<number>
  /** Address of the probes once the worker is ready; undefined if it ends before. */
  ready: Promise<string | undefined>
}

// The process that serves the API runs the same file.
const main = fileURLToPath(new URL(`../main${extname(import.meta.url)}`, import.meta.url))

const readyMessage = z.object({ probes_url: z.string() })

const restartDelayMs = 1_000
const maxRestartDelayMs = 30_000

/**
 * Starts `relay worker` as a child process. It writes its log to standard error of this process, and ends with this process, even if that
 * is killed. If the worker ends by itself, it is started again, as a container engine does in production. Until then the API accepts documents.
 * @throws `UserError` if the worker ends before it is ready
 */
export const startWorkerProcess = async (options: WorkerProcessOptions): Promise<WorkerProcess> => {
  const { config, log, signal } = options
  signal.throwIfAborted()
  const stopping = new AbortController()
  let current = await startOnce(options)
  let probesUrl: string | undefined
  const stopCurrent = () => stopServer(current.child, config.RELAY_SHUTDOWN_GRACE_MS + stopTimeoutMs)

  const onAbort = () => void stopCurrent()
  signal.addEventListener('abort', onAbort, { once: true })
  // The signal may have been aborted while the process was started.
  if (signal.aborted) onAbort()
  const firstUrl = await current.ready
  signal.removeEventListener('abort', onAbort)
  if (firstUrl === undefined) {
    await current.exited
    signal.throwIfAborted()
    throw new UserError('The worker ended before it was ready. Its last log line says why.')
  }
  probesUrl = firstUrl

  const startAgain = async () => {
    current = await startOnce(options)
    if (stopping.signal.aborted) void stopCurrent()
    return current.ready
  }
  const keepRunning = async () => {
    for (let delayMs = restartDelayMs; ;) {
      await current.exited
      probesUrl = undefined
      if (stopping.signal.aborted) return
      const { exitCode, signalCode } = current.child
      log.error({ exit_code: exitCode, signal: signalCode, restart_in_ms: delayMs }, 'the worker has ended by itself and is started again')
      await sleep(delayMs, undefined, { signal: stopping.signal }).catch(() => {})
      if (stopping.signal.aborted) return
      probesUrl = await startAgain().catch((thrown: unknown) => {
        log.error({ reason: messageOf(thrown) }, 'the worker could not be started')
        return undefined
      })
      delayMs = probesUrl === undefined ? Math.min(2 * delayMs, maxRestartDelayMs) : restartDelayMs
    }
  }
  const supervision = keepRunning()

  return {
    probesUrl: firstUrl,
    requireReady: async () => {
      if (probesUrl === undefined) throw new UserError('The worker has ended and is started again.')
      const timeout = AbortSignal.timeout(acquireTimeoutMs + config.TEMPORAL_START_TIMEOUT_MS)
      const { ok } = await fetch(`${probesUrl}/readyz`, { signal: timeout })
      if (!ok) throw new UserError('The worker is not ready. Its own /readyz says why.')
    },
    stop: async () => {
      stopping.abort()
      await stopCurrent()
      await supervision
    },
  }
}

const startOnce = async ({ variables }: WorkerProcessOptions): Promise<Started> => {
  const child = await startProgram(process.execPath, [...process.execArgv, main, 'worker', '--supervised'], {
    env: variables,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    niceness: backgroundNiceness,
  })
  const exited = exitCodeOf(child)
  const ready = once(child, 'message').then(
    ([message]) => readyMessage.parse(message).probes_url,
    // The process could not be started.
    () => undefined,
  )
  return { child, exited, ready: Promise.race([ready, exited.then(() => undefined)]) }
}
