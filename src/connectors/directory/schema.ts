import { isAbsolute, resolve } from 'node:path'
import { z } from 'zod'
import { isBelowRoot } from '../shared/below-root.ts'
import { fileNames, plainText } from '../shared/schema-fields.ts'

/** @param roots are the directories that the operator allows */
export const createDirectoryConfig = (roots: readonly string[]) =>
  z.strictObject({
    path: plainText(1_024)
      .refine(
        (path) => isAbsolute(path) && resolve(path) === (path.replace(/\/$/, '') || '/'),
        'must be an absolute path without empty, . or .. segments',
      )
      .refine(
        (path) => isBelowRoot(path, roots),
        roots.length === 0
          ? 'is not allowed: the operator of this relay has allowed no directories (RELAY_DIRECTORY_ROOTS)'
          : 'must be below a directory that the operator of this relay allows (RELAY_DIRECTORY_ROOTS)',
      )
      .describe('Folder to store documents in, as an absolute path on the workers; it must exist, folders below it are created'),
    file_names: fileNames,
    mount_point: plainText(1_024)
      .refine(
        (path) => isAbsolute(path) && resolve(path) === path,
        'must be an absolute path without empty, . or .. segments, and without a / at the end',
      )
      .optional()
      .describe(
        'Directory at which the file system of path is mounted. Nothing is written while nothing is mounted there. Without it, the relay stores here at the first success where that file system is mounted. / stands for any',
      ),
  })

/** Empty: the worker's own account writes the files. */
export const directoryCredentials = z.strictObject({})

/** A plausible destination, for documentation. */
export const directoryExample = { config: { path: '/srv/archive/invoices' }, credentials: {} }

export type DirectoryConfig = z.output<ReturnType<typeof createDirectoryConfig>>
export type DirectoryCredentials = z.output<typeof directoryCredentials>
