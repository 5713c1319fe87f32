import { readFileSync } from 'node:fs'
import { errorTables } from '../src/api/open-api/error-tables.ts'
import { markdownTable, withGenerated } from './generated-table.ts'

/** Returns docs/errors.md with its tables of codes. The relay serves it at `/docs/errors`, with an anchor for each code. */
export const errorsPage = (): string => {
  const { api, delivery, source } = errorTables()
  const tableOf = ({ header, rows }: typeof api) => {
    const alike = [...Map.groupBy(rows, ([, cells]) => cells.join(' | ')).values()]
    const codesOf = (group: typeof rows) => group.map(([code]) => `\`${code}\``).join(', ')
    return `\n${markdownTable(
      header,
      alike.map((group) => [codesOf(group), ...group[0]![1]]),
    )}`
  }
  const page = readFileSync(new URL('errors.md', import.meta.url), 'utf8')
  return Object.entries({ 'api error codes': api, 'delivery error codes': delivery, 'source error codes': source }).reduce(
    (text, [name, table]) => withGenerated(text, name, tableOf(table)),
    page,
  )
}
