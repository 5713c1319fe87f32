import { mkdir, realpath, stat } from 'node:fs/promises'
import { isAbsolute, join, relative, sep } from 'node:path'
import { DeliveryError } from '../connector.ts'
import { systemCodeOf } from './errors.ts'

/**
 * Returns `true` if `path` is one of the roots or lies below one. Compares the paths as text and follows no symbolic
 * links.
 */
export const isBelowRoot = (path: string, roots: readonly string[]): boolean =>
  roots.some((root) => {
    const way = relative(root, path)
    return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)
  })

/**
 * Returns the folder of a destination with its symbolic links resolved.
 * @throws DeliveryError `directory_not_allowed` if the real folder is not below the real path of a root,
 *   `directory_missing` if it does not exist, `file_system_failure` if its root does not exist, which probably means
 *   that its file system is not mounted
 */
export const realFolder = async (path: string, roots: readonly string[]): Promise<string> => {
  if (!isBelowRoot(path, roots)) throw notAllowed(path)
  const ownRoots = roots.filter((root) => isBelowRoot(path, [root]))
  if ((await realPathsOf(ownRoots)).length === 0) {
    throw new DeliveryError('file_system_failure', `${ownRoots.join(' and ')} does not exist; check that its file system is mounted`)
  }
  const folder = await realpath(path).catch((thrown: unknown) => {
    if (systemCodeOf(thrown) === 'ENOENT' || systemCodeOf(thrown) === 'ENOTDIR') throw missing(path)
    throw thrown
  })
  if (!isBelowRoot(folder, await realPathsOf(roots))) throw notAllowed(path)
  if (!(await stat(folder)).isDirectory()) throw missing(path)
  return folder
}

/**
 * Creates a folder in a real folder, if it does not exist.
 * @throws DeliveryError `directory_not_allowed` if it is a symbolic link that leads outside
 */
export const makeFolder = async (parent: string, name: string, roots: readonly string[]): Promise<{ folder: string; isNew: boolean }> => {
  const path = join(parent, name)
  let isNew = true
  await mkdir(path).catch((thrown: unknown) => {
    if (systemCodeOf(thrown) !== 'EEXIST') throw thrown
    isNew = false
  })
  const folder = await realpath(path)
  if (!isBelowRoot(folder, await realPathsOf(roots))) throw notAllowed(path)
  if (!(await stat(folder)).isDirectory()) throw new DeliveryError('file_system_failure', `${path} is a file, and a folder is needed`)
  return { folder, isNew }
}

/** A root that does not exist allows nothing. */
const realPathsOf = async (roots: readonly string[]): Promise<string[]> => {
  const paths = await Promise.all(roots.map((root) => realpath(root).catch(() => undefined)))
  return paths.filter((path) => path !== undefined)
}

const notAllowed = (path: string) =>
  new DeliveryError(
    'directory_not_allowed',
    `${path} is not below a directory that the operator of the relay allows (RELAY_DIRECTORY_ROOTS), or a symbolic link leads outside`,
  )

const missing = (path: string) =>
  new DeliveryError('directory_missing', `${path} does not exist or is not a folder; create the folder, or correct path`)
