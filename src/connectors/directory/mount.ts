import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { DeliveryError } from '../connector.ts'
import { isBelowRoot } from '../shared/below-root.ts'

/**
 * The mount points that this process has seen below folders of destinations, by the path of the folder: a folder whose mount is gone before
 * the first success, at which its mount point is stored, is also noticed.
 */
export type SeenMounts = Map<string, string>

/**
 * Checks that the file system of a folder is mounted. Without it, the folder may exist on the disk below its mount point.
 *
 * The path of the mount point is what is remembered: the number of a device changes when a file system is mounted again. A mount point is a
 * directory on another device than its parent. So a bind mount of a directory of the same device does not count as a mount.
 * @param expected the mount point that is stored for the destination
 * @param seen is asked and changed if nothing is stored
 * @param realFolder resolves the links of the path, and throws if the folder does not exist
 * @returns the real folder, and the mount point that it is below, unless that is `/`
 * @throws DeliveryError `file_system_failure` if nothing is mounted there, `config_invalid` if the folder is elsewhere, and what `realFolder` throws
 */
export const mountedFolder = async (
  path: string,
  expected: string | undefined,
  seen: SeenMounts,
  realFolder: () => Promise<string>,
): Promise<{ folder: string; mountPoint: string | undefined }> => {
  const remembered = expected ?? seen.get(path)
  // First, because the folder may be missing for this reason.
  if (remembered !== undefined && !(await isMountPoint(remembered))) throw notMounted(remembered)
  const folder = await realFolder()
  if (expected !== undefined && !isBelowRoot(folder, [expected])) throw isElsewhere(folder, expected)
  const mountPoint = await mountPointOf(folder)
  if (mountPoint !== undefined) seen.set(path, mountPoint)
  return { folder, mountPoint }
}

/** @returns undefined for the file system of `/`, which is always mounted */
const mountPointOf = async (folder: string): Promise<string | undefined> => {
  for (let path = folder; path !== '/'; path = dirname(path)) if (await isMountPoint(path)) return path
  return undefined
}

const isMountPoint = async (path: string): Promise<boolean> => {
  if (path === '/') return true
  const [own, parent] = await Promise.all([deviceOf(path), deviceOf(dirname(path))])
  return own !== undefined && own !== parent
}

// The dot makes the kernel mount what is mounted on demand (autofs, NFS below NFS). It needs a permission that administrators take away from the
// directory below a mount, so that no process writes there without the mount. Without the permission, the directory itself is looked at.
const deviceOf = async (path: string): Promise<bigint | undefined> => {
  const found = await stat(`${path}/.`, { bigint: true })
    .catch((thrown: NodeJS.ErrnoException) => {
      if (thrown.code === 'EACCES') return stat(path, { bigint: true })
      throw thrown
    })
    .catch((thrown: NodeJS.ErrnoException) => {
      if (thrown.code === 'ENOENT' || thrown.code === 'ENOTDIR') return undefined
      throw thrown
    })
  return found?.dev
}

const notMounted = (mountPoint: string) =>
  new DeliveryError(
    'file_system_failure',
    `no file system is mounted at ${mountPoint}, as it was before; mount it on every worker, or set mount_point to where the file system of the ` +
      'folder is mounted now (/ if it is not mounted below another one)',
  )

const isElsewhere = (folder: string, mountPoint: string) =>
  new DeliveryError(
    'config_invalid',
    `${folder} is not below ${mountPoint}; set mount_point to where the file system of the folder is mounted, or remove it: the next success stores it`,
  )
