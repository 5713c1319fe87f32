import { readFileSync } from 'node:fs'
import { errorTables } from '../src/api/open-api/error-page.ts'
import { markdownTable, withGenerated } from './generated-table.ts'

/** Returns docs/errors.md with its tables of codes, which the page that the relay serves has as well. */
export const errorsPage = (): string => {
  const { api, delivery } = errorTables()
  const tableOf = ({ header, rows }: typeof api) =>
    `\n${markdownTable(
      header,
      rows.map(([code, cells]) => [`\`${code}\``, ...cells]),
    )}`
  const page = readFileSync(new URL('errors.md', import.meta.url), 'utf8')
  return Object.entries({ 'api error codes': api, 'delivery error codes': delivery }).reduce(
    (text, [name, table]) => withGenerated(text, name, tableOf(table)),
    page,
  )
}
