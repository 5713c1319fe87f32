import { refusals } from '../../src/domain/refusal-codes.ts'
import { call, type Schemas } from '../api.ts'
import { formatBytes, formatDuration } from '../format.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, locale, texts } from '../preferences.ts'
import { commandOf, valueOf } from '../query-string.ts'
import { addressOf, route } from '../router.ts'
import * as requestsCatalogue from '../texts/requests.ts'
import { RepositoryField } from '../ui/choice-fields.ts'
import { DateField, FilterBar, filtersOf, SearchField, SelectField, type Filters, type Option } from '../ui/filters.ts'
import { CursorPager, Heading, Loaded, Table, Time } from '../ui/parts.ts'
import { StatusBadge } from './captured-request.ts'

type Request = Schemas['CapturedRequest']

const perPage = 25
const filterNames = [
  'doc_id',
  'status_class',
  'status_code',
  'error_code',
  'method',
  'channel',
  'repo_id',
  'document_id',
  'date_from',
  'date_to',
] as const
type FilterName = (typeof filterNames)[number]

const methods = ['GET', 'HEAD', 'PUT', 'POST', 'DELETE']
// Statuses with which the receiver and the bridge answer. The address may contain others.
const statusCodes = [200, 201, 250, 400, 401, 403, 404, 406, 409, 413, 422, 429, 499, 500, 502, 503, 504, 507, 508].map(String)

const optionsOf = (values: readonly string[], chosen: string | undefined): Option[] =>
  (chosen === undefined || values.includes(chosen) ? values : [...values, chosen]).map((value) => [value, value])

const Filter = ({ filters: { values, change } }: { filters: Filters<FilterName> }) => {
  const words = inLanguage(requestsCatalogue)
  const field = (name: FilterName) => ({ value: values[name], onChange: (value: string) => change({ [name]: value }) })
  const isClass = (value: string) => value.endsWith('xx')
  const setStatus = (value: string) => change({ status_class: isClass(value) ? value : '', status_code: isClass(value) ? '' : value })
  return html`<${FilterBar}
      path="requests"
      isFiltered=${Object.keys(values).length > 0}
      search=${html`<${SearchField} label=${words.search} ...${field('doc_id')} />`}
    >
      <${SelectField}
        label=${words.answer}
        value=${values.status_code ?? values.status_class}
        options=${new Map<string, readonly Option[]>([
          [words.classes, Object.entries(words.class)],
          [words.codes, optionsOf(statusCodes, values.status_code)],
        ])}
        onChange=${setStatus}
      />
      <${SelectField}
        label=${words.error}
        ...${field('error_code')}
        options=${optionsOf(Object.keys(refusals).toSorted(), values.error_code)}
      />
      <${SelectField} label=${words.method} ...${field('method')} options=${optionsOf(methods, values.method)} />
      <${SelectField} label=${words.channel} ...${field('channel')} options=${Object.entries(words.channels)} />
      <${RepositoryField} label=${words.repository} ...${field('repo_id')} />
      <${DateField} label=${words.dateFrom} ...${field('date_from')} />
      <${DateField} label=${words.dateTo} ...${field('date_to')} />
    </${FilterBar}>
    ${
      values.document_id !== undefined &&
      html`<p>${words.onlyOf} <a class="mono" href=${`documents/${encodeURIComponent(values.document_id)}`}>${values.document_id}</a></p>`
    }`
}

const Row = ({ request: { id, attributes } }: { request: Request }) => {
  const about = ['contRep', 'docId'].map((name) => valueOf(attributes.query_string, name)).filter((value) => value !== undefined)
  return html`<tr role="row">
    <td role="cell">
      <${StatusBadge} code=${attributes.status_code} />
      ${attributes.error_code !== null && html`<code class="small error-code">${attributes.error_code}</code>`}
    </td>
    <td role="cell" class="main-cell">
      <a href=${`requests/${id}`}>${attributes.http_method} ${commandOf(attributes.uri, attributes.query_string) || '/'}</a>
      ${about.length > 0 && html`<span class="small mono">${about.join(' · ')}</span>`}
    </td>
    <td role="cell">
      ${attributes.request_content_type.split(';')[0] || '–'}${' '}
      <span class="small">${formatBytes(attributes.request_content_length, locale())}</span>
    </td>
    <td role="cell"><span class="mono">${attributes.source_ip}</span></td>
    <td role="cell"><${Time} at=${attributes.request_at} /></td>
    <td role="cell">${formatDuration(attributes.duration_ms, locale())}</td>
  </tr>`
}

export const RequestsScreen = () => {
  const words = inLanguage(requestsCatalogue)
  const { screens } = texts()
  const filters = filtersOf('requests', filterNames)
  const { values } = filters
  const before = route.value.query.get('before') ?? undefined
  const address = addressOf('/requests', { ...values, before, per_page: String(perPage) })
  const live = useLive(address, (signal) => call<Schemas['CapturedRequestList']>('GET', address, { signal }))
  return html`<${Heading} title=${screens.requests} />
    <p class="quiet">${words.intro}</p>
    <${Filter} filters=${filters} />
    <${Loaded} live=${live}>
      ${() => {
        const { data, meta } = live.data!
        if (data.length === 0) return html`<p class="empty">${Object.keys(values).length > 0 ? words.emptyFiltered : words.empty}</p>`
        return html`<${Table}
            label=${screens.requests}
            columns=${[words.answer, words.request, words.body, words.from, words.received, words.duration]}
          >
            ${data.map((request) => html`<${Row} key=${request.id} request=${request} />`)}
          </${Table}>
          <${CursorPager} path="requests" values=${values} next=${meta.next_cursor} />`
      }}
    </${Loaded}>`
}
