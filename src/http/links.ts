import type Koa from 'koa'
import { z } from 'zod'

const page = z.object({ meta: z.object({ current_page: z.int(), per_page: z.int(), total: z.int() }) })
const cursor = z.object({ meta: z.object({ next_cursor: z.string().nullable() }) })

/** Where each relation of a list leads, as what changes in its query. */
const relationsOf = (body: unknown): [relation: string, change: Record<string, string>][] => {
  const byCursor = cursor.safeParse(body).data?.meta
  if (byCursor) return byCursor.next_cursor === null ? [] : [['next', { before: byCursor.next_cursor }]]
  const byPage = page.safeParse(body).data?.meta
  if (!byPage) return []
  const last = Math.max(1, Math.ceil(byPage.total / byPage.per_page))
  const current = byPage.current_page
  const pages: [string, number][] = [
    ['first', 1],
    // from beyond the end, back to what is there
    ...(current > 1 ? [['prev', Math.min(current - 1, last)] as [string, number]] : []),
    ...(current < last ? [['next', current + 1] as [string, number]] : []),
    ['last', last],
  ]
  return pages.map(([relation, number]) => [relation, { page: String(number) }])
}

/**
 * RFC 8288: a list says where its other pages are, with the same filters. Relative references, which a client resolves against the address
 * it asked: right behind any proxy.
 */
export const setLinks = (context: Koa.Context): void => {
  const links = relationsOf(context.body).map(([relation, change]) => {
    const query = new URLSearchParams(context.querystring)
    for (const [name, value] of Object.entries(change)) query.set(name, value)
    return `<?${query.toString()}>; rel="${relation}"`
  })
  if (links.length > 0) context.set('link', links.join(', '))
}
