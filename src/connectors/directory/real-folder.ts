import { mkdir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { DeliveryError } from '../connector.ts'
import { isBelowRoot } from '../shared/below-root.ts'
import { systemCodeOf } from './errors.ts'

/**
 * Returns the folder of a destination with its symbolic links resolved.
 * @throws DeliveryError `directory_not_allowed` if the real folder is not below the real path of a root,
 *   `directory_missing` if it does not exist, `file_system_failure` if its root does not exist, which probably means
 *   that its file system is not mounted
 */
export const realFolder = async (path: string, roots: readonly string[]): Promise<string> => {
  if (!isBelowRoot(path, roots)) throw notAllowed(path)
  const ownRoots = roots.filter((root) => isBelowRoot(path, [root]))
  const { paths, failure } = await realPathsOf(ownRoots)
  if (paths.length === 0) {
    if (failure !== undefined) throw failure
    throw new DeliveryError('file_system_failure', `${ownRoots.join(' and ')} does not exist; check that its file system is mounted`)
  }
  const folder = await realpath(path).catch((thrown: unknown) => {
    if (systemCodeOf(thrown) === 'ENOENT' || systemCodeOf(thrown) === 'ENOTDIR') throw missing(path)
    throw thrown
  })
  await requireAllowed(folder, roots, path)
  if (!(await stat(folder)).isDirectory()) throw missing(path)
  return folder
}

/**
 * Creates a folder in a real folder, if it does not exist.
 * @throws DeliveryError `directory_not_allowed` if it is a symbolic link that leads outside
 */
export const makeFolder = async (parent: string, name: string, roots: readonly string[]): Promise<{ folder: string; isNew: boolean }> => {
  const path = join(parent, name)
  let refusal: unknown
  await mkdir(path).catch((thrown: unknown) => {
    refusal = thrown
  })
  // A network file system may refuse to create a folder for another reason than that it exists: it asks the server, who looks at the permissions first.
  const folder = await realpath(path).catch((thrown: unknown) => {
    throw refusal === undefined || systemCodeOf(refusal) === 'EEXIST' ? thrown : refusal
  })
  await requireAllowed(folder, roots, path)
  if (!(await stat(folder)).isDirectory()) throw new DeliveryError('file_system_failure', `${path} is a file, and a folder is needed`)
  return { folder, isNew: refusal === undefined }
}

/** @param path leads to the real folder */
const requireAllowed = async (folder: string, roots: readonly string[], path: string): Promise<void> => {
  const { paths, failure } = await realPathsOf(roots)
  if (isBelowRoot(folder, paths)) return
  if (failure !== undefined) throw failure
  throw notAllowed(path)
}

/**
 * Returns the real paths of roots. A root that does not exist allows nothing.
 * @returns as well why another root could not be resolved: it may allow what the others do not
 */
const realPathsOf = async (roots: readonly string[]): Promise<{ paths: string[]; failure: Error | undefined }> => {
  let failure: Error | undefined
  const paths = await Promise.all(
    roots.map((root) =>
      realpath(root).catch((thrown: Error) => {
        if (systemCodeOf(thrown) !== 'ENOENT' && systemCodeOf(thrown) !== 'ENOTDIR') failure = thrown
        return undefined
      }),
    ),
  )
  return { paths: paths.filter((path) => path !== undefined), failure }
}

const notAllowed = (path: string) =>
  new DeliveryError(
    'directory_not_allowed',
    `${path} is not below a directory that the operator of the relay allows (RELAY_DIRECTORY_ROOTS), or a symbolic link leads outside`,
  )

const missing = (path: string) =>
  new DeliveryError('directory_missing', `${path} does not exist or is not a folder; create the folder, or correct path`)
