import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import type { Config } from '../config.ts'

/** Where programs are kept that we fetched or built: shared by all checkouts of one user. script/lib computes the same. */
export const cacheDirOf = (config: Pick<Config, 'RELAY_CACHE_DIR' | 'childEnvironment'>): string =>
  resolve(config.RELAY_CACHE_DIR ?? join(config.childEnvironment.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'document-relay'))

const takenBefore = new Set(['EEXIST', 'ENOTEMPTY'])

/**
 * Puts a file or directory in its place in one step, so that concurrent starters never see half of it.
 * @param make gets an empty directory beside the target and answers which path in it is to become the target
 */
export const installInto = async (target: string, make: (workDir: string) => Promise<string>): Promise<string> => {
  await mkdir(dirname(target), { recursive: true })
  const workDir = await mkdtemp(join(dirname(target), '.new-'))
  try {
    await rename(await make(workDir), target)
  } catch (thrown) {
    // another starter was quicker: a directory that is there is as good as ours
    if (!takenBefore.has((thrown as NodeJS.ErrnoException).code ?? '')) throw thrown
  } finally {
    await rm(workDir, { recursive: true, force: true })
  }
  return target
}
