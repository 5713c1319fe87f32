import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, dirname, extname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { messageOf, UserError } from '../base/errors.ts'
import type { Config } from '../config/config.ts'
import { findProgram, isExecutable, runProgram } from './programs.ts'

// A slow line downloads the dev server (60 MB) in less.
export const downloadTimeoutMs = 60_000
// Two slow cores build the Temporal CLI in less.
export const buildTimeoutMs = 30 * 60_000

/**
 * Returns the directory that keeps downloaded and built programs, for all checkouts of one user. script/lib computes
 * the same path.
 */
export const cacheDirOf = (config: Pick<Config, 'RELAY_CACHE_DIR' | 'childEnvironment'>): string =>
  resolve(config.RELAY_CACHE_DIR ?? join(config.childEnvironment.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'document-relay'))

const targetExistsCodes = new Set(['EEXIST', 'ENOTEMPTY'])

/**
 * Installs a file or directory at `target` in one step, so that a process starting at the same time never sees a
 * partial one.
 * @param make receives an empty directory beside the target and returns the path in it that becomes the target
 */
export const installInto = async (target: string, make: (workDir: string) => Promise<string>): Promise<string> => {
  await mkdir(dirname(target), { recursive: true })
  const workDir = await mkdtemp(join(dirname(target), '.new-'))
  try {
    await rename(await make(workDir), target)
  } catch (thrown) {
    // Another process installed the same directory first. Use that one.
    if (!targetExistsCodes.has((thrown as NodeJS.ErrnoException).code ?? '')) throw thrown
  } finally {
    await rm(workDir, { recursive: true, force: true })
  }
  return target
}

const sdkDownloadProcess = fileURLToPath(new URL(`./sdk-download-process${extname(import.meta.url)}`, import.meta.url))

/**
 * Downloads one of the Temporal SDK's servers to `target`, in a separate process. The download can then be killed after
 * `downloadTimeoutMs`, and the SDK runtime, of which a process can have only one, remains free for the worker.
 * @throws `Error` if the download fails or takes too long
 */
export const downloadFromSdk = async (
  server: 'dev-server' | 'time-skipping',
  target: string,
  config: Pick<Config, 'childEnvironment'>,
  signal?: AbortSignal,
): Promise<string> =>
  installInto(target, async (workDir) => {
    await runProgram(process.execPath, [sdkDownloadProcess, server, workDir], {
      env: config.childEnvironment,
      timeoutMs: downloadTimeoutMs,
      signal,
      name: 'The download',
    })
    for (const name of await readdir(workDir)) {
      const path = join(workDir, name)
      if (await isExecutable(path)) return path
    }
    throw new Error('The Temporal SDK downloaded no program')
  })

export interface GoBuild {
  /** Name of the program in messages. */
  name: string
  /** `module/path/of/the/command@version` */
  module: string
  /** `module/path@version` of modules that the build takes in at least this version. `module` itself may require an older one. */
  requirements?: string[]
  flags?: string[]
  /** Expected duration, in words. */
  duration: string
  /** Path of the built program. */
  target: string
  /** Sentence that says how to provide the program without this build. */
  remedy: string
  config: Pick<Config, 'childEnvironment'>
  timeoutMs?: number | undefined
  say: (line: string) => void
  signal?: AbortSignal | undefined
}

/** Builds a Go program from source. @throws `UserError` if Go is not installed or the build fails */
export const buildWithGo = async (options: GoBuild): Promise<string> => {
  const { name, module, requirements, flags = [], target, remedy, config, say, signal, timeoutMs = buildTimeoutMs } = options
  const go = await findProgram('go', config.childEnvironment.PATH)
  if (!go) throw new UserError(`${name} was not found, and Go is not installed to build it. ${remedy}`)
  say(`Building ${name} with Go. This takes ${options.duration}, once.`)
  try {
    return await installInto(target, async (workDir) => {
      const command = module.slice(0, module.lastIndexOf('@'))
      const program = join(workDir, basename(command))
      const steps = requirements
        ? [
            ['mod', 'init', 'build'],
            ['get', module, ...requirements],
            ['build', ...flags, '-o', program, command],
          ]
        : [['install', ...flags, module]]
      const startedAt = Date.now()
      for (const step of steps) {
        await runProgram(go, step, {
          cwd: workDir,
          env: { ...config.childEnvironment, GOBIN: workDir, GOWORK: 'off' },
          timeoutMs,
          signal,
          onWait: () => say(`Still building ${name} (${Math.round((Date.now() - startedAt) / 1_000)} s).`),
        })
      }
      return program
    })
  } catch (thrown) {
    signal?.throwIfAborted()
    throw new UserError(`${name} could not be built. ${remedy} Output of Go: ${messageOf(thrown)}`, { cause: thrown })
  }
}
