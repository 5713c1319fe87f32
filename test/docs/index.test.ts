import { existsSync, globSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createAnchors } from '../../src/api/docs/render.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const docs = join(root, 'docs')
const linksIn = (page: string) => [...page.matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, address]) => address!)
const listPages = async () => (await readdir(docs, { recursive: true })).filter((path) => path.endsWith('.md'))

test('docs/README.md links to every page of docs and to the README of each folder, which links to every page of its folder', async () => {
  const pages = await listPages()
  for (const folder of ['', 'adr/', 'connectors/', 'measurements/']) {
    const index = `${folder}README.md`
    const isListed = (path: string) => path.startsWith(folder) && path !== index && (folder !== '' || /^[^/]+(\/README\.md)?$/.test(path))
    const linked = linksIn(await readFile(join(docs, index), 'utf8')).filter((path) => path.endsWith('.md') && !path.startsWith('../'))
    expect({ index, pages: [...new Set(linked)].map((path) => folder + path).toSorted() }).toEqual({
      index,
      pages: pages.filter(isListed).toSorted(),
    })
  }
})

/** Returns the anchors of the headings of a page. */
const anchorsOf = (page: string): string[] =>
  [...page.replaceAll(/^( *)```.*?^\1```$/gms, '').matchAll(/^#+ +(.*)$/gm)].map(([, heading]) => heading!).map(createAnchors())

/** Returns the links of a page whose file does not exist, and those whose anchor is no heading of its page. */
const brokenLinksIn = async (path: string): Promise<string[]> => {
  const page = await readFile(join(root, path), 'utf8')
  const links = [
    ...page.matchAll(/\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]+))?\)/g),
    ...page.matchAll(/<(?:img|source) [^>]*\b(?:src|srcset)="([^"]+)"/g),
  ]
  const broken = await Promise.all(
    links.map(async ([link, address, anchor]) => {
      const target = address === '' ? join(root, path) : join(root, path, '..', address!)
      if (!existsSync(target)) return [link]
      return anchor === undefined || anchorsOf(await readFile(target, 'utf8')).includes(anchor) ? [] : [link]
    }),
  )
  return broken.flat()
}

test('every link of a page leads to an existing file, and to a heading in it', async () => {
  const pages = globSync('**/*.md', { cwd: root, exclude: (path) => /(^|\/)(node_modules|dist|\.[a-z].*)$/.test(path) })
  expect(pages.length).toBeGreaterThan(80)
  const broken = await Promise.all(pages.map(async (path) => ({ path, links: await brokenLinksIn(path) })))
  expect(broken.filter(({ links }) => links.length > 0)).toEqual([])
})

test('every file and folder that a page names exists', async () => {
  for (const path of ['README.md', 'CONTRIBUTING.md', 'test/README.md', ...(await listPages()).map((page) => join('docs', page))]) {
    const page = await readFile(join(root, path), 'utf8')
    const named = [
      ...page.matchAll(/`((?:src|workflows|activities|migrations|test|docs|script|bench|faults|deploy|console)\/[\w./-]+(?:\.\w+|\/))`/g),
    ].map(([, file]) => file!)
    expect({ path, missing: named.filter((file) => !existsSync(join(root, file))) }).toEqual({ path, missing: [] })
  }
})

test.each([
  ['Walk one', 35],
  ['Walk two', 15],
])('%s of docs/architecture.md leads through at most %i files', async (title, maxFiles) => {
  const page = await readFile(join(docs, 'architecture.md'), 'utf8')
  const walk = page.slice(page.indexOf(`## ${title}`)).split('\n## ')[0]!
  const files = [...walk.matchAll(/^\| \d+ \| `([^`]+)` \|/gm)].map(([, file]) => file)
  expect(files.length).toBeGreaterThan(10)
  expect(new Set(files).size).toBeLessThanOrEqual(maxFiles)
})
