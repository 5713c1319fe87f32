import { once } from 'node:events'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { UserError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { acquireTimeoutMs } from '../db/database.ts'
import { backgroundNiceness, exitCodeOf, startProgram } from '../programs/programs.ts'
import { stopTimeoutMs } from '../programs/server-process.ts'
import { supervise, type Started } from '../programs/supervised.ts'

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

// The process that serves the API runs the same file.
const main = fileURLToPath(new URL(`../main${extname(import.meta.url)}`, import.meta.url))

const readyMessage = z.object({ probes_url: z.string() })

/**
 * Starts `relay worker` as a child process. It writes its log to standard error of this process, and ends with this process, even if that
 * is killed. If the worker ends by itself, it is started again, as a container engine does in production. Until then the API accepts documents.
 * @throws `UserError` if the worker ends before it is ready
 */
export const startWorkerProcess = async ({ variables, config, log, signal }: WorkerProcessOptions): Promise<WorkerProcess> => {
  const worker = await supervise({
    name: 'the worker',
    start: () => startOnce(variables),
    graceMs: config.RELAY_SHUTDOWN_GRACE_MS + stopTimeoutMs,
    log,
    signal,
  })
  if (worker.first === undefined) throw new UserError('The worker ended before it was ready. Its last log line says why.')
  return {
    probesUrl: worker.first,
    requireReady: async () => {
      const probesUrl = worker.current()
      if (probesUrl === undefined) throw new UserError('The worker has ended and is started again.')
      const timeout = AbortSignal.timeout(acquireTimeoutMs + config.TEMPORAL_START_TIMEOUT_MS)
      const { ok } = await fetch(`${probesUrl}/readyz`, { signal: timeout })
      if (!ok) throw new UserError('The worker is not ready. Its own /readyz says why.')
    },
    stop: worker.stop,
  }
}

/** Starts the process, which is ready once it has told the address of its probes. */
const startOnce = async (variables: Record<string, string>): Promise<Started<string>> => {
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
