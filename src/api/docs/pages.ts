import { existsSync, globSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The root of the repository: the sources of the documentation. */
export const repository = fileURLToPath(new URL('../../..', import.meta.url))

const list = (pattern: string): string[] => globSync(pattern, { cwd: repository }).map((path) => path.replaceAll('\\', '/'))

// Besides docs: what a reader of the pages has without a checkout.
const otherPages = ['CHANGELOG.md', 'SECURITY.md', ...['check-source', 'python', 'typescript'].map((name) => `clients/${name}/README.md`)]
const folders = ['deploy/compose', 'deploy/haproxy', 'deploy/monitoring', 'deploy/systemd', 'docs/enrichments', 'docs/examples']

/** Returns the Markdown files that become pages, by their paths in the repository. */
export const listPages = (): string[] => [...list('docs/**/*.md'), ...otherPages].toSorted()

/** Returns the files that pages link to and that are served as they stand, by their paths in the repository. */
export const listFiles = (): string[] =>
  [
    ...folders.flatMap((folder) => list(`${folder}/**/*.*`)),
    ...list('docs/images/*.png'),
    'deploy/create-roles.sql',
    'docs/relay.schema.json',
    'llms.txt',
  ]
    .filter((path) => !path.endsWith('.md'))
    .toSorted()

const placeIn = (path: string): string => {
  const inSite = path.replace(/^docs\//, '')
  return path === 'docs/README.md' ? 'index.html' : inSite.replace(/\.md$/, '.html')
}

/** The place of each file of the site, by its path in the repository. */
const readPlaces = (): ReadonlyMap<string, string> => new Map([...listPages(), ...listFiles()].map((path) => [path, placeIn(path)]))

let places: ReadonlyMap<string, string> | undefined

/**
 * Returns the place of a file of the repository in the site, relative to its root: that of `docs/install.md` is `install.html`.
 * @returns undefined if the site does not have it
 */
export const placeOf = (path: string): string | undefined => (places ??= readPlaces()).get(path)

/** Returns the address in a page of the site for a link in the Markdown, or undefined if the site does not have its target. */
export const addressOf = (page: string, link: string): string | undefined => {
  if (/^[a-z][a-z0-9+.-]*:/i.test(link)) return link
  const [path = '', anchor] = link.split('#', 2)
  const target = path === '' ? page : posix.join(dirname(page), path)
  const from = posix.dirname(placeOf(page)!)
  // It describes the relay that serves the page.
  const place = target === 'openapi.json' ? '../openapi.json' : placeOf(target)
  if (place === undefined) return undefined
  const relative = path === '' ? '' : posix.relative(from, place)
  return anchor === undefined ? relative : `${relative}#${anchor}`
}

/** Returns whether the relay runs from a checkout, which has the sources of the documentation. */
export const isCheckout = (): boolean => existsSync(join(repository, 'docs/README.md'))
