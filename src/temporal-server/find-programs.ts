import { dirname, join } from 'node:path'
import { messageOf, UserError } from '../base/errors.ts'
import type { Config } from '../config/config.ts'
import { buildWithGo, cacheDirOf } from '../programs/install-program.ts'
import { findProgram, isExecutable, runProgram } from '../programs/programs.ts'

interface FindTemporalServerOptions {
  config: Pick<Config, 'RELAY_TEMPORAL_SERVER_DIR' | 'RELAY_CACHE_DIR' | 'childEnvironment'>
  say: (line: string) => void
  signal?: AbortSignal | undefined
}

/** The programs of one release of Temporal. */
export interface TemporalPrograms {
  server: string
  /** Creates and updates the schemas, which it contains. */
  sqlTool: string
  version: string
}

/** The version that is built, and that docker-compose.yml has. Another one of the same minor version is as good. */
export const temporalServerVersion = '1.31.2'

export const minorOf = (version: string): number => Number(version.split('.')[1])

const versionTimeoutMs = 20_000

const inFolder = (folder: string) => ({ server: join(folder, 'temporal-server'), sqlTool: join(folder, 'temporal-sql-tool') })

const versionOf = async (program: string, { childEnvironment: env }: Pick<Config, 'childEnvironment'>): Promise<string> => {
  const output = await runProgram(program, ['--version'], { env, timeoutMs: versionTimeoutMs })
  const version = /\bversion (\d+\.\d+\.\d+)/.exec(output)?.[1]
  if (version === undefined) throw new Error(`${program} does not tell its version`)
  return version
}

/** @throws Error unless both programs run, and are of one version that this relay can use */
const checked = async (folder: string, config: FindTemporalServerOptions['config']): Promise<TemporalPrograms> => {
  const programs = inFolder(folder)
  for (const program of Object.values(programs)) if (!(await isExecutable(program))) throw new Error(`${program} is not an executable file`)
  const [version, ofTool] = await Promise.all([versionOf(programs.server, config), versionOf(programs.sqlTool, config)])
  if (version !== ofTool) throw new Error(`${programs.server} is version ${version}, and ${programs.sqlTool} ${ofTool}`)
  const [major, minor] = temporalServerVersion.split('.')
  if (!version.startsWith(`${major}.${minor}.`)) throw new Error(`it is version ${version}, and this relay needs ${major}.${minor}`)
  return { ...programs, version }
}

const remedy = (version: string) =>
  `Put temporal-server and temporal-sql-tool ${version}, which Temporal publishes with its releases, on PATH, or set RELAY_TEMPORAL_SERVER_DIR ` +
  'to their folder, or install Go 1.26 or newer.'

/**
 * Finds the Temporal server and its schema tool: in RELAY_TEMPORAL_SERVER_DIR, on PATH, or in the cache. If they are in none of them, builds
 * them with Go.
 * @throws `UserError` that says what to install
 */
export const findTemporalServer = async ({ config, say, signal }: FindTemporalServerOptions): Promise<TemporalPrograms> => {
  const configured = config.RELAY_TEMPORAL_SERVER_DIR
  if (configured) {
    try {
      return await checked(configured, config)
    } catch (thrown) {
      throw new UserError(`The Temporal server in RELAY_TEMPORAL_SERVER_DIR (${configured}) cannot be used: ${messageOf(thrown)}.`, {
        cause: thrown,
      })
    }
  }
  const onPath = await findProgram('temporal-server', config.childEnvironment.PATH)
  if (onPath) {
    try {
      return await checked(dirname(onPath), config)
    } catch (thrown) {
      say(`Skipped the Temporal server on PATH (${onPath}): ${messageOf(thrown)}.`)
    }
  }
  const folder = join(cacheDirOf(config), 'temporal-server', temporalServerVersion)
  const build = async (target: string, command: string, duration: string) => {
    if (await isExecutable(target)) return
    await buildWithGo({
      name: `Temporal (${command})`,
      module: `go.temporal.io/server/cmd/${command}@v${temporalServerVersion}`,
      flags: ['-ldflags=-s -w'],
      duration,
      target,
      remedy: remedy(temporalServerVersion),
      config,
      say,
      signal,
    })
  }
  const { server, sqlTool } = inFolder(folder)
  await build(server, 'server', 'about 4 minutes on 2 cores')
  await build(sqlTool, 'tools/sql', 'a few seconds after that')
  return checked(folder, config)
}
