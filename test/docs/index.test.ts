import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const docs = fileURLToPath(new URL('../../docs', import.meta.url))
const linksIn = (page: string) => [...page.matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, address]) => address!)
const listPages = async () => (await readdir(docs, { recursive: true })).filter((path) => path.endsWith('.md'))

test('docs/README.md links to every page below docs, and to no other', async () => {
  const pages = (await listPages()).filter((path) => path !== 'README.md')
  const linked = linksIn(await readFile(join(docs, 'README.md'), 'utf8')).filter((path) => path.endsWith('.md') && !path.startsWith('../'))
  expect(linked.toSorted()).toEqual(pages.toSorted())
})

test('every link of README.md, CONTRIBUTING.md and the pages below docs leads to an existing file', async () => {
  const root = join(docs, '..')
  for (const path of ['README.md', 'CONTRIBUTING.md', ...(await listPages()).map((page) => join('docs', page))]) {
    for (const address of linksIn(await readFile(join(root, path), 'utf8'))) {
      const target = join(root, path, '..', address)
      expect({ path, address, exists: (await readdir(join(target, '..'))).includes(address.split('/').findLast(Boolean)!) }).toEqual({
        path,
        address,
        exists: true,
      })
    }
  }
})

test('every file that a page names exists', async () => {
  const root = join(docs, '..')
  for (const path of ['README.md', 'CONTRIBUTING.md', ...(await listPages()).map((page) => join('docs', page))]) {
    const page = await readFile(join(root, path), 'utf8')
    const named = [...page.matchAll(/`((?:src|workflows|activities|migrations|test|docs|script|bench)\/[\w./-]+\.\w+)`/g)].map(
      ([, file]) => file!,
    )
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
