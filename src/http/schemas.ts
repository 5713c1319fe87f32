import { z } from 'zod'
import { isId } from '../ids.ts'

const nameMaxCharacters = 200
const perPageMax = 100
const perPageDefault = 25

/** An id in a path. What cannot be one is answered like one that names nothing. */
export const idParams = z.object({ id: z.string().refine(isId).describe('The id of the resource') })

export const name = z.string().max(nameMaxCharacters).regex(/\S/, 'must not be empty').describe('What people call it')

/** Of repositories, certificates, and of connections where the other side shows them. */
export const activity = z.enum(['active', 'inactive'])

/** A JSON object whose keys are somebody else's business. */
export const openObject = z.record(z.string(), z.unknown())

/** ISO 8601 on the wire, a Date inside. */
export const timestamp = z.codec(z.iso.datetime({ offset: true }), z.date(), {
  decode: (text) => new Date(text),
  encode: (date) => date.toISOString(),
})

const moment = z.union([z.iso.datetime({ offset: true }), z.iso.date()], {
  error: 'must be an ISO 8601 time with its zone, like 2026-11-21T09:00:00Z, or a date',
})
const isDate = (text: string) => text.length === 'yyyy-mm-dd'.length
const lastOfDay = 86_400_000 - 1

/** The beginning of a range. A mere date means its first moment, in UTC. */
export const dateFrom = moment
  .transform((text) => new Date(text))
  .optional()
  .describe('From here on; a mere date means its first moment, in UTC')

/** The inclusive end of a range. A mere date means its last moment, in UTC. */
export const dateTo = moment
  .transform((text) => new Date(new Date(text).getTime() + (isDate(text) ? lastOfDay : 0)))
  .optional()
  .describe('Up to and with here; a mere date means its last moment, in UTC')

const perPageField = z.coerce.number().int().min(1).max(perPageMax).default(perPageDefault).describe('Rows to a page')

export const pageQuery = z.strictObject({
  page: z.coerce.number().int().min(1).default(1).describe('Which page, from 1'),
  per_page: perPageField,
})

/** For what only grows: the rows before an id, newest first. */
export const cursorQuery = z.strictObject({
  before: z
    .string()
    .refine(isId, 'must be the id of a row, as next_cursor gives it')
    .optional()
    .describe('The rows before this one: next_cursor of the page before'),
  per_page: perPageField,
})

export const resource = <Type extends string, Attributes extends z.ZodObject>(type: Type, attributes: Attributes) =>
  z.object({ id: z.string(), type: z.literal(type), attributes })

export const one = <Item extends z.ZodType>(item: Item) => z.object({ data: item })

export const pageOfMany = <Item extends z.ZodType>(item: Item) =>
  z.object({
    data: z.array(item),
    meta: z.object({ current_page: z.int(), per_page: z.int(), total: z.int() }),
  })

export const cursorPageOf = <Item extends z.ZodType>(item: Item) =>
  z.object({ data: z.array(item), meta: z.object({ per_page: z.int(), next_cursor: z.string().nullable() }) })

/** The answer to a list by cursor: rows newest first, each as a resource of this type. */
export const toCursorPage = <Type extends string, Row extends { id: string }, Attributes>(
  { items, nextCursor }: { items: Row[]; nextCursor: string | null },
  { perPage }: { perPage: number },
  present: (row: Row) => { id: string; type: Type; attributes: Attributes },
) => ({ data: items.map(present), meta: { perPage, nextCursor } })

/** The answer to a list: a page of rows, each as a resource of this type. */
export const toPage = <Type extends string, Row extends { id: string }, Attributes>(
  { items, total }: { items: Row[]; total: number },
  { page, perPage }: { page: number; perPage: number },
  present: (row: Row) => { id: string; type: Type; attributes: Attributes },
) => ({ data: items.map(present), meta: { currentPage: page, perPage, total } })

/** Presents rows as resources; the response's schema picks the attributes it names. */
export const resourceOf =
  <Type extends string>(type: Type) =>
  <Row extends { id: string }>(row: Row) => ({ id: row.id, type, attributes: row })
