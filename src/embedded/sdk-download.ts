import { readdir } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Config } from '../config.ts'
import { installInto } from './cache.ts'
import { isExecutable, runProgram } from './programs.ts'

export type SdkServer = 'dev-server' | 'time-skipping'

const script = fileURLToPath(new URL(`./sdk-download-run${extname(import.meta.url)}`, import.meta.url))

/**
 * Lets the Temporal SDK fetch one of its servers. In a process of its own: it can then be ended after the time limit, and the SDK's
 * runtime, of which a process has one, stays free for our worker.
 * @throws Error where it cannot be had within the time
 */
export const sdkDownload = async (
  server: SdkServer,
  target: string,
  config: Pick<Config, 'childEnvironment' | 'EMBEDDED_DOWNLOAD_TIMEOUT_MS'>,
  signal?: AbortSignal,
): Promise<string> =>
  installInto(target, async (workDir) => {
    await runProgram(process.execPath, [script, server, workDir], {
      env: config.childEnvironment,
      timeoutMs: config.EMBEDDED_DOWNLOAD_TIMEOUT_MS,
      signal,
    })
    for (const name of await readdir(workDir)) {
      const path = join(workDir, name)
      if (await isExecutable(path)) return path
    }
    throw new Error('the SDK left no program behind')
  })
