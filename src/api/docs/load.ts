import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isCheckout } from './pages.ts'

/** Reads a file of the documentation, or returns undefined if there is none at this place. */
export type ReadDocs = (place: string) => Promise<Buffer | undefined>

// `npm run build` has rendered it, so an installation needs no renderer.
const rendered = fileURLToPath(new URL('../../../docs/', import.meta.url))

/** Opens the documentation: in a compiled relay the files that the build has written, in a checkout those of now, rendered once. */
export const openDocs = async (): Promise<ReadDocs> => {
  if (isCheckout()) {
    const { renderSite } = await import('./site.ts')
    const files = new Map((await renderSite()).map(({ place, body }) => [place, body]))
    return async (place) => files.get(place)
  }
  const entries = await readdir(rendered, { recursive: true, withFileTypes: true })
  const places = new Set(
    entries.filter((entry) => entry.isFile()).map((entry) => relative(rendered, join(entry.parentPath, entry.name)).replaceAll('\\', '/')),
  )
  return async (place) => (places.has(place) ? readFile(join(rendered, place)) : undefined)
}
