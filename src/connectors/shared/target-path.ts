import { createHash } from 'node:crypto'
import { cutToBytes } from '../../base/text.ts'
import { DeliveryError } from '../connector.ts'

// The longest name that ext4, XFS, NTFS and APFS all accept.
const nameMaxBytes = 255
const digestCharacters = 16
const extensionMaxBytes = 16

// Servers on Windows take a backslash for a folder separator. Format characters, such as right-to-left marks, make a
// name look like another one. A percent sign is escaped only if it would read as an escape of this function, so that
// different paths stay different.
const misleading = /\\|\p{Cf}|\p{Zl}|\p{Zp}|%(?=[0-9a-f]{2})/giu
const control = /\p{Cc}/u

/**
 * Returns the folders and the name under which a path is stored. The result depends on the path alone, so every attempt
 * writes to the same place.
 * @param unfit matches what else must be escaped because the target does not accept it
 * @throws DeliveryError `path_refused` for a path that would leave its folder
 */
export const targetSegments = (path: string, unfit?: RegExp): string[] => {
  const segments = path.split('/')
  if (segments.some((segment) => segment === '' || segment === '.' || segment === '..') || control.test(path)) {
    throw new DeliveryError(
      'path_refused',
      'the path of the document must be relative, without empty or dotted segments and without control characters',
    )
  }
  const escaped = unfit ? new RegExp(`${misleading.source}|${unfit.source}`, 'giu') : misleading
  return segments.map((segment) => shortened(segment.toWellFormed().replace(escaped, escape)))
}

// encodeURIComponent leaves some of these characters as they are.
const escape = (text: string) => Buffer.from(text).toString('hex').toUpperCase().replace(/../g, '%$&')

/**
 * Cuts a name that is too long. It keeps its beginning and its extension; a digest of the whole name keeps it distinct.
 */
export const shortened = (name: string): string => {
  if (Buffer.byteLength(name) <= nameMaxBytes) return name
  const extension = /\.[^.]+$/u.exec(name)?.[0] ?? ''
  const kept = Buffer.byteLength(extension) <= extensionMaxBytes ? extension : ''
  const tail = `~${createHash('sha256').update(name).digest('hex').slice(0, digestCharacters)}${kept}`
  return cutToBytes(name, nameMaxBytes - Buffer.byteLength(tail)) + tail
}

/**
 * Returns the hidden name of a file while it is being written, in the same folder. Identical in every attempt of a delivery, and short: some
 * file systems accept no more than 143 bytes.
 */
export const partFileName = (name: string, deliveryId: string): string =>
  `.relay-${createHash('sha256').update(`${deliveryId}/${name}`).digest('hex').slice(0, digestCharacters)}.part`
