import { copyFile, mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Config } from '../src/config/config.ts'
import { startTemporalDevServer, type TemporalDevServer } from '../src/dev/temporal-dev-server.ts'
import { identifyProcess } from '../src/programs/orphaned-processes.ts'

/** Temporal's dev server on a database file, which can be killed, frozen, and set back. */
export interface TemporalServer {
  port(): number
  start(): Promise<void>
  kill(): Promise<void>
  freeze(): Promise<void>
  thaw(): Promise<void>
  /** Copies the database while the server stands still. */
  backUp(): Promise<void>
  /** Puts the copy in place of the database. The server must not run. */
  restore(): Promise<void>
  /** Deletes the database. The server must not run. */
  erase(): Promise<void>
  stop(): Promise<void>
}

const portOf = ({ address }: TemporalDevServer) => Number(address.split(':')[1])

// SQLite's write-ahead log belongs to the database.
const files = ['temporal.sqlite', 'temporal.sqlite-wal', 'temporal.sqlite-shm']

/** @param onStart called with the port after each start: the previous one may have been taken */
export const startTemporal = async (config: Config, dataDir: string, onStart: (port: number) => void): Promise<TemporalServer> => {
  const backup = join(dataDir, 'backup')
  let running: TemporalDevServer
  const start = async () => {
    running = await startTemporalDevServer({ dataDir, config, say: () => {}, niceness: 0 })
    onStart(portOf(running))
  }
  await start()
  const pid = async () => Number(await readFile(join(dataDir, 'temporal.pid'), 'utf8'))
  const signal = async (name: NodeJS.Signals) => process.kill(await pid(), name)
  const erase = async () => {
    for (const file of files) await rm(join(dataDir, file), { force: true })
  }
  return {
    port: () => portOf(running),
    start,
    kill: async () => {
      const killed = await pid()
      process.kill(killed, 'SIGKILL')
      while (await identifyProcess(killed)) await pause(20)
    },
    freeze: async () => void (await signal('SIGSTOP')),
    thaw: async () => void (await signal('SIGCONT')),
    backUp: async () => {
      await mkdir(backup, { recursive: true })
      await signal('SIGSTOP')
      for (const file of files) await copyFile(join(dataDir, file), join(backup, file)).catch(() => {})
      await signal('SIGCONT')
    },
    restore: async () => {
      await erase()
      for (const file of files) await copyFile(join(backup, file), join(dataDir, file)).catch(() => {})
    },
    erase,
    stop: () => running.stop(),
  }
}
