import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readConfig, type Config } from '../../src/config.ts'

/** A directory with a blank in its name, of which programs must make nothing. */
export const makeDirectory = async (): Promise<{ path: string; remove(): Promise<void> }> => {
  const parent = await mkdtemp(join(tmpdir(), 'relay-embedded-'))
  return { path: join(parent, 'data dir'), remove: () => rm(parent, { recursive: true, force: true }) }
}

/** The configuration of a machine that knows nothing but what these variables say. */
export const configOf = (variables: Record<string, string | undefined> = {}): Config =>
  readConfig({ PATH: process.env.PATH, HOME: process.env.HOME, RELAY_TEMPORAL_BIN: process.env.TEST_TEMPORAL_BIN, ...variables })
