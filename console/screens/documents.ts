import { useState } from 'preact/hooks'
import { call, callRaw, may, toApiError, type ApiError, type Schemas } from '../api.ts'
import { businessObjectOf, businessPiecesOf } from '../business-object.ts'
import { formatBytes, repositoryText } from '../format.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { locale, inLanguage, texts } from '../preferences.ts'
import { addressOf, pageOf, route } from '../router.ts'
import * as documentsCatalogue from '../texts/documents.ts'
import { ConfirmBulkRetry } from '../ui/bulk-retry.ts'
import { ConnectionField, DestinationField, RepositoryField } from '../ui/choice-fields.ts'
import { DateField, FilterBar, filtersOf, SearchField, SelectField, type Filters } from '../ui/filters.ts'
import { Marked } from '../ui/marked.ts'
import { announce, Badge, CursorPager, ErrorText, Heading, Loaded, Mark, Pager, Table, Time, toneOf } from '../ui/parts.ts'

type DocumentList = Schemas['DocumentList']
type FoundDocuments = Schemas['DocumentSearchResult']
type Document = Schemas['Document']

/** A page with the total of the list, or with the cursor of the next page of a search. */
interface DocumentsPage {
  data: Document[]
  total?: number
  next?: string | null
}

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

const Filter = ({ filters: { values, change } }: { filters: DocumentFilters }) => {
  const words = inLanguage(documentsCatalogue)
  const { documentStatus, deliveryStatus, common } = texts()
  const field = (name: (typeof filterNames)[number]) => ({ value: values[name], onChange: (value: string) => change({ [name]: value }) })
  return html`<${FilterBar}
    path="documents"
    isFiltered=${Object.keys(values).length > 0}
    search=${html`<${SearchField} label=${words.search} placeholder=${words.searchHint} ...${field('q')} />`}
    hasRest=${values.connection_id !== undefined || values.acknowledged !== undefined}
    rest=${html`<${ConnectionField} label=${words.connection} ...${field('connection_id')} />
      <${SelectField}
        label=${words.acknowledged}
        ...${field('acknowledged')}
        options=${[
          ['true', common.yes],
          ['false', common.no],
        ]}
      />`}
  >
    <${SelectField} label=${words.status} ...${field('status')} options=${Object.entries(documentStatus)} />
    <${RepositoryField} label=${words.repository} ...${field('repo_id')} />
    <${DestinationField} label=${words.destination} ...${field('destination_id')} />
    <${SelectField} label=${words.deliveryStatus} ...${field('delivery_status')} options=${Object.entries(deliveryStatus)} />
    ${
      // Only links set it: people do not type a code.
      values.error_code !== undefined &&
      html`<${SelectField} label=${words.errorCode} ...${field('error_code')} options=${[[values.error_code, values.error_code]]} />`
    }
    <${DateField} label=${words.from} ...${field('date_from')} />
    <${DateField} label=${words.to} ...${field('date_to')} />
  </${FilterBar}>`
}

const Deliveries = ({ deliveries }: { deliveries: Document['attributes']['deliveries'] }) => {
  const words = inLanguage(documentsCatalogue)
  const { deliveryStatus } = texts()
  if (deliveries.length === 0) return html`<span class="quiet">${words.noDeliveries}</span>`
  return html`<ul class="chips">
    ${deliveries.map(
      ({ destination_id: id, destination_name: name, status }) =>
        html`<li key=${id} class=${`chip ${toneOf(status)}`} title=${`${name}: ${deliveryStatus[status]}`}>
          <${Mark} status=${status} />${name}<span class="visually-hidden">: ${deliveryStatus[status]}</span>
        </li>`,
    )}
  </ul>`
}

type Action = 'retry' | 'attempt'

/** What an action has done to a document. */
type Outcome = Action | ApiError

/** The selected documents of the page, and what has become of them. */
const useSelection = (page: string, documents: readonly Document[], reload: () => void) => {
  const words = inLanguage(documentsCatalogue)
  const [state, setState] = useState<{ page: string; ids: ReadonlySet<string>; outcomes: ReadonlyMap<string, Outcome>; progress?: string }>(
    {
      page,
      ids: new Set(),
      outcomes: new Map(),
    },
  )
  const { ids: all, outcomes, progress } = state.page === page ? state : { ids: new Set<string>(), outcomes: new Map<string, Outcome>() }
  // A document may have left the page.
  const ids = documents.map(({ id }) => id).filter((id) => all.has(id))
  const select = (selected: Iterable<string>) => setState({ page, ids: new Set(selected), outcomes })
  const run = async (action: Action) => {
    const found = new Map<string, Outcome>()
    for (const id of ids) {
      setState({ page, ids: all, outcomes: new Map(found), progress: words.acting(found.size, ids.length) })
      try {
        await callRaw('POST', `/documents/${id}/${action}`)
        found.set(id, action)
      } catch (thrown) {
        found.set(id, toApiError(thrown))
      }
    }
    const done = [...found.values()].filter((outcome) => outcome === action).length
    setState({ page, ids: new Set(), outcomes: found })
    announce(words.ended(done, found.size))
    reload()
  }
  return {
    ids,
    outcomes,
    progress,
    toggle: (id: string) => select(ids.includes(id) ? ids.filter((each) => each !== id) : [...ids, id]),
    selectAll: () => select(documents.map(({ id }) => id)),
    clear: () => select([]),
    run,
  }
}

type Selection = ReturnType<typeof useSelection>

/** The destination that the list is filtered by. */
interface Destination {
  id: string
  name: string
}

/** Finds the name of the destination that the list is filtered by among the deliveries of its documents. */
const destinationOf = (documents: readonly Document[], id: string | undefined): Destination | undefined => {
  const found = documents.flatMap(({ attributes }) => attributes.deliveries).find((delivery) => delivery.destination_id === id)
  return found && { id: found.destination_id, name: found.destination_name }
}

const SelectionBar = ({
  selection: { ids, progress, run, clear },
  destination,
  reload,
}: {
  selection: Selection
  destination: Destination | undefined
  reload: () => void
}) => {
  const words = inLanguage(documentsCatalogue)
  const [isAsked, setAsked] = useState(false)
  if (ids.length === 0) return null
  const isBusy = progress !== undefined
  return html`<div class="actions selection" role="group" aria-label=${words.selected(ids.length)}>
    <strong>${progress ?? words.selected(ids.length)}</strong>
    <button type="button" class="button primary" disabled=${isBusy} onClick=${() => void run('retry')}>${words.retrySelected}</button>
    <button type="button" class="button" disabled=${isBusy} onClick=${() => void run('attempt')}>${words.trySelected}</button>
    ${
      destination &&
      html`<button type="button" class="button" disabled=${isBusy} onClick=${() => setAsked(true)}>
        ${words.deliverSelected(destination.name)}
      </button>`
    }
    <button type="button" class="button" disabled=${isBusy} onClick=${clear}>${words.clearSelection}</button>
    ${
      isAsked &&
      destination &&
      html`<${ConfirmBulkRetry}
        target=${{ action: 'deliver', destinationId: destination.id, destinationName: destination.name, documentIds: ids }}
        onStarted=${() => {
          clear()
          reload()
        }}
        onClose=${() => setAsked(false)}
      />`
    }
  </div>`
}

const SelectAll = ({ count, selection: { ids, progress, selectAll, clear } }: { count: number; selection: Selection }) =>
  html`<input
    type="checkbox"
    aria-label=${inLanguage(documentsCatalogue).selectAll}
    checked=${ids.length === count}
    indeterminate=${ids.length > 0 && ids.length < count}
    disabled=${progress !== undefined}
    onChange=${ids.length === count ? clear : selectAll}
  />`

interface RowProps {
  document: Document
  selection: Selection | undefined
  /** What was searched for. */
  query: string | undefined
}

const Row = ({ document: { id, attributes }, selection, query }: RowProps) => {
  const words = inLanguage(documentsCatalogue)
  const { documentStatus } = texts()
  const { metadata, doc_id: docIdText } = attributes
  const object = metadata && businessObjectOf(metadata)
  const pieces = metadata && businessPiecesOf(metadata)
  const docId = html`<span class="mono"><${Marked} pieces=${[{ text: docIdText, start: 0 }]} of=${docIdText} query=${query} /></span>`
  const outcome = selection?.outcomes.get(id)
  return html`<tr role="row">
    ${
      selection &&
      html`<td role="cell">
        <input
          type="checkbox"
          aria-label=${words.select(object ?? attributes.doc_id)}
          checked=${selection.ids.includes(id)}
          disabled=${selection.progress !== undefined}
          onChange=${() => selection.toggle(id)}
        />
      </td>`
    }
    <td role="cell"><${Badge} status=${attributes.status} label=${documentStatus[attributes.status]} /></td>
    <td role="cell" class="main-cell">
      <a href=${`documents/${id}`}
        >${pieces ? html`<${Marked} pieces=${pieces} of=${metadata?.erp_object_id ?? ''} query=${query} />` : docId}</a
      >
      <span class="small"
        >${pieces && html`${docId} · `}${repositoryText(attributes)}${attributes.comp_id !== 'data' && ` · ${words.component(attributes.comp_id)}`}
        ${' · '}${attributes.content_type || '–'}, ${formatBytes(attributes.size_bytes, locale())}</span
      >
      ${
        outcome !== undefined &&
        html`<span class="small outcome"
          >${typeof outcome === 'string' ? words.outcomes[outcome] : html`<${ErrorText} error=${outcome} />`}</span
        >`
      }
    </td>
    <td role="cell"><${Time} at=${attributes.received_at} /></td>
    <td role="cell"><${Deliveries} deliveries=${attributes.deliveries} /></td>
  </tr>`
}

export const DocumentsScreen = () => {
  const words = inLanguage(documentsCatalogue)
  const { screens } = texts()
  const { query } = route.value
  const filters = filtersOf('documents', filterNames)
  const { values } = filters
  const page = pageOf(query)
  const before = query.get('before') ?? undefined
  const isSearch = searchNames.some((name) => values[name] !== undefined)
  const position = isSearch ? { before } : { page: String(page) }
  const path = isSearch ? '/documents/search' : '/documents'
  const address = addressOf(path, { ...values, ...position, include: 'metadata', per_page: String(perPage) })
  const live = useLive(address, async (signal): Promise<DocumentsPage> => {
    if (!isSearch) {
      const { data, meta } = await call<DocumentList>('GET', address, { signal })
      return { data, total: meta.total }
    }
    const { data, meta } = await call<FoundDocuments>('GET', address, { signal })
    return { data, next: meta.next_cursor }
  })
  const made = useSelection(address, live.data?.data ?? [], live.reload)
  const selection = may('member') ? made : undefined

  return html`<${Heading} title=${screens.documents} />
    <${Filter} filters=${filters} />
    <${Loaded} live=${live}>
      ${() => {
        const { data, total = 0, next } = live.data!
        const more = isSearch && html`<${CursorPager} path="documents" values=${values} next=${next} />`
        if (data.length === 0) {
          // A page of a search may be empty although others follow.
          if (next) return more
          return html`<p class="empty">
            ${Object.keys(values).length > 0 ? words.emptyFiltered : words.empty} ${values.q !== undefined && words.emptySearch}
          </p>`
        }
        return html`${selection && html`<${SelectionBar} selection=${selection} destination=${destinationOf(data, values.destination_id)} reload=${live.reload} />`}
          <${Table}
            label=${screens.documents}
            columns=${[...(selection ? [html`<${SelectAll} count=${data.length} selection=${selection} />`] : []), words.status, words.document, words.received, words.deliveries]}
          >
            ${data.map((document) => html`<${Row} key=${document.id} document=${document} selection=${selection} query=${values.q} />`)}
          </${Table}>
          ${
            more ||
            html`<${Pager}
              page=${page}
              perPage=${perPage}
              total=${total}
              addressOfPage=${(to: number) => addressOf('documents', { ...values, page: to === 1 ? undefined : String(to) })}
            />`
          }`
      }}
    </${Loaded}>`
}
