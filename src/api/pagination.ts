import type Koa from 'koa'
import { z } from 'zod'
import { idPattern } from '../base/ids.ts'
import type { PageRequest } from '../db/page.ts'
import { relayUrlOf } from '../http/input.ts'
import { named } from './schemas.ts'

const perPageMax = 100
const perPageDefault = 25
const pageMax = 1_000_000

/** The number of rows of an answer. It means the same on every list. */
export const perPage = z.coerce.number().int().min(1).max(perPageMax).default(perPageDefault).describe('The number of rows per page.')

/** The query of a list with numbered pages. */
export const pageQuery = z.strictObject({
  page: z.coerce.number().int().min(1).max(pageMax).default(1).describe('The page number, starting at 1.'),
  per_page: perPage,
})

/** The query of an append-only list, newest first, with a cursor instead of page numbers. */
export const cursorQuery = z.strictObject({
  before: z
    .string()
    .regex(idPattern, 'must be the id of a row, as in next_cursor')
    .optional()
    .describe('Only rows before this id. Pass `next_cursor` of the previous page.'),
  per_page: perPage,
})

/** The query of an append-only list that a reader can also follow. */
export const followQuery = cursorQuery.extend({
  after: z
    .string()
    .regex(idPattern, 'must be the id of a row')
    .optional()
    .describe(
      'Only rows after this id, oldest first. Pass the id of the last row that was read, or 00000000000000000000000000 to begin with the ' +
        'oldest. A row is found a minute after the time of its id. Not with `before`.',
    ),
})

/** A check of a query: a list is read in one direction. */
export const isOneWay: [check: (query: { before?: unknown; after?: unknown }) => boolean, refusal: { path: string[]; error: string }] = [
  ({ before, after }) => before === undefined || after === undefined,
  { path: ['after'], error: 'cannot be combined with before' },
]

const pageMeta = z.object({ current_page: z.int(), per_page: z.int(), total: z.int() }).meta({ id: 'PageMeta' })
const cursorMeta = z.object({ per_page: z.int(), next_cursor: z.string().nullable() }).meta({ id: 'CursorMeta' })

/** A list with `meta` only if a page of it was asked for. */
export const allOrPageOf = <Item extends z.ZodType>(item: Item) =>
  named(item, 'List', z.object({ data: z.array(item), meta: pageMeta.optional() }))

export const pageOfMany = <Item extends z.ZodType>(item: Item) => named(item, 'List', z.object({ data: z.array(item), meta: pageMeta }))

/** @param id the name of the page, if the item also has pages of another kind */
export const cursorPageOf = <Item extends z.ZodType>(item: Item, id?: string) => {
  const page = z.object({ data: z.array(item), meta: cursorMeta })
  return id === undefined ? named(item, 'List', page) : page.meta({ id })
}

type Present<Type extends string, Row, Attributes> = (row: Row) => { id: string; type: Type; attributes: Attributes }

/** The query of a list that is returned whole, unless a page of it is asked for. */
export const optionalPageQuery = z.strictObject({
  page: pageQuery.shape.page
    .unwrap()
    .optional()
    .describe('The page number, starting at 1. Without `page` and `per_page`, all rows are returned.'),
  per_page: perPage.unwrap().optional().describe('The number of rows per page. Without `page` and `per_page`, all rows are returned.'),
})

/** Returns the page that a query asks for, or undefined if it asks for all rows. */
export const pageOrAll = ({ page, perPage: size }: { page?: number | undefined; perPage?: number | undefined }): PageRequest | undefined =>
  page === undefined && size === undefined ? undefined : { page: page ?? 1, perPage: size ?? perPageDefault }

/** Returns a page of rows as a response, each row presented as a resource. */
export const toPage = <Type extends string, Row extends { id: string }, Attributes>(
  { items, total }: { items: Row[]; total: number },
  { page, perPage: size }: { page: number; perPage: number },
  present: Present<Type, Row, Attributes>,
) => ({ data: items.map(present), meta: { currentPage: page, perPage: size, total } })

/** Returns a page of an append-only list as a response, each row presented as a resource. */
export const toCursorPage = <Type extends string, Row extends { id: string }, Attributes>(
  { items, nextCursor }: { items: Row[]; nextCursor: string | null },
  { perPage: size }: { perPage: number },
  present: Present<Type, Row, Attributes>,
) => ({ data: items.map(present), meta: { perPage: size, nextCursor } })

const pageBody = z.object({ meta: pageMeta })
const cursorBody = z.object({ meta: cursorMeta })

/** Returns the link relations of a list, each with the query parameters that differ from the current request. */
const relationsOf = (body: unknown, isForwards: boolean): [relation: string, change: Record<string, string>][] => {
  const byCursor = cursorBody.safeParse(body).data?.meta
  if (byCursor) return byCursor.next_cursor === null ? [] : [['next', { [isForwards ? 'after' : 'before']: byCursor.next_cursor }]]
  const byPage = pageBody.safeParse(body).data?.meta
  if (!byPage) return []
  const last = Math.max(1, Math.ceil(byPage.total / byPage.per_page))
  const current = byPage.current_page
  const pages: [string, number][] = [
    ['first', 1],
    // For a page beyond the end, prev is the last page that exists.
    ...(current > 1 ? [['prev', Math.min(current - 1, last)] as [string, number]] : []),
    ...(current < last ? [['next', current + 1] as [string, number]] : []),
    ['last', last],
  ]
  return pages.map(([relation, number]) => [relation, { page: String(number) }])
}

/**
 * Sets the `Link` header (RFC 8288) of a list to its other pages, with the same filters, as absolute URLs.
 * @param baseUrl where clients reach the relay, if it differs from the host that they name
 */
export const setLinks = (context: Koa.Context, baseUrl: string | undefined): void => {
  const base = relayUrlOf(context, baseUrl)
  const links = relationsOf(context.body, 'after' in context.query).map(([relation, change]) => {
    const query = new URLSearchParams(context.querystring)
    for (const [name, value] of Object.entries(change)) query.set(name, value)
    return `<${base}${context.path}?${query.toString()}>; rel="${relation}"`
  })
  if (links.length > 0) context.append('link', links.join(', '))
}
