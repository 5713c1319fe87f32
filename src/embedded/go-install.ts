import { basename, join } from 'node:path'
import type { Config } from '../config.ts'
import { messageOf, UserError } from '../errors.ts'
import { installInto } from './cache.ts'
import { findProgram, runProgram } from './programs.ts'

export interface GoInstall {
  /** What people call it. */
  name: string
  /** `path/of/the/command@version` */
  module: string
  flags?: string[]
  /** What to expect, in words. */
  duration: string
  /** Where the program is to lie. */
  target: string
  /** What the person at the keyboard can do where this does not work, as a sentence. */
  otherwise: string
  config: Pick<Config, 'childEnvironment' | 'EMBEDDED_BUILD_TIMEOUT_MS'>
  say: (line: string) => void
  signal?: AbortSignal | undefined
}

/** Builds a Go program from its source into our cache. @throws UserError where there is no Go, or the build fails */
export const goInstall = async (options: GoInstall): Promise<string> => {
  const { name, module, target, otherwise, config, say, signal } = options
  const go = await findProgram('go', config.childEnvironment.PATH)
  if (!go) throw new UserError(`${name} was not found, and there is no Go to build it with. ${otherwise}`)
  say(`Building ${name} with Go: ${options.duration}, once.`)
  try {
    return await installInto(target, async (workDir) => {
      await runProgram(go, ['install', ...(options.flags ?? []), module], {
        env: { ...config.childEnvironment, GOBIN: workDir },
        timeoutMs: config.EMBEDDED_BUILD_TIMEOUT_MS,
        signal,
        onWait: (seconds) => say(`Still building ${name} (${seconds} s).`),
      })
      return join(workDir, basename(module.slice(0, module.lastIndexOf('@'))))
    })
  } catch (thrown) {
    signal?.throwIfAborted()
    throw new UserError(`${name} could not be built. ${otherwise} Go said: ${messageOf(thrown)}`, { cause: thrown })
  }
}
