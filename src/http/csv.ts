import { once } from 'node:events'
import { addAbortSignal, pipeline, Readable } from 'node:stream'
import { createGzip } from 'node:zlib'
import { stringify } from 'csv-stringify'
import type Koa from 'koa'

/** What an endpoint answers whose response is `csv`. */
export interface CsvExport {
  fileName: string
  /** The first line. */
  columns: readonly string[]
  /** The cells of the others, read as the client takes them. */
  rows: () => AsyncIterable<readonly string[]>
  timeoutMs: number
}

// what a spreadsheet may take for a formula, also behind what it strips: quotes and blanks
const formula = /^[\s"']*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r]/u

/** An apostrophe makes a cell text. */
const harmless = (cell: string) => (formula.test(cell) ? `'${cell}` : cell)

/** A table as RFC 4180 has it, in UTF-8. */
const toCsv = (columns: readonly string[]) =>
  stringify({ header: true, columns: [...columns], cast: { string: harmless }, record_delimiter: '\r\n', quote_record_delimiter: true })

/** Answers with a table that is made while it is sent, compressed if the client asks for it. */
export const answerCsv = async (context: Koa.Context, { fileName, columns, rows, timeoutMs }: CsvExport): Promise<void> => {
  const compressed = context.acceptsEncodings('gzip', 'identity') === 'gzip'
  // Koa sends no body to a HEAD, and would leave the stream open
  if (context.method !== 'HEAD') {
    const source = addAbortSignal(AbortSignal.timeout(timeoutMs), Readable.from(rows()))
    const streams = [source, toCsv(columns), ...(compressed ? [createGzip()] : [])] as const
    // each ends with the others: the client's leaving reaches the database, a failure there the client
    const answer = pipeline([...streams], () => {}) as unknown as Readable
    // a database that is away shall be answered as such, and not by an answer that breaks off
    await once(answer, 'readable')
    context.body = answer
  }
  context.attachment(fileName)
  context.set('content-type', 'text/csv; charset=utf-8')
  context.set('x-content-type-options', 'nosniff')
  context.vary('accept-encoding')
  if (compressed) context.set('content-encoding', 'gzip')
}
