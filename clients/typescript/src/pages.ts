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

/**
 * Reads a list page by page, whether its pages have numbers or a cursor.
 * @param params the parameters of the first page, as in `relay.GET(path, { params })`
 * @throws RelayError
 */
export async function* pages<Path extends ListPath>(
  relay: RelayClient,
  path: Path,
  ...[params]: object extends ParametersOf<Path> ? [params?: ParametersOf<Path>] : [params: ParametersOf<Path>]
): AsyncGenerator<AnswerOf<Path>, void, undefined> {
  const get = relay.GET as unknown as (path: string, init: object) => Promise<{ data?: Page; error?: unknown; response: Response }>
  let query: Query | undefined = { ...(params as { query?: Query } | undefined)?.query }
  while (query) {
    const page: Page = await unwrap(get(path, { params: { ...params, query } }))
    yield page as AnswerOf<Path>
    const next = nextOf(page, query)
    query = next && { ...query, ...next }
  }
}
