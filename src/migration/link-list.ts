import { isUtf8 } from 'node:buffer'
import { UserError } from '../base/errors.ts'
import { plainValue } from '../base/text.ts'
import { formats } from '../content-server/parameters.ts'
import { metadataMaxCharacters } from '../domain/template.ts'
import { linesOf } from './lines.ts'

/** A row of a link table: the source system holds a document for a business object, or for a bar code. */
export interface LinkRow {
  /** Number of the row in its file, from 1. */
  line: number
  /** Null if the list has no column for it. */
  repoId: string | null
  docId: string
  objectType: string | null
  objectId: string | null
  arObject: string | null
  /** `YYYY-MM-DD` */
  archivedOn: string | null
  /** Bar code of a document that waits for its business object (BDS_BAR_EX). */
  barcode: string | null
}

/**
 * Names of the columns in TOA01 to TOA03, TOAHR and tables of their shape, then in BDS_BAR_EX, then in the tables of the Knowledge Provider, which
 * lists the documents of DMS, GOS and CRM by their physical objects (SOFFPHIO, DMS_PH_CD1, BDSPHIO22, ...). The first that a list has counts.
 */
const columnNames = {
  docId: ['ARC_DOC_ID', 'EX_DOC_ID', 'PHIO_ID'],
  repoId: ['ARCHIV_ID', 'CONTREP', 'CREP_ID'],
  objectType: ['SAP_OBJECT'],
  objectId: ['OBJECT_ID'],
  arObject: ['AR_OBJECT'],
  archivedOn: ['AR_DATE', 'ARDATE'],
  barcode: ['BARCODE'],
} as const

type Column = keyof typeof columnNames
interface Header {
  separator: string
  width: number
  positions: Partial<Record<Column, number>>
}

const separators = ['|', '\t', ';', ',']
// What an export writes above the names of the columns: the table, the user, the number of rows.
const maxLinesBeforeHeader = 100
const maxLineBytes = 64 * 1024
const tooLong = () => new UserError('The list has a line of more than 64 KiB: it is no export of a table.')

/**
 * Reads an export of a link table, as the data browser of the source system (SE16) writes it: columns by their technical names, separated by
 * bars, tabs, semicolons or commas. Lines of the export that are no rows are left out: titles, rules, and the repeated header of a page.
 * @throws `UserError` if there is no header or a line of more than 64 KiB, or with the line if a row has no document id or is no text
 */
export async function* readLinkList(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<LinkRow, void, undefined> {
  let header: Header | undefined
  let line = 0
  for await (const lineBytes of linesOf(withoutUtf16(bytes), maxLineBytes, tooLong)) {
    const text = textOf(lineBytes)
    line += 1
    if (text.includes('\0')) throw new UserError(`Line ${line} of the list has a NUL character: it is no export of a table.`)
    const found = findHeader(text)
    if (found) header = found
    else if (header) {
      const cells = cellsOf(text, header.separator)
      if (isRule(text) || cells.length < Math.min(2, header.width)) continue
      yield rowOf(cells, header, line)
    } else if (line > maxLinesBeforeHeader) break
  }
  if (!header) {
    throw new UserError(
      `The list has no header with a column ${columnNames.docId.slice(0, -1).join(', ')} or ${columnNames.docId.at(-1)}: export the table with the technical names of its columns.`,
    )
  }
}

const isRule = (text: string): boolean => /^[|+\-\s]*$/.test(text)

const findHeader = (text: string): Header | undefined => {
  const columns = Object.keys(columnNames) as Column[]
  const headers = separators.map((separator) => {
    const names = cellsOf(text, separator).map((cell) => cell.toUpperCase())
    const positionOf = (column: Column) => columnNames[column].map((name) => names.indexOf(name)).find((at) => at !== -1) ?? -1
    const found = columns.map((column) => [column, positionOf(column)] as const)
    return { separator, width: names.length, positions: Object.fromEntries(found.filter(([, at]) => at !== -1)) as Header['positions'] }
  })
  return headers.filter(({ positions }) => positions.docId !== undefined).toSorted((one, other) => other.width - one.width)[0]
}

/** Splits a line. A line of a table with bars begins and ends with one. A cell in quotation marks may contain the separator. */
const cellsOf = (text: string, separator: string): string[] => {
  const line = separator === '|' ? text.trim().replace(/^\||\|$/g, '') : text
  const cells: string[] = []
  for (let at = 0; at <= line.length;) {
    const quoted = line[at] === '"' ? /"((?:[^"]|"")*)"/y : undefined
    if (quoted) quoted.lastIndex = at
    const match = quoted?.exec(line)
    const end = line.indexOf(separator, match ? quoted!.lastIndex : at)
    const stop = end === -1 ? line.length : end
    cells.push(match ? match[1]!.replaceAll('""', '"').trim() : line.slice(at, stop).trim())
    at = stop + 1
  }
  return cells
}

const rowOf = (cells: string[], { positions }: Header, line: number): LinkRow => {
  const cell = (column: Column): string | null => cells[positions[column] ?? -1] || null
  const text = (column: Column) => plainValue(cell(column) ?? '', metadataMaxCharacters) || null
  const docId = cell('docId')
  if (docId === null) throw new UserError(`Line ${line} of the list has no document id.`)
  if (!formats.docId.accepts(docId))
    throw new UserError(`Line ${line} of the list has the document id ${docId}, which no document can have.`)
  return {
    line,
    repoId: text('repoId'),
    docId,
    objectType: text('objectType'),
    objectId: text('objectId'),
    arObject: text('arObject'),
    archivedOn: dateOf(cell('archivedOn')),
    barcode: text('barcode'),
  }
}

/** Reads a date in the forms that a user of the source system can choose. @returns null for the initial date, or if it is none of them */
const dateOf = (text: string | null): string | null => {
  const forms = [
    /^(?<y>\d{4})[-./]?(?<m>\d\d)[-./]?(?<d>\d\d)$/,
    /^(?<d>\d\d)\.(?<m>\d\d)\.(?<y>\d{4})$/,
    /^(?<m>\d\d)[-/](?<d>\d\d)[-/](?<y>\d{4})$/,
  ]
  const groups = forms.map((form) => form.exec(text ?? '')?.groups).find(Boolean)
  if (!groups) return null
  const date = `${groups['y']}-${groups['m']}-${groups['d']}`
  // Date.parse reads the 30th of February as a day of March. PostgreSQL has no year 0.
  const time = new Date(`${date}T00:00:00Z`)
  const exists = !Number.isNaN(time.getTime()) && time.toISOString().startsWith(date) && !date.startsWith('0000')
  return exists ? date : null
}

/** Reads a line. A line that is not UTF-8 is ISO 8859-1, as systems without Unicode write it. */
const textOf = (line: Buffer): string => line.toString(isUtf8(line) ? 'utf8' : 'latin1').replace(/^\uFEFF|\r?\n$|\r$/g, '')

/** Converts UTF-16, which is known by its mark, to UTF-8, and passes everything else on. */
async function* withoutUtf16(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer, void, undefined> {
  let decoder: InstanceType<typeof TextDecoder> | undefined
  let isFirst = true
  for await (const chunk of bytes) {
    if (isFirst && chunk[0] === 0xff && chunk[1] === 0xfe) decoder = new TextDecoder('utf-16le')
    if (isFirst && chunk[0] === 0xfe && chunk[1] === 0xff) decoder = new TextDecoder('utf-16be')
    isFirst = false
    yield decoder ? Buffer.from(decoder.decode(chunk, { stream: true })) : Buffer.from(chunk)
  }
  if (decoder) yield Buffer.from(decoder.decode())
}
