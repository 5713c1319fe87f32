import { posix } from 'node:path'
import { version } from '../../base/version.ts'
import { escapeHtml } from './render.ts'

/** The menu: the groups of docs/README.md with their pages, by their places in the site. */
export interface Menu {
  title: string
  pages: { place: string; title: string }[]
}

interface Framed {
  /** Where the page is in the site: `connectors/webhook.html`. */
  place: string
  title: string
  html: string
  menu: readonly Menu[]
}

/** Returns a page of the documentation with its menu and the search. It has no inline script or style, and every address is relative. */
export const framePage = ({ place, title, html, menu }: Framed): string => {
  const to = (target: string) => escapeHtml(posix.relative(posix.dirname(place), target))
  const group = ({ title: name, pages }: Menu) => `
      <h2>${escapeHtml(name)}</h2>
      <ul>
${pages.map((page) => `        <li><a href="${to(page.place)}"${page.place === place ? ' aria-current="page"' : ''}>${escapeHtml(page.title)}</a></li>`).join('\n')}
      </ul>`
  return `<!doctype html>
<html lang="${place.startsWith('ein-tag') ? 'de' : 'en'}">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>${escapeHtml(title)} - Document Relay ${version}</title>
    <link rel="stylesheet" href="${to('docs.css')}">
    <script src="${to('minisearch.js')}" defer></script>
    <script src="${to('search.js')}" defer data-root="${to('index.html').replace(/index\.html$/, '')}"></script>
  </head>
  <body>
    <header>
      <a class="home" href="${to('index.html')}">Document Relay ${version}</a>
      <search>
        <input id="docs-search" type="search" placeholder="Search" aria-label="Search the documentation" autocomplete="off" maxlength="200">
        <ol id="docs-results" aria-label="Results" aria-live="polite" hidden></ol>
      </search>
      <a class="served" href="${to('reference')}">API reference</a>
      <a class="served" href="${to('../console')}/">Console</a>
    </header>
    <details class="menu" open>
      <summary>Pages</summary>
      <nav aria-label="Pages">${menu.map(group).join('')}
      </nav>
    </details>
    <main>
${html}
    </main>
  </body>
</html>
`
}
