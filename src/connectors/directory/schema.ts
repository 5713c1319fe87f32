import { isAbsolute, resolve } from 'node:path'
import { z } from 'zod'
import { allowedBy } from '../shared/allowed.ts'
import { fileNames, partFile, plainText } from '../shared/schema-fields.ts'

export const directoryConfig = z.strictObject({
  path: allowedBy(
    plainText(1_024).refine(
      (path) => isAbsolute(path) && resolve(path) === (path.replace(/\/$/, '') || '/'),
      'must be an absolute path without empty, . or .. segments',
    ),
    'RELAY_DIRECTORY_ROOTS',
  ).describe('Folder to store documents in, as an absolute path on the workers; it must exist, folders below it are created'),
  file_names: fileNames,
  part_file: partFile,
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

export type DirectoryConfig = z.output<typeof directoryConfig>
export type DirectoryCredentials = z.output<typeof directoryCredentials>
