import { readFile } from 'node:fs/promises'
import { posix } from 'node:path'
import MiniSearch, { type Options } from 'minisearch'
import { addressOf } from '../../../src/api/docs/pages.ts'
import { renderSite } from '../../../src/api/docs/site.ts'
import { errorStatus } from '../../../src/base/errors.ts'
import { errorCodes } from '../../../src/connectors/error-codes.ts'
import { refusals } from '../../../src/domain/refusal-codes.ts'
import { namedDocs, namedSources } from './named-docs.ts'

const site = new Map((await renderSite()).map(({ place, body }) => [place, body]))
const pages = [...site].filter(([place]) => place.endsWith('.html')).map(([place, body]) => ({ place, html: body.toString() }))
const idsOf = (place: string) =>
  [
    ...site
      .get(place)!
      .toString()
      .matchAll(/ id="([^"]+)"/g),
  ].map(([, id]) => id!)

// What the relay answers beside the files.
const served = new Set(['reference', '../console/', '../openapi.json'])

/** Returns what is wrong with an address in a page, if anything. */
const faultOf = (place: string, address: string): string | undefined => {
  if (/^https?:\/\//.test(address)) return undefined
  const [path = '', anchor] = address.split('#', 2)
  const target = path === '' ? place : posix.join(posix.dirname(place), path)
  if (served.has(target) || served.has(posix.normalize(target))) return undefined
  if (path.startsWith('/') || !site.has(target)) return `${place}: ${address} leads to no file`
  return anchor === undefined || idsOf(target).includes(decodeURIComponent(anchor)) ? undefined : `${place}: ${address} leads to no heading`
}

test('every address in every page leads to a file of the site, and to a heading in it', () => {
  expect(pages.length).toBeGreaterThan(70)
  const addresses = pages.flatMap(({ place, html }) =>
    [...html.matchAll(/ (?:href|src|srcset)="([^"]*)"/g)].map(([, address]) => ({ place, address: address!.replaceAll('&amp;', '&') })),
  )
  expect(addresses.length).toBeGreaterThan(3_000)
  expect(addresses.map(({ place, address }) => faultOf(place, address)).filter(Boolean)).toEqual([])
})

test('a link to a file that only the source code has is text', () => {
  expect(addressOf('docs/testing.md', '../test/README.md')).toBeUndefined()
  expect(addressOf('docs/README.md', '../CONTRIBUTING.md')).toBeUndefined()
  expect(addressOf('docs/connectors/README.md', 'webhook.md#config')).toBe('webhook.html#config')
  expect(addressOf('docs/api.md', '../clients/python/README.md')).toBe('clients/python/README.html')
  expect(site.get('testing.html')!.toString()).not.toMatch(/href="[^"]*test\/README/)
})

test('no page has an inline script or style, or a handler', () => {
  for (const { place, html } of pages) {
    const outside = html.replaceAll(/<code[ >].*?<\/code>/gs, '')
    expect({ place, found: /<script(?![^>]* src=)|<style|\sstyle=|<[^>]+\son\w+=/.exec(outside)?.[0] }).toEqual({ place, found: undefined })
  }
})

test('headings of a page, and rows of the page of errors, have anchors of their own: those that doc_url of an error names', () => {
  for (const { place } of pages) expect({ place, ids: new Set(idsOf(place)).size }).toEqual({ place, ids: idsOf(place).length })
  const ids = idsOf('errors.html')
  expect(ids).toEqual(expect.arrayContaining([...Object.keys(errorStatus), 'internal_error']))
  expect(ids).toEqual(expect.arrayContaining(Object.keys(errorCodes).map((code) => `delivery-${code}`)))
  expect(ids).toEqual(expect.arrayContaining(Object.keys(refusals).map((code) => `source-${code}`)))
})

test('the menu has every page that docs/README.md lists and the site has', () => {
  const [, menu] = /<nav[^>]*>(.*?)<\/nav>/s.exec(site.get('connectors/webhook.html')!.toString())!
  const listed = [...menu!.matchAll(/href="([^"]+)"/g)].map(([, address]) => posix.join('connectors', address!))
  for (const place of ['install.html', 'runbook.html', 'connectors/README.html', 'errors.html']) expect(listed).toContain(place)
})

describe('the search', () => {
  const { options, sections } = JSON.parse(
    site
      .get('search-index.js')!
      .toString()
      .replace(/^globalThis\.docsIndex = /, ''),
  ) as {
    options: Options
    sections: { id: number; place: string; text: string }[]
  }
  const search = new MiniSearch(options)
  search.addAll(sections)
  const find = (query: string) =>
    search
      .search(query)
      .slice(0, 8)
      .map(({ id }) => sections[id as number]!.place)

  test.each([
    ['RelayWorkerAbsent', 'runbook.html#relayworkerabsent'],
    ['storage_full', 'errors.html#delivery-error-codes'],
    ['no file system is mounted', 'connectors/directory.html#without-its-mount'],
    ['haproxy drain', 'install.html#several-processes-behind-a-proxy'],
    ['workspace create', 'install.html#the-first-workspace'],
  ])('%s leads to %s', (query, place) => {
    expect(find(query)).toContain(place)
  })

  test('finds nothing for words that no page has, and is not larger than a picture or two', () => {
    expect(find('zzyzxqwv')).toEqual([])
    expect(site.get('search-index.js')!.length).toBeLessThan(1_500_000)
  })
})

test('every page of the documentation that a text of the relay names exists, with its anchor', async () => {
  const named = await namedDocs()
  expect(named.length).toBeGreaterThan(3)
  const faults = named.map(({ file, page, anchor }) => {
    if (page === '' || page === 'reference') return undefined
    const place = site.has(`${page}.html`) ? `${page}.html` : page
    if (!site.has(place)) return `${file}: /docs/${page} does not exist`
    return anchor === undefined || anchor === '' || idsOf(place).includes(anchor)
      ? undefined
      : `${file}: /docs/${page}#${anchor} does not exist`
  })
  expect(faults.filter(Boolean)).toEqual([])
})

test('no text of the relay sends its reader to a Markdown file of the repository', async () => {
  expect(await namedSources()).toEqual([])
})

test('the documentation has the version of the relay', async () => {
  const { version } = JSON.parse(await readFile(new URL('../../../package.json', import.meta.url), 'utf8')) as { version: string }
  expect(site.get('index.html')!.toString()).toContain(`Document Relay ${version}`)
})
