import { errorStatus, type ErrorCode } from '../../base/errors.ts'
import { actionFor, errorCodes, type Remedy } from '../../connectors/error-codes.ts'
import { refusals } from '../../domain/refusal-codes.ts'
import { errorGuide } from './error-guide.ts'

interface ErrorTable {
  /** Prefix of the code in the address of a row, because one code may be in several tables. */
  anchor: '' | 'delivery-' | 'source-'
  title: string
  about: string
  header: string[]
  /** Cells in Markdown, by code. */
  rows: [code: string, cells: string[]][]
}

const actors: Record<Remedy, string> = {
  credentials: 'a member of the workspace',
  permission: "the target's administrator",
  configuration: 'a member of the workspace',
  target: "the target's administrator",
  relay: 'the operator of the relay',
}

const retriedOf = (permanent: boolean | undefined) => (permanent === undefined ? 'depends on the case' : permanent ? 'no, final' : 'yes')

const apiErrors = (): ErrorTable => ({
  anchor: '',
  title: 'Errors of the API',
  about: 'In the answers of the API, the bridge, the console and download links.',
  header: ['code', 'status', 'what the caller does', 'what the operator does'],
  rows: Object.entries(errorGuide)
    .map(([code, { caller, operator }]): [code: string, status: number, cells: string[]] => {
      const status = code === 'internal_error' ? 500 : errorStatus[code as ErrorCode]
      return [code, status, [String(status), caller, operator]]
    })
    .toSorted(([, one], [, other]) => one - other)
    .map(([code, , cells]) => [code, cells]),
})

const deliveryErrors = (): ErrorTable => ({
  anchor: 'delivery-',
  title: 'Errors of deliveries',
  about: 'In `last_error` of a delivery, and in `error` of an attempt.',
  header: ['code', 'retried', 'who acts', 'what to do before retrying the document'],
  rows: Object.entries<{ permanent?: boolean; remedy: Remedy }>(errorCodes).map(([code, { permanent, remedy }]) => [
    code,
    [retriedOf(permanent), actors[remedy], actionFor(code, '*NAME*')],
  ]),
})

const sourceErrors = (): ErrorTable => ({
  anchor: 'source-',
  title: 'Errors of the content server protocol',
  about: 'In the header `X-ErrorDescription` of an answer to the source system, and in `error_code` of a captured request.',
  header: ['code', 'status', 'what to do'],
  rows: Object.entries(refusals).map(([code, { status, remedy }]) => [code, [String(status), remedy]]),
})

/** Returns the tables of all error codes, for docs/errors.md and for the page that the relay serves. */
export const errorTables = (): Record<'api' | 'delivery' | 'source', ErrorTable> => ({
  api: apiErrors(),
  delivery: deliveryErrors(),
  source: sourceErrors(),
})

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const escape = (text: string) => text.replaceAll(/[&<>"]/g, (character) => entities[character]!)

/** Converts the Markdown of a cell to HTML. The pages that it links to are not installed with the relay, so the text of the link remains. */
const toHtml = (markdown: string): string =>
  escape(markdown)
    .replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1')
    .replaceAll(/`([^`]+)`/g, '<code>$1</code>')
    .replaceAll(/\*([^*]+)\*/g, '<em>$1</em>')

const sectionOf = ({ anchor, title, about, header, rows }: ErrorTable): string => `
    <h2>${title}</h2>
    <p>${toHtml(about)}</p>
    <div class="wide" tabindex="0" role="region" aria-label="${title}">
      <table>
        <thead><tr>${header.map((cell) => `<th scope="col">${cell}</th>`).join('')}</tr></thead>
        <tbody>
${rows
  .map(([code, cells]) => {
    const id = `${anchor}${code}`
    const own = `<th scope="row"><a href="#${id}"><code>${code}</code></a></th>`
    return `          <tr id="${id}">${own}${cells.map((cell, index) => `<td data-label="${header[index + 1]}">${toHtml(cell)}</td>`).join('')}</tr>`
  })
  .join('\n')}
        </tbody>
      </table>
    </div>`

/** Returns the page to which `doc_url` of an error leads: a row for each code. */
export const errorPageHtml = (): string => `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Errors of Document Relay</title>
    <link rel="icon" type="image/png" href="favicon-32x32.png">
    <link rel="stylesheet" href="errors.css">
  </head>
  <body>
    <main>
    <h1>Errors</h1>
    <p>What each error code means for the one who reads it. <a href="../docs">The reference of the API</a></p>${Object.values(errorTables())
      .map(sectionOf)
      .join('')}
    </main>
  </body>
</html>
`

export const errorPageStyle = `:root { color-scheme: light dark; }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 1200px; margin: 0 auto; padding: 16px 20px 60px; }
table { border-collapse: collapse; width: 100%; }
.wide { overflow-x: auto; }
th, td { padding: 6px 12px 6px 0; text-align: start; vertical-align: top; border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
th[scope=row] { font-weight: normal; }
tr:target { background: color-mix(in srgb, gold 30%, transparent); }
@media (max-width: 640px) {
  thead { display: none; }
  tr, th, td { display: block; }
  th, td { padding: 2px 0; border: 0; }
  td::before { content: attr(data-label) ': '; opacity: 0.7; }
  tr { padding: 8px 0; border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
}
`
