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

/** The version of the UI that is built, and that docker-compose.yml has. Another one of the same major version is as good. */
export const temporalUiVersion = '2.52.1'

export const minorOf = (version: string): number => Number(version.split('.')[1])

const versionTimeoutMs = 20_000
const flags = ['-ldflags=-s -w']

const inFolder = (folder: string) => ({ server: join(folder, 'temporal-server'), sqlTool: join(folder, 'temporal-sql-tool') })

const versionOf = async (program: string, { childEnvironment: env }: Pick<Config, 'childEnvironment'>): Promise<string> => {
  const output = await runProgram(program, ['--version'], { env, timeoutMs: versionTimeoutMs })
  const version = /\bversion (\d+\.\d+\.\d+)/.exec(output)?.[1]
  if (version === undefined) throw new Error(`${program} does not tell its version`)
  return version
}

/** What is found in one place, and built in one. */
interface Search<Programs> {
  /** What is searched, as the subject of a sentence. */
  subject: string
  /** The program that tells whether a folder of PATH has them. */
  program: string
  /** @throws Error that says why the programs of a folder cannot be used */
  check(folder: string): Promise<Programs>
  /** Builds them, unless that has been done. */
  build(): Promise<Programs>
}

/**
 * Finds programs in RELAY_TEMPORAL_SERVER_DIR, on PATH, or in the cache. If they are in none of them, builds them with Go.
 * @throws `UserError` that says what to install
 */
const find = async <Programs>(
  { subject, program, check, build }: Search<Programs>,
  { config, say }: FindTemporalServerOptions,
): Promise<Programs> => {
  const configured = config.RELAY_TEMPORAL_SERVER_DIR
  if (configured) {
    try {
      return await check(configured)
    } catch (thrown) {
      throw new UserError(`${subject} in RELAY_TEMPORAL_SERVER_DIR (${configured}) cannot be used: ${messageOf(thrown)}.`, {
        cause: thrown,
      })
    }
  }
  const onPath = await findProgram(program, config.childEnvironment.PATH)
  if (onPath) {
    try {
      return await check(dirname(onPath))
    } catch (thrown) {
      say(`Skipped ${program} on PATH (${onPath}): ${messageOf(thrown)}.`)
    }
  }
  return build()
}

const requireExecutable = async (program: string): Promise<void> => {
  if (!(await isExecutable(program))) throw new Error(`${program} is not an executable file`)
}

/** Returns the Temporal server and its schema tool from a folder. @throws Error that says why they cannot be used */
const checkTemporalServer = async (folder: string, config: Pick<Config, 'childEnvironment'>): Promise<TemporalPrograms> => {
  const programs = inFolder(folder)
  for (const program of Object.values(programs)) await requireExecutable(program)
  const [version, ofTool] = await Promise.all([versionOf(programs.server, config), versionOf(programs.sqlTool, config)])
  if (version !== ofTool) throw new Error(`${programs.server} is version ${version}, and ${programs.sqlTool} ${ofTool}`)
  return { ...programs, version }
}

/** Builds the Temporal server and its schema tool, unless the cache has them. @throws `UserError` that says what to install */
export const buildTemporalServer = async (
  version: string,
  { config, say, signal }: FindTemporalServerOptions,
): Promise<TemporalPrograms> => {
  const folder = join(cacheDirOf(config), 'temporal-server', version)
  const buildOne = async (target: string, command: string, duration: string) => {
    if (await isExecutable(target)) return
    await buildWithGo({
      name: `Temporal (${command})`,
      module: `go.temporal.io/server/cmd/${command}@v${version}`,
      flags,
      duration,
      target,
      remedy:
        `Put temporal-server and temporal-sql-tool ${version}, which Temporal publishes with its releases, on PATH, or set ` +
        'RELAY_TEMPORAL_SERVER_DIR to their folder, or install Go 1.26 or newer.',
      config,
      say,
      signal,
    })
  }
  const { server, sqlTool } = inFolder(folder)
  await buildOne(server, 'server', 'about 4 minutes on 2 cores')
  await buildOne(sqlTool, 'tools/sql', 'a few seconds after that')
  return checkTemporalServer(folder, config)
}

/** Finds the Temporal server and its schema tool. @throws `UserError` that says what to install */
export const findTemporalServer = (options: FindTemporalServerOptions): Promise<TemporalPrograms> => {
  const check = async (folder: string): Promise<TemporalPrograms> => {
    const programs = await checkTemporalServer(folder, options.config)
    const [major, minor] = temporalServerVersion.split('.')
    if (!programs.version.startsWith(`${major}.${minor}.`))
      throw new Error(`it is version ${programs.version}, and this relay needs ${major}.${minor}`)
    return programs
  }
  const build = () => buildTemporalServer(temporalServerVersion, options)
  return find({ subject: 'The Temporal server', program: 'temporal-server', check, build }, options)
}

/** Finds the UI of Temporal. @returns the path of `ui-server` @throws `UserError` that says what to install */
export const findTemporalUi = async (options: FindTemporalServerOptions): Promise<string> => {
  const { config, say, signal } = options
  const check = async (place: string): Promise<string> => {
    const program = join(place, 'ui-server')
    await requireExecutable(program)
    const [version, major] = [await versionOf(program, config), temporalUiVersion.split('.')[0]]
    if (!version.startsWith(`${major}.`)) throw new Error(`it is version ${version}, and this relay needs ${major}`)
    return program
  }
  const build = async (): Promise<string> => {
    const folder = join(cacheDirOf(config), 'temporal-ui', temporalUiVersion)
    const target = join(folder, 'ui-server')
    if (await isExecutable(target)) return check(folder)
    await buildWithGo({
      name: 'The Temporal UI',
      module: `github.com/temporalio/ui-server/v2/cmd/server@v${temporalUiVersion}`,
      flags,
      duration: 'about 2 minutes on 2 cores',
      target,
      remedy: `Put ui-server ${temporalUiVersion} of github.com/temporalio/ui-server on PATH, or install Go 1.26 or newer, or remove RELAY_TEMPORAL_UI.`,
      config,
      say,
      signal,
    })
    return check(folder)
  }
  return find({ subject: 'The Temporal UI', program: 'ui-server', check, build }, options)
}
