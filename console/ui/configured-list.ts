// The list of the objects of a kind that administrators configure.
import { call, may } from '../api.ts'
import { html, type Children } from '../html.ts'
import { useLive } from '../live.ts'
import { texts } from '../preferences.ts'
import { addressOf, pageOf, route } from '../router.ts'
import { Heading, Loaded, Pager, Table } from './parts.ts'

const perPage = 25

interface Props<Row, Context> {
  /** Name of the resource in the API. */
  resource: string
  /** Name of the screen. */
  list: 'enrichments' | 'notifications' | 'subscriptions'
  words: { create: string; intro: string; empty: string }
  columns: readonly string[]
  /** Loads the names of what the rows refer to. */
  loadContext: (signal: AbortSignal) => Promise<Context>
  /** Returns the cells of a row after the first one, which is its name. */
  cells: (attributes: Row, context: Context) => Children
}

interface Listed<Attributes> {
  data: { id: string; attributes: Attributes }[]
  meta: { total: number }
}

export const ConfiguredList = <Row extends { name: string }, Context>({
  resource,
  list,
  words,
  columns,
  loadContext,
  cells,
}: Props<Row, Context>) => {
  const { screens } = texts()
  const page = pageOf(route.value.query)
  const live = useLive(`${list} ${page}`, (signal) =>
    Promise.all([call<Listed<Row>>('GET', `/${resource}`, { query: { page, per_page: perPage }, signal }), loadContext(signal)]),
  )
  return html`<${Heading} title=${screens[list]}>
      ${may('member') && html`<a class="button primary" href=${`${list}/new`}>${words.create}</a>`}
    </${Heading}>
    <p class="quiet">${words.intro}</p>
    <${Loaded} live=${live}>
      ${() => {
        const [{ data, meta }, context] = live.data!
        if (data.length === 0) return html`<p class="empty">${words.empty}</p>`
        return html`<${Table} label=${screens[list]} columns=${columns}>
            ${data.map(
              ({ id, attributes }) =>
                html`<tr key=${id} role="row">
                  <td role="cell" class="main-cell"><a href=${`${list}/${id}`}>${attributes.name}</a></td>
                  ${cells(attributes, context)}
                </tr>`,
            )}
          </${Table}>
          <${Pager}
            page=${page}
            perPage=${perPage}
            total=${meta.total}
            addressOfPage=${(to: number) => addressOf(list, { page: to === 1 ? undefined : String(to) })}
          />`
      }}
    </${Loaded}>`
}
