import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { placeOf } from '../../src/api/docs/pages.ts'
import { walkedPages } from './walk.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const text = readFileSync(join(root, 'llms.txt'), 'utf8')
const linksIn = (part: string) => [...part.matchAll(/^- \[[^\]]+\]\(([^)]+)\)/gm)].map(([, address]) => address!)

test('llms.txt names the pages of docs whose commands are run by tests, and no others', () => {
  const [, tested] = /^## Pages whose commands are run by tests\n(.*?)^## /ms.exec(text)!
  const walked = Object.values(walkedPages).flat()
  expect(linksIn(tested!).toSorted()).toEqual(walked.filter((path) => path.startsWith('docs/')).toSorted())
})

test('every link of llms.txt leads to a file, which a running relay serves at the same address', () => {
  const links = linksIn(text)
  expect(links.length).toBeGreaterThan(20)
  expect(links.filter((path) => !existsSync(join(root, path)))).toEqual([])
  const served = (path: string) => path === 'openapi.json' || placeOf(path) === path.replace(/^docs\//, '').replace(/\.md$/, '.html')
  expect(links.filter((path) => path !== 'docs/README.md' && !served(path))).toEqual([])
})
