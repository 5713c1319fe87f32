import { DeliveryError } from './connector.ts'
import { targetSegments } from './target-path.ts'

// What SharePoint refuses, trims or keeps for itself: characters; blanks around a name and dots behind it; a tilde in front; `_vti_`
// anywhere; and names of devices and of its own. Of a name that is taken, one character is escaped.
const characters = /["*:<>?|]/
const edges = /^[\s~]+|[\s.]+$/
const reserved = /_(?=vti_)|^(?=(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)|(?:\.lock|desktop\.ini|forms)$)./
const unfit = new RegExp(`${characters.source}|${edges.source}|${reserved.source}`)

// of the whole path below the host, decoded
const pathMaxCharacters = 400

/** @throws DeliveryError `path_refused` */
export const sharePointSegments = (path: string): string[] => targetSegments(path, unfit)

/** Whether a folder named by an operator is one SharePoint takes as it is. */
export const isSharePointFolder = (folder: string): boolean => {
  try {
    return sharePointSegments(folder).join('/') === folder
  } catch {
    return false
  }
}

/** @throws DeliveryError `path_too_long` */
export const requirePathFits = (libraryUrl: string, segments: string[]) => {
  const characterCount = decodeURIComponent(new URL(libraryUrl).pathname).length + segments.join('/').length
  if (characterCount > pathMaxCharacters) {
    throw new DeliveryError(
      'path_too_long',
      `site, library, folder and path together have ${characterCount} characters, and SharePoint takes ${pathMaxCharacters}: shorten folder or path_template`,
      { permanent: true },
    )
  }
}

export const urlPath = (segments: string[]) => segments.map(encodeURIComponent).join('/')
