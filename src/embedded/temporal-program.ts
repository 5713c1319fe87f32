import { join } from 'node:path'
import type { Config } from '../config.ts'
import { messageOf, UserError } from '../errors.ts'
import { cacheDirOf } from './cache.ts'
import { goInstall } from './go-install.ts'
import { findProgram, isExecutable } from './programs.ts'
import { sdkDownload } from './sdk-download.ts'

export interface FindTemporalOptions {
  config: Pick<
    Config,
    'RELAY_TEMPORAL_BIN' | 'RELAY_CACHE_DIR' | 'childEnvironment' | 'EMBEDDED_DOWNLOAD_TIMEOUT_MS' | 'EMBEDDED_BUILD_TIMEOUT_MS'
  >
  say: (line: string) => void
  signal?: AbortSignal | undefined
}

const module = 'github.com/temporalio/cli/cmd/temporal@v1.5.1'
const otherwise =
  'Install the Temporal CLI (and put it on PATH or name it in RELAY_TEMPORAL_BIN) or Go 1.24 or newer, or give the address of a running Temporal in TEMPORAL_ADDRESS.'

/** The Temporal CLI: RELAY_TEMPORAL_BIN, then PATH, our cache, the SDK's download, a build with Go. @throws UserError that says what to install */
export const findTemporal = async ({ config, say, signal }: FindTemporalOptions): Promise<string> => {
  const given = config.RELAY_TEMPORAL_BIN
  if (given) {
    if (await isExecutable(given)) return given
    throw new UserError(`RELAY_TEMPORAL_BIN (${given}) is no program that can be run.`)
  }
  const onPath = await findProgram('temporal', config.childEnvironment.PATH)
  if (onPath) return onPath
  const cached = join(cacheDirOf(config), 'bin', 'temporal')
  if (await isExecutable(cached)) return cached

  say('Fetching the Temporal dev server, once.')
  try {
    return await sdkDownload('dev-server', cached, config, signal)
  } catch (thrown) {
    signal?.throwIfAborted()
    say(`It cannot be fetched from here (${messageOf(thrown)}).`)
  }
  const duration = 'about 4 minutes on 2 cores'
  return goInstall({ name: 'the Temporal CLI', module, duration, target: cached, otherwise, config, say, signal })
}
