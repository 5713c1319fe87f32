import { Marked, type Token, type Tokens } from 'marked'
import { addressOf } from './pages.ts'

/** A heading with the text below it, up to the next heading. */
interface Section {
  heading: string
  /** Empty for the text before the first heading below the title. */
  anchor: string
  text: string
}

export interface RenderedPage {
  title: string
  html: string
  sections: Section[]
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** Returns a text as it stands in HTML, also in an attribute. */
export const escapeHtml = (text: string): string => text.replaceAll(/[&<>"]/g, (character) => entities[character]!)

/** Returns the anchors of headings as GitHub and GitLab do: one that is there already gets a number. */
export const createAnchors = () => {
  const counts = new Map<string, number>()
  return (heading: string): string => {
    const plain = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const anchor = plain.replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, '').replaceAll(' ', '-')
    const before = counts.get(anchor) ?? 0
    counts.set(anchor, before + 1)
    return before === 0 ? anchor : `${anchor}-${before}`
  }
}

/** Returns the words of tokens without their marks, for the search. */
const wordsOf = (tokens: readonly Token[] = []): string =>
  tokens
    .map((token): string => {
      if (token.type === 'table') {
        const { header, rows } = token as Tokens.Table
        return [header, ...rows].flatMap((row) => row.map(({ tokens: cell }) => wordsOf(cell))).join(' ')
      }
      if (token.type === 'list') return (token as Tokens.List).items.map((item) => wordsOf(item.tokens)).join(' ')
      if (token.type === 'html') return ''
      if ('tokens' in token && token.tokens) return wordsOf(token.tokens)
      return 'text' in token && typeof token.text === 'string' ? token.text : ' '
    })
    .join(' ')
    .replaceAll(/\s+/g, ' ')
    .trim()

// In the page of errors, each code has the id that `doc_url` of an error names.
const generatedTable = /<!-- (api|delivery|source) error codes: [^>]*-->(.*?)<!-- end -->/gs
const withRowIds = (html: string): string =>
  html.replaceAll(generatedTable, (_, name: string, table: string) =>
    table.replaceAll(/(?<=<tr>\n<td>)(?:<code>\w+<\/code>(?:, )?)+(?=<\/td>)/g, (codes) =>
      codes.replaceAll(/<code>(\w+)<\/code>/g, (code, word: string) => {
        const id = `${name === 'api' ? '' : `${name}-`}${word}`
        return `<a id="${id}" href="#${id}">${code}</a>`
      }),
    ),
  )

/** Returns a page of the documentation as HTML. Only files of this repository are rendered: their HTML is taken as it stands. */
export const renderPage = (path: string, markdown: string): RenderedPage => {
  const anchor = createAnchors()
  const sections: Section[] = []
  let title = path
  const marked = new Marked({
    gfm: true,
    renderer: {
      heading({ tokens, depth, text }) {
        const id = anchor(text)
        const inner = this.parser.parseInline(tokens)
        return `<h${depth} id="${id}">${inner}${depth === 1 ? '' : ` <a class="anchor" href="#${id}" aria-label="Link to this section">#</a>`}</h${depth}>\n`
      },
      link({ href, tokens }) {
        const inner = this.parser.parseInline(tokens)
        const address = addressOf(path, href)
        if (address === undefined)
          return `<span class="source" title="In the source code of the relay: ${escapeHtml(href)}">${inner}</span>`
        return `<a href="${escapeHtml(address)}">${inner}</a>`
      },
      image({ href, text }) {
        return `<img src="${escapeHtml(addressOf(path, href) ?? href)}" alt="${escapeHtml(text)}">`
      },
      table(token) {
        const cells = (row: Tokens.TableCell[], tag: string) =>
          row.map((cell) => `<${tag}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join('')
        const rows = token.rows.map((row) => `<tr>\n${cells(row, 'td')}\n</tr>`).join('\n')
        return `<div class="wide" tabindex="0" role="region" aria-label="Table"><table>\n<thead><tr>${cells(token.header, 'th')}</tr></thead>\n<tbody>\n${rows}\n</tbody></table></div>\n`
      },
    },
  })
  const tokens = marked.lexer(markdown)
  const sectionAnchor = createAnchors()
  for (const token of tokens) {
    if (token.type === 'heading') {
      const { depth, tokens: inner, text } = token as Tokens.Heading
      const heading = wordsOf(inner)
      const own = sectionAnchor(text)
      if (depth === 1) title = heading
      sections.push({ heading, anchor: depth === 1 ? '' : own, text: '' })
    } else {
      if (sections.length === 0) sections.push({ heading: title, anchor: '', text: '' })
      const section = sections.at(-1)!
      section.text = `${section.text} ${wordsOf([token])}`.trim()
    }
  }
  return { title, html: withRowIds(marked.parser(tokens)), sections }
}
