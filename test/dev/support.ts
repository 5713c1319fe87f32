import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readConfig, type Config } from '../../src/config/config.ts'

/** Creates the path of a directory with a space in its name, so that a missing quote in a command line fails a test. */
export const makeDirectory = async (): Promise<{ path: string; remove: () => Promise<void> }> => {
  const parent = await mkdtemp(join(tmpdir(), 'relay-embedded-'))
  return { path: join(parent, 'data dir'), remove: () => rm(parent, { recursive: true, force: true }) }
}

/** Returns the configuration of a process that has only these environment variables, PATH and HOME. */
export const configOf = (variables: Record<string, string | undefined> = {}): Config =>
  readConfig({ PATH: process.env.PATH, HOME: process.env.HOME, RELAY_TEMPORAL_BIN: process.env.TEST_TEMPORAL_BIN, ...variables })
