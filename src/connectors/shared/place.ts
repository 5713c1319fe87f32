import { posix } from 'node:path'
import type { Place } from '../connector.ts'

/** Returns the part of an address that names a place, whatever its protocol: host, port and path. */
export const hostAndPath = (address: string): string => {
  const { host, pathname } = new URL(address)
  return `${host}${pathname.replace(/[/]+$/, '')}`
}

/** Returns a folder as the beginning of what lies in it: `in/sap/`. The folder in which a session starts is the empty one. */
export const folderPrefix = (folder: string): string => {
  const plain = posix.normalize(`${folder}/`)
  return plain === './' ? '' : plain
}

// Case is ignored, as many targets do.
const plain = (text: string) => text.normalize('NFC').toLowerCase()

/** Returns true if documents of two destinations of one kind may lie at the same place. */
export const overlap = (one: Place, other: Place): boolean => {
  const [prefix, otherPrefix] = [plain(one.prefix), plain(other.prefix)]
  return plain(one.container) === plain(other.container) && (prefix.startsWith(otherPrefix) || otherPrefix.startsWith(prefix))
}
