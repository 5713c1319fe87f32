import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const docs = fileURLToPath(new URL('../../docs', import.meta.url))
const linksIn = (page: string) => [...page.matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, address]) => address!)

test('docs/README.md leads to every page, and to no other', async () => {
  const pages = (await readdir(docs, { recursive: true })).filter((path) => path.endsWith('.md') && path !== 'README.md')
  const linked = linksIn(await readFile(join(docs, 'README.md'), 'utf8'))
  expect(linked.toSorted()).toEqual(pages.toSorted())
})

test.each(['README.md', 'docs/README.md', 'docs/api.md'])('what %s links to is there', async (path) => {
  const root = join(docs, '..')
  for (const address of linksIn(await readFile(join(root, path), 'utf8'))) {
    const target = join(root, path, '..', address)
    expect({ address, isThere: (await readdir(join(target, '..'))).includes(address.split('/').findLast(Boolean)!) }).toEqual({
      address,
      isThere: true,
    })
  }
})
