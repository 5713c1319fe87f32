import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { ConnectorType } from '../../src/domain/connector-type.ts'
import { createKeyRing, credentialsOf } from '../../src/security/seal.ts'
import type { TestDatabase } from './database.ts'
import { createWiring, testConfig } from './factories.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const startTimeoutMs = 60_000

export interface RelayProcess {
  /** Of an api process; empty for a worker. */
  baseUrl: string
  pid: number
  /** SIGKILL: no clean-up of any kind. */
  kill(): Promise<void>
  /** SIGTERM, and wait. @returns the exit status */
  stop(): Promise<number | null>
  /** Resident memory in bytes: now, and at its highest so far. */
  memory(): Promise<{ now: number; peak: number }>
}

/** `relay api` or `relay worker` in a process of its own, ready to work. */
export const startRelayProcess = async (verb: 'api' | 'worker', variables: Record<string, string>): Promise<RelayProcess> => {
  const child = spawn(process.execPath, [main, verb], {
    env: { ...process.env, RELAY_PORT: '0', RELAY_HOST: '127.0.0.1', RELAY_LOG_LEVEL: 'info', ...variables },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const baseUrl = await untilReady(child, verb)
  const exited = once(child, 'exit') as Promise<[number | null]>
  return {
    baseUrl,
    pid: child.pid!,
    kill: async () => {
      child.kill('SIGKILL')
      await exited
    },
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

const untilReady = async (child: ChildProcess, verb: string): Promise<string> => {
  const lines = createInterface({ input: child.stderr! })
  const log: string[] = []
  try {
    return await new Promise<string>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`relay ${verb} was not ready in time`)), startTimeoutMs)
      lines.on('line', (line) => {
        log.push(line)
        if (!line.includes(`the ${verb} is ready`)) return
        clearTimeout(timer)
        resolve((JSON.parse(line) as { base_url?: string }).base_url ?? '')
      })
      child.once('exit', (code) => reject(new Error(`relay ${verb} ended with ${code}`)))
    })
  } catch (thrown) {
    child.kill('SIGKILL')
    throw new Error(`${(thrown as Error).message}:\n${log.join('\n')}`, { cause: thrown })
  }
}

/** What api and worker of a test share: its database, its Temporal, and leave to reach this machine. */
export const relayVariables = (database: TestDatabase, temporalAddress: string): Record<string, string> => {
  const { RELAY_SECRET_KEYS, RELAY_ALLOWED_PRIVATE_CIDRS } = testConfig()
  return {
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: temporalAddress,
    RELAY_SECRET_KEYS: RELAY_SECRET_KEYS.join(','),
    RELAY_ALLOWED_PRIVATE_CIDRS: RELAY_ALLOWED_PRIVATE_CIDRS.join(','),
  }
}

/** A workspace whose repository Z1 is wired to a webhook at this URL. */
export const wireToWebhook = (database: TestDatabase, url: string) => wireTo(database, 'webhook', { url }, {})

/** A workspace whose repository Z1 is wired to this target. */
export const wireTo = async ({ db }: TestDatabase, connector: ConnectorType, config: object, credentials: object) => {
  const wiring = await createWiring(db, [{ name: 'target', connector, config }])
  const destinationId = wiring.destinations['target']!
  const sealed = createKeyRing(testConfig().RELAY_SECRET_KEYS).seal(credentials, credentialsOf(wiring.workspaceId, destinationId))
  await db('destinations').where({ id: destinationId }).update({ credentials_sealed: sealed })
  return { ...wiring, destinationId }
}
