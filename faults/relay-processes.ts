import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { spawnRelay } from '../test/support/relay-process.ts'
import { until } from '../test/support/until.ts'

export type Verb = 'api' | 'worker' | 'server'

/** A process of the relay under a supervisor that starts it again one second after it ends, as systemd or Kubernetes would. */
export interface Supervised {
  verb: Verb
  name: string
  /** Process id of the current run. */
  pid(): number | undefined
  /** Sends SIGKILL. The supervisor starts the process again. */
  kill(): void
  /** Stops the process with SIGTERM and starts it again with other variables or another program, as a rolling update does. */
  replace(variables: Record<string, string>, program?: string): Promise<void>
  /** Waits until the current run has reported that it is ready. */
  ready(): Promise<void>
  /** Returns how often the process ended without being asked to. */
  crashes(): number
  /** Returns the end of the log. */
  log(): Promise<string>
  stop(): Promise<void>
  /** Sends SIGKILL. The supervisor is also gone: nothing starts the process again. */
  destroy(): Promise<void>
}

const preload = new URL('./reroute.ts', import.meta.url).href
const restartDelayMs = 1_000

/** @param main path of the program */
export const supervise = (main: string, verb: Verb, name: string, logFolder: string, initial: Record<string, string>): Supervised => {
  const logFile = join(logFolder, `${name}.log`)
  let program = main
  let variables = initial
  let child: ChildProcess | undefined
  let exited: Promise<unknown> = Promise.resolve()
  let isWanted = true
  let crashes = 0
  let kills = 0
  let logStart = 0

  const launch = () => {
    const isRerouted = Object.hasOwn(variables, 'FAULTS_ROUTES')
    child = spawnRelay(verb, variables, { main: program, logFile, preload: isRerouted ? preload : undefined })
    const started = child
    exited = once(started, 'exit').then(async () => {
      if (!isWanted || started !== child) return
      if (kills > 0) kills -= 1
      else crashes += 1
      logStart = (await readFile(logFile)).length
      await pause(restartDelayMs)
      if (isWanted && started === child) launch()
    })
  }
  const end = async () => {
    const ending = child
    child = undefined
    if (!ending || ending.exitCode !== null || ending.signalCode !== null) return
    const ended = once(ending, 'exit')
    // A frozen process would not end.
    ending.kill('SIGCONT')
    ending.kill('SIGTERM')
    const limit = setTimeout(() => ending.kill('SIGKILL'), 30_000)
    await ended
    clearTimeout(limit)
  }
  launch()
  return {
    verb,
    name,
    pid: () => child?.pid,
    kill: () => {
      if (child?.kill('SIGKILL')) kills += 1
    },
    replace: async (next, nextProgram = program) => {
      await end()
      logStart = (await readFile(logFile).catch(() => '')).length
      variables = next
      program = nextProgram
      // It may have been stopped during the pause.
      if (isWanted) launch()
    },
    ready: async () => {
      const isReady = async () => (await readFile(logFile)).subarray(logStart).includes(`the ${verb} is ready`)
      await until(`${name} is ready`, isReady, Boolean, 120_000)
    },
    crashes: () => crashes,
    log: async () => (await readFile(logFile, 'utf8')).slice(-200_000),
    stop: async () => {
      isWanted = false
      await end()
      await exited
    },
    destroy: async () => {
      isWanted = false
      child?.kill('SIGKILL')
      await exited
    },
  }
}
