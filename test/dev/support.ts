import { join } from 'node:path'
import { readConfig, type Config } from '../../src/config/config.ts'
import { createFolder, type Folder } from '../support/folder.ts'

/** Creates the path of a directory with a space in its name, so that a missing quote in a command line fails a test. */
export const makeDirectory = async (): Promise<Folder> => {
  const parent = await createFolder()
  return { ...parent, path: join(parent.path, 'data dir') }
}

/** Returns the configuration of a process that has only these environment variables, PATH and HOME. */
export const configOf = (variables: Record<string, string | undefined> = {}): Config =>
  readConfig({ PATH: process.env.PATH, HOME: process.env.HOME, RELAY_TEMPORAL_BIN: process.env.TEST_TEMPORAL_BIN, ...variables })
