import { call, type Schemas } from '../api.ts'
import { businessObjectOf } from '../business-object.ts'
import { formatBytes } from '../format.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { locale, inLanguage, texts } from '../preferences.ts'
import { addressOf, route } from '../router.ts'
import * as documentsCatalogue from '../texts/documents.ts'
import { ConnectionField, DestinationField, RepositoryField } from '../ui/choice-fields.ts'
import { DateField, FilterBar, filtersOf, SearchField, SelectField, type Filters } from '../ui/filters.ts'
import { Badge, CursorPager, Heading, Loaded, Pager, Table, Time, toneOf } from '../ui/parts.ts'

const documentsWords = inLanguage(documentsCatalogue)

type DocumentList = Schemas['DocumentList']
type Document = DocumentList['data'][number]

const perPage = 25
const filterNames = [
  'q',
  'status',
  'repo_id',
  'destination_id',
  'connection_id',
  'delivery_status',
  'error_code',
  'date_from',
  'date_to',
  'acknowledged',
] as const
// With one of them, the list is a search: it has a cursor instead of page numbers and a total.
const searchNames = ['q', 'destination_id', 'connection_id', 'delivery_status', 'error_code'] as const
type DocumentFilters = Filters<(typeof filterNames)[number]>

const pageOf = (query: URLSearchParams) => Math.max(1, Math.trunc(Number(query.get('page') ?? 1)) || 1)

const Filter = ({ filters: { values, change } }: { filters: DocumentFilters }) => {
  const words = documentsWords()
  const { documentStatus, deliveryStatus, common } = texts()
  const field = (name: (typeof filterNames)[number]) => ({ value: values[name], onChange: (value: string) => change({ [name]: value }) })
  return html`<${FilterBar} path="documents" isFiltered=${Object.keys(values).length > 0}>
    <${SearchField} label=${words.search} placeholder=${words.searchHint} ...${field('q')} />
    <${SelectField} label=${words.status} ...${field('status')} options=${Object.entries(documentStatus)} />
    <${RepositoryField} label=${words.repository} ...${field('repo_id')} />
    <${DestinationField} label=${words.destination} ...${field('destination_id')} />
    <${ConnectionField} label=${words.connection} ...${field('connection_id')} />
    <${SelectField} label=${words.deliveryStatus} ...${field('delivery_status')} options=${Object.entries(deliveryStatus)} />
    ${
      // Links lead here with it. Nobody types a code.
      values.error_code !== undefined &&
      html`<${SelectField} label=${words.errorCode} ...${field('error_code')} options=${[[values.error_code, values.error_code]]} />`
    }
    <${DateField} label=${words.from} ...${field('date_from')} />
    <${DateField} label=${words.to} ...${field('date_to')} />
    <${SelectField}
      label=${words.acknowledged}
      ...${field('acknowledged')}
      options=${[
        ['true', common.yes],
        ['false', common.no],
      ]}
    />
  </${FilterBar}>`
}

const Deliveries = ({ deliveries }: { deliveries: Document['attributes']['deliveries'] }) => {
  const words = documentsWords()
  const { deliveryStatus } = texts()
  if (deliveries.length === 0) return html`<span class="quiet">${words.noDeliveries}</span>`
  return html`<ul class="chips">
    ${deliveries.map(
      ({ destination_id: id, destination_name: name, status }) =>
        html`<li key=${id} class=${`chip ${toneOf(status)}`}>
          <span class="dot" aria-hidden="true"></span>${name}<span class="visually-hidden">: ${deliveryStatus[status]}</span>
        </li>`,
    )}
  </ul>`
}

const Row = ({ document: { id, attributes } }: { document: Document }) => {
  const words = documentsWords()
  const { documentStatus } = texts()
  const object = attributes.metadata && businessObjectOf(attributes.metadata)
  const docId = html`<span class="mono">${attributes.doc_id}</span>`
  return html`<tr role="row">
    <td role="cell"><${Badge} status=${attributes.status} label=${documentStatus[attributes.status]} /></td>
    <td role="cell" class="main-cell">
      <a href=${`documents/${id}`}>${object ?? docId}</a>
      <span class="small">${object !== undefined && html`${docId} · `}${attributes.repo_id} · ${words.component(attributes.comp_id)}</span>
    </td>
    <td role="cell">${attributes.content_type || '–'} <span class="small">${formatBytes(attributes.size_bytes, locale())}</span></td>
    <td role="cell"><${Time} at=${attributes.received_at} /></td>
    <td role="cell"><${Deliveries} deliveries=${attributes.deliveries} /></td>
  </tr>`
}

export const DocumentsScreen = () => {
  const words = documentsWords()
  const { screens } = texts()
  const { query } = route.value
  const filters = filtersOf('documents', filterNames)
  const { values } = filters
  const page = pageOf(query)
  const before = query.get('before') ?? undefined
  const isSearch = searchNames.some((name) => values[name] !== undefined)
  const position = isSearch ? { before } : { page: String(page) }
  const address = addressOf('/documents', { ...values, ...position, include: 'metadata', per_page: String(perPage) })
  const live = useLive(address, (signal) => call<DocumentList>('GET', address, { signal }))

  return html`<${Heading} title=${screens.documents} />
    <${Filter} filters=${filters} />
    <${Loaded} live=${live}>
      ${() => {
        const { data, meta } = live.data!
        const more =
          isSearch &&
          html`<${CursorPager}
            first=${before && addressOf('documents', values)}
            next=${meta.next_cursor ? addressOf('documents', { ...values, before: meta.next_cursor }) : undefined}
          />`
        if (data.length === 0) {
          // A page of a search may be empty although others follow.
          if (meta.next_cursor) return more
          return html`<p class="empty">${Object.keys(values).length > 0 ? words.emptyFiltered : words.empty}</p>`
        }
        return html`<${Table}
            label=${screens.documents}
            columns=${[words.status, words.document, words.content, words.received, words.deliveries]}
          >
            ${data.map((document) => html`<${Row} key=${document.id} document=${document} />`)}
          </${Table}>
          ${
            more ||
            html`<${Pager}
              page=${page}
              perPage=${perPage}
              total=${meta.total ?? 0}
              addressOfPage=${(to: number) => addressOf('documents', { ...values, page: to === 1 ? undefined : String(to) })}
            />`
          }`
      }}
    </${Loaded}>`
}
