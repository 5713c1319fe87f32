import { isMissing, type CloudApi } from './cloud-api.ts'
import { objectOf } from './cloud-call.ts'
import { DeliveryError } from './connector.ts'
import type { TeamsiteConfig } from './teamsite-target.ts'

export interface Library {
  driveId: string
  /** Where it is seen in a browser, without a slash at its end. */
  webUrl: string
}

// some thousand libraries: a site with more of them is not to keep an attempt busy
const pagesAtMost = 20
const shownNamesAtMost = 20

/** Finds the library by the site's address and its own name. @throws DeliveryError `site_missing`, `library_missing` */
export const findLibrary = async (graph: CloudApi, { site_url: siteUrl, document_library: name }: TeamsiteConfig): Promise<Library> => {
  const { hostname, pathname } = new URL(siteUrl)
  const path = pathname.replace(/\/+$/, '')
  const site = await graph.call(`/sites/${hostname}${path && `:${path}`}?$select=id`, { method: 'GET' }).catch((thrown: unknown) => {
    if (!isMissing(thrown)) throw thrown
    throw new DeliveryError('site_missing', `there is no site ${siteUrl}, or the application has no permission on it: correct site_url`, {
      permanent: true,
      answer: thrown.answer,
    })
  })
  const { id } = objectOf(site.text)
  if (typeof id !== 'string') throw unreadable('the site')

  const names: string[] = []
  let next: string | undefined = `/sites/${encodeURIComponent(id)}/drives?$select=id,name,webUrl`
  for (let page = 0; next !== undefined && page < pagesAtMost; page += 1) {
    const answer = objectOf((await graph.call(next, { method: 'GET' })).text)
    if (!Array.isArray(answer.value)) throw unreadable('the list of libraries')
    for (const drive of answer.value as { id?: unknown; name?: unknown; webUrl?: unknown }[]) {
      if (typeof drive.id !== 'string' || typeof drive.name !== 'string' || typeof drive.webUrl !== 'string') continue
      // SharePoint does not tell upper from lower case in names
      if (drive.name.toLowerCase() === name.toLowerCase()) return { driveId: drive.id, webUrl: drive.webUrl.replace(/\/+$/, '') }
      names.push(drive.name)
    }
    const link = answer['@odata.nextLink']
    next = typeof link === 'string' ? link : undefined
  }
  const shown = names.slice(0, shownNamesAtMost).join(', ') + (names.length > shownNamesAtMost ? ', ...' : '')
  throw new DeliveryError(
    'library_missing',
    `the site has no document library ${name}; it has: ${shown || 'none that the application sees'}`,
    {
      permanent: true,
    },
  )
}

const unreadable = (what: string) => new DeliveryError('answer_unreadable', `Graph did not tell ${what} in a form we know`)
