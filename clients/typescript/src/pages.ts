import { unwrap } from './error.ts'
import type { RelayClient } from './index.ts'
import type { paths } from './schema.ts'

type AnswerOf<Path extends keyof paths> = paths[Path] extends {
  get: { responses: { 200: { content: { 'application/json': infer Body } } } }
}
  ? Body
  : never

/** The paths of lists. */
export type ListPath = {
  [Path in keyof paths]: [AnswerOf<Path>] extends [never] ? never : AnswerOf<Path> extends { data: readonly unknown[] } ? Path : never
}[keyof paths]

type ParametersOf<Path extends ListPath> = paths[Path] extends { get: { parameters: infer Parameters } }
  ? Pick<Parameters, Extract<keyof Parameters, 'path' | 'query'>>
  : never

/** What lists have in common. */
interface Page {
  data: unknown[]
  meta?: { current_page?: number; per_page?: number; total?: number; next_cursor?: string | null; has_more?: boolean }
}

type Query = Record<string, unknown>

/** Returns the query parameter that leads to the next page, if there is one. */
const nextOf = ({ meta = {} }: Page, query: Query): Query | undefined => {
  const { current_page: page, per_page: perPage, total, next_cursor: cursor, has_more: hasMore } = meta
  // Events always have a cursor, with which a reader goes on later.
  if (hasMore !== undefined) return hasMore ? { after: cursor } : undefined
  if (typeof cursor === 'string') return { [query['after'] === undefined ? 'before' : 'after']: cursor }
  if (page === undefined || perPage === undefined || total === undefined) return undefined
  return page * perPage < total ? { page: page + 1 } : undefined
}

/** Rows that are remembered. Those that come again are near each other. */
const rememberedMax = 10_000

const idOf = (row: unknown): string | undefined =>
  typeof row === 'object' && row !== null && 'id' in row && typeof row.id === 'string' ? row.id : undefined

/** Remembers which rows have been read. */
const createMemory = () => {
  const ids = new Set<string>()
  let isComplete = true
  return {
    /** Returns the rows that have not been read before. */
    unread: (rows: readonly unknown[]): unknown[] =>
      rows.filter((row) => {
        const id = idOf(row)
        if (id === undefined) {
          isComplete = false
          return true
        }
        const isNew = !ids.delete(id)
        ids.add(id)
        return isNew
      }),
    forget: () => {
      for (const id of ids) {
        if (ids.size <= rememberedMax) return
        ids.delete(id)
      }
    },
    /** False if a row has no id: what is read again could not be told from what is new. */
    isComplete: () => isComplete,
  }
}

/** Returns the number of the page to read again, if rows that have left the list have moved others to pages that were read. */
const movedTo = ({ meta = {} }: Page, totalBefore: number | undefined): number | undefined => {
  const { current_page: page, per_page: perPage, total } = meta
  if (page === undefined || perPage === undefined || total === undefined || totalBefore === undefined) return undefined
  if (total >= totalBefore || page === 1) return undefined
  return Math.max(1, page - Math.ceil((totalBefore - total) / perPage))
}

/**
 * Reads a list page by page, whether its pages have numbers or a cursor. If rows leave the list while it is read, because the loop changes
 * them for example, no other row is left out: what has moved to an earlier page is read there. A row that comes again, because others have been
 * added before it, is left out.
 * @param params the parameters of the first page, as in `relay.GET(path, { params })`
 * @throws RelayError
 */
export async function* pages<Path extends ListPath>(
  relay: RelayClient,
  path: Path,
  ...[params]: object extends ParametersOf<Path> ? [params?: ParametersOf<Path>] : [params: ParametersOf<Path>]
): AsyncGenerator<AnswerOf<Path>, void, undefined> {
  const get = relay.GET as unknown as (path: string, init: object) => Promise<{ data?: Page; error?: unknown; response: Response }>
  const memory = createMemory()
  let query: Query | undefined = { ...(params as { query?: Query } | undefined)?.query }
  let total: number | undefined
  let isFirst = true
  while (query) {
    const page: Page = await unwrap(get(path, { params: { ...params, query } }))
    const moved = memory.isComplete() ? movedTo(page, total) : undefined
    total = page.meta?.total
    if (moved !== undefined) {
      query = { ...query, page: moved }
      continue
    }
    const data = memory.unread(page.data)
    memory.forget()
    if (isFirst || data.length > 0) yield { ...page, data } as AnswerOf<Path>
    isFirst = false
    const next = nextOf(page, query)
    query = next && { ...query, ...next }
  }
}
