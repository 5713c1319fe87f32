import { once } from 'node:events'
import { addAbortSignal, pipeline, Readable } from 'node:stream'
import { createGzip } from 'node:zlib'
import { stringify } from 'csv-stringify'
import type Koa from 'koa'
import { AppError } from '../base/errors.ts'
import { plainText } from '../base/text.ts'
import { sendableContentType } from '../domain/content-type.ts'

/** The answer of an endpoint whose response is `bytes`. */
export interface Download {
  contentType: string
  fileName: string
  sizeBytes: number
  open: (range?: Range) => Readable
  /** Identifies the bytes. Only a download with an etag can be read in ranges. */
  etag?: string
}

/** The answer of an endpoint whose response is `csv`. */
export interface CsvExport {
  fileName: string
  /** The header row. */
  columns: readonly string[]
  /** Returns the cells of the other rows; they are read while the client receives them. */
  rows: () => AsyncIterable<readonly string[]>
  /** Separator of a spreadsheet that the table is for. Programs read it without. */
  spreadsheet?: Separator | undefined
  timeoutMs: number
  /** A client that reads fewer bytes than this, in the time spent waiting for it, is disconnected. */
  slowest: ReadingRate
}

interface ReadingRate {
  bytes: number
  waitMs: number
}

/**
 * Returns the name of an attachment: on one line, without invisible characters, and with a low line for each separator of folders, before which the
 * library would cut it.
 */
export const attachmentName = (fileName: string): string => plainText(fileName).replaceAll(/[/\\]/g, '_')

/**
 * Sends stored bytes as an attachment, or a range of them.
 * @throws AppError 416 if the range begins behind the last byte
 */
export const answerBytes = async (context: Koa.Context, { contentType, fileName, sizeBytes, open, etag }: Download) => {
  const range = etag === undefined ? undefined : readRange(context, sizeBytes, etag)
  // Koa sends no body for HEAD and would leave the stream open.
  if (context.method !== 'HEAD') {
    const stream = open(range)
    // Wait for the first bytes: a store that is down then causes an error response instead of a truncated body.
    await once(stream, 'readable')
    context.body = stream
  }
  // An attachment is never rendered in the browser under the relay's origin, whatever the source system sent.
  context.attachment(attachmentName(fileName))
  context.set('content-type', sendableContentType(contentType))
  context.set('x-content-type-options', 'nosniff')
  // Content is sent as it was received, even if its type is JSON.
  context['compress'] = false
  context.length = range ? range.end - range.start + 1 : sizeBytes
  if (etag !== undefined) context.set({ 'accept-ranges': 'bytes', etag })
  if (!range) return
  context.status = 206
  context.set('content-range', `bytes ${range.start}-${range.end}/${sizeBytes}`)
}

const readRange = (context: Koa.Context, sizeBytes: number, etag: string): Range | undefined => {
  // A range of other bytes than the client has already would not fit them. Only GET has ranges.
  const condition = context.get('if-range')
  if (context.method !== 'GET' || (condition !== '' && condition !== etag)) return undefined
  const range = parseRange(context.get('range'), sizeBytes)
  if (range !== 'unsatisfiable') return range
  context.set({ 'accept-ranges': 'bytes', 'content-range': `bytes */${sizeBytes}` })
  throw new AppError('range_not_satisfiable', `The range begins behind the last of ${sizeBytes} bytes.`)
}

// Text that a spreadsheet may run as a formula, including after the quotes and spaces that it strips.
const formula = /^[\s"']*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r]/u

/** Prefixes a possible formula with an apostrophe, so that a spreadsheet treats the cell as text. */
const withoutFormula = (cell: string) => (formula.test(cell) ? `'${cell}` : cell)

/** Separators that spreadsheets expect. */
const separators = { comma: ',', semicolon: ';' } as const

export type Separator = keyof typeof separators

export const separatorNames = Object.keys(separators) as [Separator, ...Separator[]]

/**
 * Returns the options of CSV (RFC 4180) in UTF-8. Without a byte-order mark, Excel reads another encoding, and it separates cells by what separates lists
 * in the language of Windows: a semicolon where the decimal sign is a comma.
 * @param spreadsheet the separator for a spreadsheet; undefined for programs
 */
export const csvOptions = (columns: readonly string[], spreadsheet?: Separator) => ({
  header: true,
  columns: [...columns],
  cast: { string: withoutFormula },
  record_delimiter: '\r\n',
  quote_record_delimiter: true,
  bom: spreadsheet !== undefined,
  delimiter: separators[spreadsheet ?? 'comma'],
})

/** Returns a stream of the same bytes. It fails if its reader is slower than `slowest`. The time that the source needs does not count. */
const cutSlowReader = (source: Readable, slowest: ReadingRate): Readable => {
  let body: Readable
  async function* pass(): AsyncGenerator<Buffer, void, undefined> {
    let waitedMs = 0
    let readBytes = 0
    for await (const chunk of source as AsyncIterable<Buffer>) {
      const startedAt = performance.now()
      const timer = setTimeout(() => body.destroy(new Error('the client reads too slowly')), slowest.waitMs - waitedMs)
      try {
        yield chunk
      } finally {
        clearTimeout(timer)
      }
      waitedMs += performance.now() - startedAt
      readBytes += chunk.length
      if (readBytes < slowest.bytes) continue
      waitedMs = 0
      readBytes = 0
    }
  }
  body = Readable.from(pass(), { objectMode: false })
  return body
}

/** Streams a table as a CSV attachment, compressed if the client accepts gzip. */
export const answerCsv = async (
  context: Koa.Context,
  { fileName, columns, rows, spreadsheet, timeoutMs, slowest }: CsvExport,
): Promise<void> => {
  const isCompressed = context.acceptsEncodings('gzip', 'identity') === 'gzip'
  // Koa sends no body for HEAD and would leave the stream open.
  if (context.method !== 'HEAD') {
    const source = addAbortSignal(AbortSignal.timeout(timeoutMs), Readable.from(rows()))
    const streams = [source, stringify(csvOptions(columns, spreadsheet)), ...(isCompressed ? [createGzip()] : [])] as const
    // pipeline() ends all streams together: a client that disconnects ends the database cursor, and a database error
    // ends the response.
    const formatted = pipeline([...streams], () => {}) as unknown as Readable
    const body = cutSlowReader(formatted, slowest)
    // Wait for the first bytes: a database that is down then causes an error response instead of a truncated body.
    await once(body, 'readable')
    context.body = body
  }
  context.attachment(fileName)
  context.set('content-type', 'text/csv; charset=utf-8')
  context.set('x-content-type-options', 'nosniff')
  context.vary('accept-encoding')
  if (isCompressed) context.set('content-encoding', 'gzip')
}

/** A range of bytes that a request asks for; both ends are inclusive. */
export interface Range {
  start: number
  end: number
}

/**
 * Reads the header `Range` (RFC 9110, section 14) for a representation of `sizeBytes`.
 * @returns undefined if the whole is to be sent: for no range, several ranges, another unit or malformed text, which a server ignores
 */
export const parseRange = (header: string, sizeBytes: number): Range | 'unsatisfiable' | undefined => {
  const [, first, last] = /^bytes\s*=\s*(\d{0,15})\s*-\s*(\d{0,15})\s*$/i.exec(header) ?? []
  if (first === undefined || last === undefined || (first === '' && last === '')) return undefined
  const range =
    first === ''
      ? { start: Math.max(sizeBytes - Number(last), 0), end: sizeBytes - 1 }
      : { start: Number(first), end: last === '' ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1) }
  if (last !== '' && first !== '' && Number(last) < Number(first)) return undefined
  return range.start <= range.end ? range : 'unsatisfiable'
}
