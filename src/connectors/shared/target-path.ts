import { createHash } from 'node:crypto'
import { cutToBytes } from '../../base/text.ts'
import { DeliveryError } from '../connector.ts'

// The longest name that ext4, XFS, NTFS and APFS all accept.
const nameMaxBytes = 255
const digestCharacters = 16
const extensionMaxBytes = 16

// Servers on Windows take a backslash for a folder separator. Format characters, such as right-to-left marks, make a
// name look like another one. A percent sign stays: `pathSegment` has escaped one that would read as an escape.
const misleading = /\\|\p{Cf}|\p{Zl}|\p{Zp}/iu
const control = /\p{Cc}/u

/**
 * What a name must not contain on Windows, where some of it is refused, and some leads elsewhere: `a:b` is a stream of the file `a`, `CON` a
 * device with every extension, and dots and blanks at the end are dropped. Of a device, the first character is escaped.
 */
const unfitForWindows = /["*:<>?|]|^\s+|[\s.]+$|^(?=(?:con|prn|aux|nul|conin\$|conout\$|clock\$|com[\d¹²³]|lpt[\d¹²³])\s*(?:\.|$))./

// The dot in the end of a name that only a file of properties may have.
const nameOfProperties = /(?<=\.meta)\.(?=json$)/

/** Which names a target accepts. `windows`: those that file servers and shares of Windows accept. */
export type FileNames = 'any' | 'windows'

/**
 * Returns the folders and the name under which a path is stored. The result depends on the path alone, so every attempt
 * writes to the same place. The values in the path are those of `pathSegment`, so that different ones stay different.
 * @param unfit matches what else must be escaped because the target does not accept it
 * @param hasPropertyFiles `NAME.meta.json` has the properties of `NAME`, so a document with such a name gets another one
 * @param names `windows`: escapes what does not fit there, and composes characters, because some servers take both forms for one name
 * @throws DeliveryError `path_refused` for a path that would leave its folder
 */
export const targetSegments = (
  path: string,
  {
    names = 'any',
    unfit = names === 'windows' ? unfitForWindows : undefined,
    hasPropertyFiles = false,
  }: { unfit?: RegExp; names?: FileNames; hasPropertyFiles?: boolean } = {},
): string[] => {
  const segments = path.split('/')
  if (segments.some((segment) => segment === '' || segment === '.' || segment === '..') || control.test(path)) {
    throw new DeliveryError(
      'path_refused',
      'the path of the document must be relative, without empty or dotted segments and without control characters',
    )
  }
  const patterns = [misleading, ...(unfit ? [unfit] : []), ...(hasPropertyFiles ? [nameOfProperties] : [])]
  const escaped = new RegExp(patterns.map(({ source }) => source).join('|'), 'giu')
  return segments.map((segment) => {
    const name = segment.toWellFormed()
    const composed = names === 'windows' ? name.normalize('NFC') : name
    const fitting = composed.replace(escaped, escape)
    return composed === name ? shortened(fitting) : withDigest(fitting, name)
  })
}

// encodeURIComponent leaves some of these characters as they are.
const escape = (text: string) => Buffer.from(text).toString('hex').toUpperCase().replace(/../g, '%$&')

/**
 * Cuts a name that is too long. It keeps its beginning and its extension; a digest of the whole name keeps it distinct.
 */
export const shortened = (name: string): string => (Buffer.byteLength(name) <= nameMaxBytes ? name : withDigest(name, name))

/** Returns a name with a digest of what it was made of before its extension, cut to the maximum. */
const withDigest = (name: string, original: string): string => {
  const extension = /\.[^.]+$/u.exec(name)?.[0] ?? ''
  const kept = Buffer.byteLength(extension) <= extensionMaxBytes ? extension : ''
  const tail = `~${createHash('sha256').update(original).digest('hex').slice(0, digestCharacters)}${kept}`
  const base = name.slice(0, name.length - kept.length)
  return cutToBytes(base, nameMaxBytes - Buffer.byteLength(tail)) + tail
}

/** The name of a file while it is being written. Short: some file systems accept no more than 143 bytes. */
export const hiddenPartFile = '.relay-{id}.part'

/**
 * Returns the name of a file while it is being written. Identical in every attempt of a delivery.
 * @param pattern contains `{id}`. With slashes, it is a path below the folder of the destination, otherwise a name in the folder of the file
 */
export const partFileName = (name: string, deliveryId: string, pattern = hiddenPartFile): string =>
  pattern.replace('{id}', createHash('sha256').update(`${deliveryId}/${name}`).digest('hex').slice(0, digestCharacters))

/** Returns the folders of part files, below the folder of the destination. Undefined: each is in the folder of its file. */
export const partFolders = (pattern: string): string[] | undefined => {
  const folders = pattern.split('/').slice(0, -1)
  return folders.length === 0 ? undefined : folders
}
