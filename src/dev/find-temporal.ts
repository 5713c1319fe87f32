import { join } from 'node:path'
import { messageOf, UserError } from '../base/errors.ts'
import type { Config } from '../config/config.ts'
import { buildWithGo, cacheDirOf, downloadFromSdk } from '../programs/install-program.ts'
import { findProgram, isExecutable } from '../programs/programs.ts'

export interface FindTemporalOptions {
  config: Pick<Config, 'RELAY_TEMPORAL_BIN' | 'RELAY_CACHE_DIR' | 'childEnvironment'>
  buildTimeoutMs?: number
  say: (line: string) => void
  signal?: AbortSignal | undefined
}

const module = 'github.com/temporalio/cli/cmd/temporal@v1.5.1'
// With the version that the module requires (v1.34.1), a call that a client cancels can leave the connection to the database unusable: the
// server then answers every call with "interrupted (9)" until it is restarted. Temporal 1.31 requires this version for that reason.
const requirements = ['modernc.org/sqlite@v1.44.3']
const remedy =
  'Install the Temporal CLI (on PATH, or set RELAY_TEMPORAL_BIN to its path), or install Go 1.24 or newer, ' +
  'or set TEMPORAL_ADDRESS to the address of a running Temporal server.'

/**
 * Finds the Temporal CLI: in RELAY_TEMPORAL_BIN, on PATH, or in the cache. If it is in none of them, downloads it with
 * the Temporal SDK, or builds it with Go.
 * @throws `UserError` that says what to install
 */
export const findTemporal = async ({ config, say, signal, buildTimeoutMs: timeoutMs }: FindTemporalOptions): Promise<string> => {
  const configured = config.RELAY_TEMPORAL_BIN
  if (configured) {
    if (await isExecutable(configured)) return configured
    throw new UserError(`RELAY_TEMPORAL_BIN (${configured}) is not an executable file.`)
  }
  const onPath = await findProgram('temporal', config.childEnvironment.PATH)
  if (onPath) return onPath
  const cached = join(cacheDirOf(config), 'dev-server', 'temporal')
  if (await isExecutable(cached)) return cached

  say('Downloading the Temporal dev server. This happens once.')
  try {
    return await downloadFromSdk('dev-server', cached, config, signal)
  } catch (thrown) {
    signal?.throwIfAborted()
    say(`${messageOf(thrown)}. An installed Temporal CLI, on PATH or in RELAY_TEMPORAL_BIN, makes it unnecessary.`)
  }
  const duration = 'about 4 minutes on 2 cores'
  return buildWithGo({ name: 'the Temporal CLI', module, requirements, duration, target: cached, remedy, config, say, signal, timeoutMs })
}
