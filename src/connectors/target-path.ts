import { createHash } from 'node:crypto'
import { DeliveryError } from './connector.ts'

// what ext4, XFS, NTFS and APFS all take for one name
const nameMaxBytes = 255
const digestCharacters = 16
const extensionMaxBytes = 16

// Backslash is a folder separator to servers on Windows; format characters (right-to-left marks among them) make a name look like
// another one. A percent sign is escaped only where it would read as an escape of ours: different paths stay different.
const misleading = /\\|\p{Cf}|\p{Zl}|\p{Zp}|%(?=[0-9a-f]{2})/giu
const control = /\p{Cc}/u

/**
 * The folders and the name under which a parcel's path is stored: the same for the same path, whatever the attempt.
 * @param unfit what else is to be escaped in a part of the path, because the target does not take it
 * @throws DeliveryError `path_refused` for a path that would leave its folder
 */
export const targetSegments = (path: string, unfit?: RegExp): string[] => {
  const segments = path.split('/')
  if (segments.some((segment) => segment === '' || segment === '.' || segment === '..') || control.test(path)) {
    throw new DeliveryError('path_refused', 'the path of the document is absolute, has empty or dotted parts, or control characters', {
      permanent: true,
    })
  }
  const escaped = unfit ? new RegExp(`${misleading.source}|${unfit.source}`, 'giu') : misleading
  return segments.map((segment) => shortened(segment.toWellFormed().replace(escaped, escape)))
}

// encodeURIComponent lets pass some of what must not
const escape = (text: string) => Buffer.from(text).toString('hex').toUpperCase().replace(/../g, '%$&')

/** Too long a name keeps its beginning and its extension; a digest of the whole keeps it apart from others. */
export const shortened = (name: string): string => {
  if (Buffer.byteLength(name) <= nameMaxBytes) return name
  const extension = /\.[^.]+$/u.exec(name)?.[0] ?? ''
  const kept = Buffer.byteLength(extension) <= extensionMaxBytes ? extension : ''
  const tail = `~${createHash('sha256').update(name).digest('hex').slice(0, digestCharacters)}${kept}`
  return cut(name, nameMaxBytes - Buffer.byteLength(tail)) + tail
}

/** The name a document has while it is being written: hidden, beside the final one, the same for each attempt of a delivery. */
export const partName = (name: string, deliveryId: string): string => {
  const tail = `.${deliveryId}.part`
  return `.${cut(name, nameMaxBytes - 1 - Buffer.byteLength(tail))}${tail}`
}

const cut = (text: string, maxBytes: number) => {
  let [kept, bytes] = ['', 0]
  for (const character of text) {
    bytes += Buffer.byteLength(character)
    if (bytes > maxBytes) break
    kept += character
  }
  return kept
}
