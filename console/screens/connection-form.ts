import { call, callRaw, type Schemas } from '../api.ts'
import { defaultPathTemplate, settingsFields, settingsOf } from '../connection-settings.ts'
import { fieldAt, partsOf, type Values } from '../form.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage } from '../preferences.ts'
import { navigate, route } from '../router.ts'
import * as connectionsCatalogue from '../texts/connections.ts'
import * as connectorFieldsCatalogue from '../texts/connector-fields.ts'
import { FormField, type Option } from '../ui/fields.ts'
import { FormCard } from '../ui/form.ts'
import { Loaded, Notice } from '../ui/parts.ts'
import { useForm, withRefusal } from '../ui/use-form.ts'
import { PreviewOf, usePreview } from './connection-preview.ts'

const connectionsWords = inLanguage(connectionsCatalogue)
const connectorWords = inLanguage(connectorFieldsCatalogue)

type Connection = Schemas['Connection']

const perPage = 100
const pagesMax = 10

/** Reads the first pages of a list: 1,000 rows. */
const loadAll = async <Row>(path: string, signal: AbortSignal): Promise<Row[]> => {
  const rows: Row[] = []
  for (let page = 1; page <= pagesMax; page += 1) {
    const { data } = await call<{ data: Row[] }>('GET', path, { query: { page, per_page: perPage }, signal })
    rows.push(...data)
    if (data.length < perPage) break
  }
  return rows
}

interface FormProps {
  /** The connection to change, with the ETag of what is shown. */
  stored?: { connection: Connection; etag: string }
  onSaved?: () => void
}

const linkFields = [
  fieldAt('name', 'text', { isRequired: true, maxLength: 200 }),
  fieldAt('repository_ids', 'checks', { isRequired: true }),
  fieldAt('destination_ids', 'checks', { isRequired: true }),
]
const isActive = fieldAt('is_active', 'switch')

const valuesOf = ({ name, repositories, destinations, settings }: Connection): Values => ({
  name,
  repository_ids: repositories.map(({ id }) => id),
  destination_ids: destinations.map(({ id }) => id),
  settings,
})

const Fields = ({ stored, onSaved, repositories, destinations }: FormProps & Record<'repositories' | 'destinations', Option[]>) => {
  const words = connectionsWords()
  const before = stored?.connection
  const repositoryId = route.value.query.get('repository')
  const entered = useForm({
    fields: [...linkFields, ...settingsFields, ...(stored ? [] : [isActive])],
    stored: before && valuesOf(before),
    start: { is_active: true, ...(repositoryId !== null && { repository_ids: [repositoryId] }) },
    // A change replaces the settings as a whole.
    toBody: (values, texts) => ('settings' in values ? { ...values, settings: settingsOf(texts) } : values),
    isLive: true,
  })
  const [from, to] = [partsOf(entered.texts['repository_ids']!), partsOf(entered.texts['destination_ids']!)]
  const preview = usePreview(from, settingsOf(entered.texts))
  const form = withRefusal(entered, preview.error)
  const address = before ? `connections/${before.id}` : 'connections'
  const isComplete = from.length > 0 && to.length > 0

  const save = async (body: Values) => {
    if (stored) {
      await callRaw('PATCH', `/connections/${stored.connection.id}`, { body, headers: { 'if-match': stored.etag } })
      onSaved?.()
      navigate(address)
      return
    }
    const { data } = await call<Schemas['ConnectionResponse']>('POST', '/connections', { body })
    navigate(`connections/${data.id}`)
  }

  const removesDestination = before?.destinations.some(({ id }) => !to.includes(id)) === true && before.held_deliveries > 0
  const setting = (name: string, label: string, more: { hint?: string; placeholder?: string; options?: Option[] } = {}) =>
    html`<${FormField} form=${form} path=${`settings.${name}`} label=${label} isMono ...${more} />`
  return html`<div class="columns beside">
    <${FormCard}
      form=${form}
      label=${before ? words.editTitle(before.name) : words.create}
      title=${before && words.edit}
      action=${before ? words.save : words.create}
      cancelTo=${address}
      isDisabled=${!isComplete}
      onSave=${save}
    >
      <${FormField} form=${form} path="name" label=${words.name} />
      <div class="two">
        <${FormField}
          form=${form}
          path="repository_ids"
          label=${words.repositories}
          hint=${repositories.length === 0 ? words.noRepositories : undefined}
          options=${repositories}
        />
        <${FormField}
          form=${form}
          path="destination_ids"
          label=${words.destinations}
          hint=${destinations.length === 0 ? words.noDestinations : undefined}
          options=${destinations}
        />
      </div>
      ${removesDestination && html`<${Notice} tone="warn">${words.removedHeld}</${Notice}>`}
      ${setting('filter.content_types', words.contentTypes, { hint: words.contentTypesHint })}
      ${setting('filter.comp_ids', words.compIds, { hint: words.compIdsHint })}
      <div class="two">${setting('filter.min_bytes', words.minBytes)} ${setting('filter.max_bytes', words.maxBytes)}</div>
      ${setting('filter.fields', words.fields, { hint: words.fieldsHint, placeholder: 'company_code: 1000, 2000' })}
      ${setting('path_template', words.pathTemplate, { hint: words.pathTemplateHint, placeholder: defaultPathTemplate })}
      ${setting('properties', words.properties, { hint: words.propertiesHint, placeholder: 'Vendor: {meta.vendor_name}' })}
      ${setting('on_resume', words.onResume, {
        options: (['forward', 'skip'] as const).map((value) => ({ value, label: words.onResumes[value] })),
      })}
      ${!before && html`<${FormField} form=${form} path="is_active" label=${words.isActive} hint=${words.isActiveHint} />`}
      ${!isComplete && html`<p class="quiet">${words.chooseBoth}</p>`}
    </${FormCard}>
    <${PreviewOf} live=${preview} hasRepositories=${from.length > 0} isInvalid=${form.wrong.some((path) => path.startsWith('settings.'))} />
  </div>`
}

/** Creates or changes a connection, beside a preview of what the settings mean. */
export const ConnectionForm = (props: FormProps) => {
  const { connector } = connectorWords()
  const live = useLive(
    'ends of connections',
    async (signal) => {
      const [repositories, destinations] = await Promise.all([
        loadAll<Schemas['Repository']>('/repositories', signal),
        loadAll<Schemas['Destination']>('/destinations', signal),
      ])
      return {
        repositories: repositories.map(({ id, attributes }) => ({ value: id, label: attributes.repo_id, note: attributes.name })),
        destinations: destinations.map(({ id, attributes }) => ({
          value: id,
          label: attributes.name,
          note: connector(attributes.connector_type),
        })),
      }
    },
    0,
  )
  return html`<${Loaded} live=${live}>${() => html`<${Fields} ...${props} ...${live.data!} />`}</${Loaded}>`
}
