import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { framePage, type Menu } from './layout.ts'
import { listFiles, listPages, placeOf, repository } from './pages.ts'
import { renderPage, type RenderedPage } from './render.ts'

/** A file of the documentation as it is served: `place` is relative to the root of the site. */
export interface SiteFile {
  place: string
  body: Buffer
}

const index = 'docs/README.md'

/** Returns the groups of the index: a heading, and the pages in the first column of its table. */
const menuOf = (markdown: string, titles: ReadonlyMap<string, string>): Menu[] =>
  markdown.split(/^## /m).map((part, at) => ({
    title: at === 0 ? 'Begin' : part.split('\n', 1)[0]!,
    pages: [...part.matchAll(/^\| \[[^\]]+\]\(([^)]+)\)/gm)].flatMap(([, link]) => {
      const path = join('docs', link!).replaceAll('\\', '/')
      const place = placeOf(path)
      return place === undefined ? [] : [{ place, title: titles.get(path)! }]
    }),
  }))

// Words of the headings count more than those of the text, and the beginning of a word is found.
const searchOptions = {
  fields: ['heading', 'page', 'text'],
  searchOptions: { boost: { heading: 4, page: 2 }, prefix: true, combineWith: 'AND' },
}

const indexOf = (pages: readonly (RenderedPage & { place: string })[]): string => {
  const sections = pages
    .flatMap(({ title, place, sections: ofPage }) =>
      ofPage.map(({ heading, anchor, text }) => ({
        page: title,
        heading,
        text,
        place: anchor === '' ? place : `${place}#${encodeURIComponent(anchor)}`,
      })),
    )
    .map((section, id) => ({ id, ...section }))
  return `globalThis.docsIndex = ${JSON.stringify({ options: searchOptions, sections })}\n`
}

/** Renders the documentation: its pages, the files that they link to, and the search. Needs the packages of the development. */
export const renderSite = async (): Promise<SiteFile[]> => {
  const sources = await Promise.all(listPages().map(async (path) => ({ path, markdown: await readFile(join(repository, path), 'utf8') })))
  const pages = sources.map(({ path, markdown }) => ({ path, place: placeOf(path)!, ...renderPage(path, markdown) }))
  const titles = new Map(pages.map(({ path, title }) => [path, title]))
  const menu = menuOf(sources.find(({ path }) => path === index)!.markdown, titles)
  const beside = (name: string) => readFile(new URL(name, import.meta.url))
  const miniSearch = fileURLToPath(new URL('../umd/index.js', import.meta.resolve('minisearch')))
  return [
    ...pages.map(({ place, title, html }) => ({ place, body: Buffer.from(framePage({ place, title, html, menu })) })),
    ...(await Promise.all(listFiles().map(async (path) => ({ place: placeOf(path)!, body: await readFile(join(repository, path)) })))),
    { place: 'docs.css', body: await beside('docs.css') },
    { place: 'search.js', body: await beside('search.js') },
    { place: 'minisearch.js', body: await readFile(miniSearch) },
    { place: 'search-index.js', body: Buffer.from(indexOf(pages)) },
  ]
}
