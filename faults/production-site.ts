// The servers and processes of faults/production.ts: HAProxy, a cluster of Temporal, and processes of the relay.
import { execFile } from 'node:child_process'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findTemporal } from '../src/dev/find-temporal.ts'
import { findFreePort } from '../src/programs/ports.ts'
import { temporalServerVersion } from '../src/temporal-server/find-programs.ts'
import { historyShards, startTemporalCluster } from '../test/support/temporal-cluster.ts'
import { findHaproxy, temporalServerFolder } from '../test/support/tools.ts'
import { until } from '../test/support/until.ts'
import { startHaproxy, type Haproxy } from './haproxy.ts'
import { createPostgres } from './postgres.ts'
import { createGround, roundedSeconds, type Ground, type Run } from './production-ground.ts'
import { supervise, type Supervised } from './relay-processes.ts'
import { drainMs, replicas } from './upgrade.ts'

const run = promisify(execFile)

/** A block of docs/backup.md: the heading above it, and its index if not all blocks under the heading are meant. */
export type Block = [heading: string, index?: number]

/** Returns the line of the transcript for commands of docs/backup.md. */
export const blockName = ([heading, index]: Block): string => `# backup.md, ${heading}${index === undefined ? '' : `, block ${index + 1}`}`

/** An installation as in production on this machine. */
export interface Site extends Ground {
  haproxy: Haproxy
  /** Runs blocks of docs/backup.md. @returns their output */
  follow(blocks: Block[]): Promise<string>
  startTemporal(name: string): Promise<void>
  /** Kills the cluster of Temporal with its database, and removes their data. */
  destroyTemporal(): Promise<void>
  variablesOf(process: Pick<Supervised, 'verb' | 'name'>): Record<string, string>
  /** Starts three API processes and three workers. @param logs name of the folder of their logs */
  startProcesses(logs: string): Promise<void>
  processes(): Supervised[]
}

/** Starts the proxy and the destinations, and prepares everything else. */
export const createSite = async (options: Run): Promise<Site> => {
  const { folder, cleanUp, say } = options
  // Changed by the loss and the restore.
  let temporal: { variables: Record<string, string>; destroy(): Promise<void> } | undefined
  let processes: Supervised[] = []
  const ports = await Promise.all(Array.from({ length: replicas }, findFreePort))
  const ground = await createGround(options, ({ contentDir }) => ({
    ...temporal?.variables,
    CONTENT_DIR: contentDir,
    RELAY_BASE_URL: haproxy.url,
    RELAY_TRUST_PROXY: 'true',
    RELAY_DRAIN_MS: String(drainMs),
  }))
  const { config, commands, transcript, variables } = ground
  const tools = { config, say }
  const temporalPrograms = await temporalServerFolder(tools)
  const haproxyProgram = await findHaproxy(tools)
  const cli = await findTemporal(tools)
  const haproxy = await startHaproxy(haproxyProgram, folder, ports)
  cleanUp.add(haproxy.stop, () => Promise.all(processes.map((one) => one.destroy())))

  const variablesOf: Site['variablesOf'] = ({ verb, name }) => ({
    ...variables(),
    ...(verb === 'api' ? { RELAY_PORT: String(ports[Number(name.split('-')[1])]), RELAY_PROBES_PORT: '0' } : { RELAY_WORKER_PORT: '0' }),
  })
  return {
    ...ground,
    haproxy,
    follow: async (blocks) => {
      let output = ''
      for (const [heading, index] of blocks) {
        transcript.command(blockName([heading, index]))
        const part = await commands.follow(heading, index)
        transcript.output(part)
        output += part
      }
      return output
    },
    startTemporal: async (name) => {
      const server = await createPostgres(config, join(folder, `${name}-postgres`), ['max_connections=200'])
      await server.start()
      cleanUp.add(server.stop)
      const serverUrl = `postgres://postgres@127.0.0.1:${server.port}/postgres`
      const { cluster, kill } = await startTemporalCluster({ folder: join(folder, name), programs: temporalPrograms, cli, serverUrl })
      cleanUp.add(kill)
      transcript.note(
        `Temporal ${temporalServerVersion}: frontend, history, matching and worker service, ${historyShards} history shards, mTLS.`,
      )
      temporal = {
        variables: cluster.variables,
        destroy: async () => {
          await kill()
          await server.kill()
          for (const path of [server.folder, cluster.folder]) await rm(path, { recursive: true })
        },
      }
    },
    destroyTemporal: async () => temporal?.destroy(),
    variablesOf,
    startProcesses: async (logs) => {
      const logFolder = join(folder, logs)
      await mkdir(logFolder)
      const startedAt = performance.now()
      const { main, version } = ground.current()
      processes = (['api', 'worker'] as const).flatMap((verb) =>
        ports.map((_, index) => {
          const name = `${verb}-${index}`
          return supervise(main, verb, name, logFolder, variablesOf({ verb, name }))
        }),
      )
      await Promise.all(processes.map((one) => one.ready()))
      for (const index of ports.keys()) await until('the proxy sends requests to each process', () => haproxy.isUp(index))
      const { stdout } = await run(haproxyProgram, ['-v'])
      transcript.note(`Three API processes and three workers of ${version} are ready after ${roundedSeconds(startedAt)}.`)
      transcript.note(`HAProxy ${/version (\d+\.\d+\.\d+)/.exec(stdout)?.[1]} sends requests to each API process.`)
    },
    processes: () => processes,
  }
}
