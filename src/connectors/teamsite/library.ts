import { DeliveryError } from '../connector.ts'
import { isNotFound, parseObject, type CloudApi } from '../shared/cloud-api.ts'
import { targetSegments } from '../shared/target-path.ts'

/** A document library of a SharePoint site. */
export interface Library {
  driveId: string
  /** Address in a browser, without a trailing slash. */
  webUrl: string
}

// Some thousand libraries. A larger site must not keep an attempt busy.
const maxPages = 20
const maxNamesInMessage = 20

/**
 * Finds a library by the site's address and the library's name.
 * @throws DeliveryError `site_missing`, `library_missing`
 */
export const findLibrary = async (graph: CloudApi, { siteUrl, name }: { siteUrl: string; name: string }): Promise<Library> => {
  const { hostname, pathname } = new URL(siteUrl)
  const path = pathname.replace(/\/+$/, '')
  const call = { operation: `search for the site ${siteUrl}`, method: 'GET' } as const
  const site = await graph.request(`/sites/${hostname}${path && `:${path}`}?$select=id`, call).catch((thrown: unknown) => {
    if (!isNotFound(thrown)) throw thrown
    throw new DeliveryError(
      'site_missing',
      `the site ${siteUrl} does not exist, or the application has no permission on it; correct site_url`,
      { answer: thrown.answer },
    )
  })
  const { id } = parseObject(site.text)
  if (typeof id !== 'string') throw unreadable('the site')

  const names: string[] = []
  let next: string | undefined = `/sites/${encodeURIComponent(id)}/drives?$select=id,name,webUrl`
  for (let page = 0; next !== undefined && page < maxPages; page += 1) {
    const list = parseObject((await graph.request(next, { operation: `list of the libraries of ${siteUrl}`, method: 'GET' })).text)
    if (!Array.isArray(list.value)) throw unreadable('the list of libraries')
    for (const drive of list.value as { id?: unknown; name?: unknown; webUrl?: unknown }[]) {
      if (typeof drive.id !== 'string' || typeof drive.name !== 'string' || typeof drive.webUrl !== 'string') continue
      // Names in SharePoint are case-insensitive.
      if (drive.name.toLowerCase() === name.toLowerCase()) return { driveId: drive.id, webUrl: drive.webUrl.replace(/\/+$/, '') }
      names.push(drive.name)
    }
    const link = list['@odata.nextLink']
    next = typeof link === 'string' ? link : undefined
  }
  const found = names.slice(0, maxNamesInMessage).join(', ') + (names.length > maxNamesInMessage ? ', ...' : '')
  throw new DeliveryError(
    'library_missing',
    `the site has no document library ${name}; it has: ${found || 'none that the application may see'}`,
  )
}

const unreadable = (what: string) => new DeliveryError('answer_unreadable', `Graph described ${what} in an unknown form`)

// SharePoint refuses, trims or reserves: some characters; blanks around a name and dots at its end; a leading tilde;
// `_vti_` anywhere; names of devices and some names of its own. In a reserved name, one character is escaped.
const characters = /["*:<>?|]/
const edges = /^[\s~]+|[\s.]+$/
const reserved = /_(?=vti_)|^(?=(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)|(?:\.lock|desktop\.ini|forms)$)./
const unfit = new RegExp(`${characters.source}|${edges.source}|${reserved.source}`)

// SharePoint's limit for the decoded path below the host.
const pathMaxCharacters = 400

/** Returns folders and file name in the form that SharePoint accepts. @throws DeliveryError `path_refused` */
export const sharePointSegments = (path: string): string[] => targetSegments(path, { unfit })

/** Returns `true` if SharePoint accepts the folder path unchanged. */
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
      `site, library, folder and path together have ${characterCount} characters; SharePoint accepts ${pathMaxCharacters}. Shorten folder or path_template`,
    )
  }
}

export const urlPath = (segments: string[]) => segments.map(encodeURIComponent).join('/')
