import type { ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { stopServer, stopTimeoutMs } from './server-process.ts'

const restartDelayMs = 1_000
const maxRestartDelayMs = 30_000

/** A child process that has been started. */
export interface Started<Ready> {
  child: ChildProcess
  exited: Promise<number>
  /** What is known of it once it is ready; undefined if it ends before. */
  ready: Promise<Ready | undefined>
}

interface SuperviseOptions<Ready> {
  /** What the process is, as the subject of a line of the log. */
  name: string
  start: () => Promise<Started<Ready>>
  /** Time that the process has for its end, in milliseconds. */
  graceMs?: number
  log: Pick<Log, 'error'>
  /** Aborts the first start. */
  signal?: AbortSignal | undefined
}

interface Supervised<Ready> {
  /** What is known of the first process; undefined if it has ended before it was ready, and none follows. */
  first: Ready | undefined
  /** What is known of the running process; undefined while there is none that is ready. */
  current(): Ready | undefined
  stop(): Promise<void>
}

/**
 * Keeps a child process running: one that ends by itself is started again after `restartDelayMs`, and after twice the time, up to
 * `maxRestartDelayMs`, while it does not become ready.
 */
export const supervise = async <Ready>(options: SuperviseOptions<Ready>): Promise<Supervised<Ready>> => {
  const { name, start, graceMs = stopTimeoutMs, log, signal } = options
  signal?.throwIfAborted()
  const stopping = new AbortController()
  let running = await start()
  const stopProcess = () => stopServer(running.child, graceMs)

  const onAbort = () => void stopProcess()
  signal?.addEventListener('abort', onAbort, { once: true })
  // The signal may have been aborted while the process was started.
  if (signal?.aborted) onAbort()
  const first = await running.ready
  signal?.removeEventListener('abort', onAbort)
  if (first === undefined) {
    await running.exited
    signal?.throwIfAborted()
    return { first, current: () => undefined, stop: async () => {} }
  }

  let current: Ready | undefined = first
  const startAgain = async () => {
    running = await start()
    if (stopping.signal.aborted) void stopProcess()
    return running.ready
  }
  const keepRunning = async () => {
    for (let delayMs = restartDelayMs; ;) {
      await running.exited
      current = undefined
      if (stopping.signal.aborted) return
      const { exitCode, signalCode } = running.child
      log.error({ exit_code: exitCode, signal: signalCode, restart_in_ms: delayMs }, `${name} has ended by itself and is started again`)
      await sleep(delayMs, undefined, { signal: stopping.signal }).catch(() => {})
      if (stopping.signal.aborted) return
      current = await startAgain().catch((thrown: unknown) => {
        log.error({ reason: messageOf(thrown) }, `${name} could not be started`)
        return undefined
      })
      delayMs = current === undefined ? Math.min(2 * delayMs, maxRestartDelayMs) : restartDelayMs
    }
  }
  const supervision = keepRunning()

  return {
    first,
    current: () => current,
    stop: async () => {
      stopping.abort()
      await stopProcess()
      await supervision
    },
  }
}
