import { apiUrl, call, session, type Schemas } from '../api.ts'
import { readMetadata, type Change } from '../audit-changes.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, texts } from '../preferences.ts'
import { addressOf, route } from '../router.ts'
import * as auditCatalogue from '../texts/audit.ts'
import { DateField, FilterBar, filtersOf, SearchField, SelectField, type Filters, type Option } from '../ui/filters.ts'
import { Manifests } from '../ui/manifests.ts'
import { CursorPager, ExactTime, Facts, Heading, Loaded, Table } from '../ui/parts.ts'
import { Redacted } from '../ui/redacted.ts'

type Entry = Schemas['AuditLog']
type Subject = Schemas['AuditSubjectType']

const perPage = 25
const refreshMs = 10_000
const filterNames = ['subject_id', 'event', 'event_prefix', 'subject_type', 'user_id', 'actor', 'date_from', 'date_to'] as const
type FilterName = (typeof filterNames)[number]

/** The screen of a subject, if there is one, by the first part of its address. */
const screenOf: Partial<Record<Subject, string>> = {
  Document: 'documents',
  CapturedRequest: 'requests',
  Connection: 'connections',
  Destination: 'destinations',
  Repository: 'repositories',
  Notification: 'notifications',
}

const addressOfSubject = ({ event, subject_type: type, subject_id: id }: Entry['attributes']): string | undefined => {
  const screen = screenOf[type]
  return screen === undefined || event.endsWith('.deleted') ? undefined : `${screen}/${encodeURIComponent(id)}`
}

/** Returns the events by the kind of thing that they are about, each group with an option for all of them. */
const eventOptions = (): Map<string, Option[]> => {
  const { events, allOf } = inLanguage(auditCatalogue)
  const groups = Map.groupBy(Object.entries(events), ([event]) => `${event.split('.')[0]}.`)
  const groupName = (prefix: string) => prefix.slice(0, -1)
  return new Map(
    [...groups].map(([prefix, options]) => [
      groupName(prefix),
      options.length === 1 ? options : [[prefix, allOf(`${prefix}*`)] as const, ...options],
    ]),
  )
}

const Filter = ({ filters: { values, change } }: { filters: Filters<FilterName> }) => {
  const words = inLanguage(auditCatalogue)
  const field = (name: FilterName) => ({ value: values[name], onChange: (value: string) => change({ [name]: value }) })
  const setEvent = (value: string) => change(value.endsWith('.') ? { event_prefix: value, event: '' } : { event: value, event_prefix: '' })
  return html`<${FilterBar}
    path="audit"
    isFiltered=${Object.keys(values).length > 0}
    search=${html`<${SearchField} label=${words.who} ...${field('actor')} />`}
  >
    <${SelectField} label=${words.event} value=${values.event ?? values.event_prefix} options=${eventOptions()} onChange=${setEvent} />
    <${SelectField} label=${words.subjectType} ...${field('subject_type')} options=${Object.entries(words.subjects)} />
    <${DateField} label=${words.dateFrom} ...${field('date_from')} />
    <${DateField} label=${words.dateTo} ...${field('date_to')} />
  </${FilterBar}>`
}

const Changes = ({ changes }: { changes: Change[] }) => {
  const words = inLanguage(auditCatalogue)
  const isSet = (value: string | undefined): value is string => value !== undefined && value !== 'null'
  const notSet = html`<span class="quiet">${words.notSet}</span>`
  return html`<ul class="changes">
    ${changes.map(
      ({ name, before, after }) =>
        html`<li key=${name} class="mono">
          ${name}:${' '}
          <span class="visually-hidden">${words.before} </span>${isSet(before) ? html`<del><${Redacted} text=${before} /></del>` : notSet}
          →${' '}
          <span class="visually-hidden">${words.after} </span>${isSet(after) ? html`<ins><${Redacted} text=${after} /></ins>` : notSet}
        </li>`,
    )}
  </ul>`
}

/** Shows who made a change. */
const Actor = ({ attributes }: { attributes: Entry['attributes'] }) => {
  const words = inLanguage(auditCatalogue)
  const { keyId, keyName, personId, personName } = readMetadata(attributes.metadata)
  const name = personName ?? (keyName === undefined ? undefined : words.key(keyName))
  if (attributes.actor_type === 'system' || name === undefined) return words.actors[attributes.actor_type]
  const isOwn = keyId !== undefined && keyId === session.value!.key_id
  return html`<a title=${personId ?? keyId} href=${addressOf('audit', { actor: personName ?? keyName })}>${name}</a
    >${isOwn && html`<span class="small">${words.thisKey}</span>`}
    ${attributes.user_id !== null && html`<a class="small" href=${addressOf('audit', { user_id: attributes.user_id })}>${words.member(attributes.user_id)}</a>`}`
}

const Row = ({ entry: { attributes } }: { entry: Entry }) => {
  const words = inLanguage(auditCatalogue)
  const { changes, others } = readMetadata(attributes.metadata)
  const { subject_type: type, subject_id: id } = attributes
  const address = addressOfSubject(attributes)
  return html`<tr role="row">
    <td role="cell"><${ExactTime} at=${attributes.created_at} /></td>
    <td role="cell" class="wide-cell stack">
      <strong>${words.events[attributes.event]}</strong>
      <span class="small">${attributes.description}</span>
      ${changes.length > 0 && html`<${Changes} changes=${changes} />`}
      ${
        others.length > 0 &&
        html`<details class="small">
          <summary>${words.details}</summary>
          <${Facts} of=${others.map(([name, value]) => [name, html`<span class="mono">${value}</span>`])} />
        </details>`
      }
    </td>
    <td role="cell" class="stack">
      ${address === undefined ? words.subjects[type] : html`<a href=${address}>${words.subjects[type]}</a>`}
      <a class="small" href=${addressOf('audit', { subject_id: id })} title=${id}>${words.history}</a>
    </td>
    <td role="cell" class="stack"><${Actor} attributes=${attributes} /></td>
  </tr>`
}

export const AuditScreen = () => {
  const words = inLanguage(auditCatalogue)
  const { screens } = texts()
  const filters = filtersOf('audit', filterNames)
  const { values } = filters
  const before = route.value.query.get('before') ?? undefined
  const address = addressOf('/audit-logs', { ...values, before, per_page: String(perPage) })
  const live = useLive(address, (signal) => call<Schemas['AuditLogList']>('GET', address, { signal }), refreshMs)
  return html`<${Heading} title=${screens.audit}>
      <a
        class="button"
        download
        title=${words.csvNote}
        href=${apiUrl('/audit-logs.csv', { ...values, spreadsheet: words.csvSeparator }).href}
        >${words.csv}</a
      >
    </${Heading}>
    <p class="quiet">${words.intro}</p>
    <${Filter} filters=${filters} />
    <${Loaded} live=${live}>
      ${() => {
        const { data, meta } = live.data!
        if (data.length === 0) return html`<p class="empty">${Object.keys(values).length > 0 ? words.emptyFiltered : words.empty}</p>`
        return html`<${Table} label=${screens.audit} columns=${[words.when, words.what, words.subject, words.who]}>
            ${data.map((entry) => html`<${Row} key=${entry.id} entry=${entry} />`)}
          </${Table}>
          <${CursorPager} path="audit" values=${values} next=${meta.next_cursor} />`
      }}
    </${Loaded}>
    <${Manifests} />`
}
