import { open, realpath } from 'node:fs/promises'
import { isAbsolute, normalize } from 'node:path'
import { z } from 'zod'
import { messageOf } from '../../base/errors.ts'
import { grantedTo, type Grant } from '../../base/grants.ts'
import { DeliveryError } from '../connector.ts'
import { allowedBy } from './allowed.ts'
import { isBelowRoot } from './below-root.ts'

/** The path of a file with a token that another system renews. */
export const tokenFilePath = allowedBy(
  z
    .string()
    .max(1_024)
    .refine((path) => isAbsolute(path) && normalize(path) === path && !path.includes('\0'), 'must be an absolute path without . and ..'),
  'RELAY_TOKEN_FILE_ROOTS',
)

/**
 * Reads a file with a token, such as Kubernetes projects into a container and renews.
 * @throws DeliveryError `credentials_refused`, which is final only if the operator does not allow the file
 */
export type ReadTokenFile = (path: string, workspace: string) => Promise<string>

// A token of Kubernetes has 1 KiB, an assertion of SAML some.
const maxBytes = 64 * 1_024

/**
 * Creates the function that reads such files. A workspace names the path, so nothing else of the machine may be read, nor asked for.
 * @param grants the directories that the operator allows
 */
export const createReadTokenFile =
  (grants: readonly Grant[]): ReadTokenFile =>
  async (path, workspace) => {
    const roots = grantedTo(grants, workspace)
    if (!isBelowRoot(path, roots)) throw notAllowed(path, workspace)
    try {
      const [real, ...realRoots] = await Promise.all([realpath(path), ...roots.map((root) => realpath(root).catch(() => ''))])
      const existing = realRoots.filter((root) => root !== '')
      // Kubernetes puts links into the folder, which lead to another one in it.
      if (!isBelowRoot(real, existing)) throw notAllowed(path, workspace)
      return await readStart(real, path)
    } catch (thrown) {
      if (thrown instanceof DeliveryError) throw thrown
      throw new DeliveryError(
        'credentials_refused',
        `the token cannot be read: ${messageOf(thrown)}; check federated_token_file on every worker`,
        {
          permanent: false,
          cause: thrown,
        },
      )
    }
  }

const readStart = async (real: string, path: string): Promise<string> => {
  const file = await open(real)
  try {
    if (!(await file.stat()).isFile()) throw new DeliveryError('credentials_refused', `${path} is no file`, { permanent: true })
    const { bytesRead, buffer } = await file.read(Buffer.alloc(maxBytes + 1), 0, maxBytes + 1, 0)
    const text = buffer.toString('utf8', 0, bytesRead).trim()
    if (bytesRead <= maxBytes && text !== '') return text
    const problem = text === '' ? 'is empty' : `has more than ${maxBytes / 1_024} KiB`
    throw new DeliveryError('credentials_refused', `${path} ${problem}, so it contains no token`, { permanent: false })
  } finally {
    await file.close()
  }
}

const notAllowed = (path: string, workspace: string) =>
  new DeliveryError(
    'credentials_refused',
    `${path} is not below a directory that the operator of the relay allows to ${workspace} for tokens (RELAY_TOKEN_FILE_ROOTS), or a symbolic link leads outside`,
    { permanent: true },
  )
