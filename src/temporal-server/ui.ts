import { mkdir, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { messageOf, UserError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { readPidFile, stopOrphanedProcess, writePidFile } from '../programs/orphaned-processes.ts'
import { backgroundNiceness, exitCodeOf, startProgram } from '../programs/programs.ts'
import { stopServer, stopTimeoutMs, waitUntilReady } from '../programs/server-process.ts'
import { supervise, type Started } from '../programs/supervised.ts'
import { forwardLog } from './log-lines.ts'

interface TemporalUiOptions {
  /** Directory of its configuration and its process id. */
  folder: string
  /** Path of `ui-server`. */
  program: string
  /** Address and port of RELAY_TEMPORAL_UI. */
  listen: string
  temporalAddress: string
  config: Pick<Config, 'childEnvironment' | 'temporal'>
  log: Log
  say: (line: string) => void
  signal?: AbortSignal | undefined
}

const answerMaxMs = 1_000

/** Returns the configuration of a UI that shows everything and changes nothing: what is done to a delivery is done in the console. */
const uiConfiguration = (host: string, port: number, url: string, temporalAddress: string, namespace: string) => ({
  temporalGrpcAddress: temporalAddress,
  host,
  port,
  enableUi: true,
  defaultNamespace: namespace,
  disableWriteActions: true,
  // The relay brings the version, and a page of it asks no other server.
  notifyOnNewVersion: false,
  cors: { allowOrigins: [url], cookieInsecure: true },
  hideLogs: true,
})

/** @throws `UserError` if nothing can listen there */
const requireFree = (listen: string, host: string, port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const server = createServer()
    const reason = (thrown: NodeJS.ErrnoException) => (thrown.code === 'EADDRINUSE' ? 'another program uses the port' : messageOf(thrown))
    server.once('error', (thrown) =>
      reject(new UserError(`The Temporal UI cannot listen on ${listen} of RELAY_TEMPORAL_UI: ${reason(thrown)}.`)),
    )
    server.listen({ host, port }, () => server.close(() => resolve()))
  })

/**
 * Starts the UI of Temporal, and keeps it running. The relay does not need it: while it fails, it is started again, and nothing else happens.
 * @throws `UserError` if it does not start
 */
export const startTemporalUi = async (options: TemporalUiOptions): Promise<{ url: string; stop(): Promise<void> }> => {
  const { folder, program, listen, temporalAddress, config, log, say, signal } = options
  const [host, port] = [listen.slice(0, listen.lastIndexOf(':')), Number(listen.slice(listen.lastIndexOf(':') + 1))]
  const url = `http://${host === '0.0.0.0' || host === '[::]' ? '127.0.0.1' : host}:${port}`
  const configDir = join(folder, 'ui')
  const pidFile = join(folder, 'ui.pid')
  await mkdir(configDir, { recursive: true, mode: 0o700 })
  const pid = await readPidFile(pidFile)
  if (pid !== undefined) await stopOrphanedProcess({ pid, marker: configDir, timeoutMs: stopTimeoutMs })
  await requireFree(listen, host.replaceAll(/[[\]]/g, ''), port)
  const configuration = uiConfiguration(host, port, url, temporalAddress, config.temporal.namespace ?? 'default')
  // YAML includes JSON.
  await writeFile(join(configDir, 'base.yaml'), JSON.stringify(configuration, null, 2))

  let failure: unknown
  const startOnce = async (): Promise<Started<true>> => {
    const child = await startProgram(program, ['--root', configDir, '--config', '.', 'start'], {
      env: config.childEnvironment,
      stdio: ['ignore', 'pipe', 'pipe'],
      niceness: backgroundNiceness,
    })
    await writePidFile(pidFile, child)
    // Its lines are for its developers, and say nothing of their level.
    const lastTexts = [child.stdout!, child.stderr!].map((output) => forwardLog(output, log, () => true))
    const becomeReady = async (): Promise<true | undefined> => {
      try {
        await waitUntilReady(child, {
          name: 'The Temporal UI',
          logFile: () => lastTexts.map((read) => read()).join(' | '),
          isReady: () => isHealthy(url),
        })
        return true
      } catch (thrown) {
        failure = thrown
        await stopServer(child)
        return undefined
      }
    }
    return { child, exited: exitCodeOf(child), ready: becomeReady() }
  }
  const ui = await supervise({ name: 'The Temporal UI', start: startOnce, log, signal })
  const stop = async () => {
    await ui.stop()
    await rm(pidFile, { force: true })
  }
  if (ui.first === undefined) {
    await stop()
    throw failure
  }
  say(`The Temporal UI is at ${url}`)
  return { url, stop }
}

const isHealthy = async (url: string): Promise<boolean> => {
  try {
    return (await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(answerMaxMs) })).ok
  } catch {
    return false
  }
}
