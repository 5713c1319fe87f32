import { call, type Schemas } from '../api.ts'
import { connectionFields, settingsOf } from '../connection-fields.ts'
import { partsOf, type Values } from '../form.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage } from '../preferences.ts'
import { requestFields } from '../request-schemas.ts'
import { navigate, route } from '../router.ts'
import * as connectionsCatalogue from '../texts/connections.ts'
import * as connectorFieldsCatalogue from '../texts/connector-fields.ts'
import * as formCatalogue from '../texts/form.ts'
import { FormFields, type Option } from '../ui/fields.ts'
import { FormCard } from '../ui/form.ts'
import { saveObject } from '../ui/object-form.ts'
import { Loaded, Notice } from '../ui/parts.ts'
import { useForm, withRefusal } from '../ui/use-form.ts'
import { PreviewOf, usePreview } from './connection-preview.ts'

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

const valuesOf = ({ name, repositories, destinations, settings }: Connection): Values => ({
  name,
  repository_ids: repositories.map(({ id }) => id),
  destination_ids: destinations.map(({ id }) => id),
  settings,
})

const Fields = ({ stored, onSaved, repositories, destinations }: FormProps & Record<'repositories' | 'destinations', Option[]>) => {
  const words = inLanguage(connectionsCatalogue)
  const before = stored?.connection
  const repositoryId = route.value.query.get('repository')
  const fields = connectionFields(requestFields('POST /connections'), { isNew: !stored })
  const entered = useForm({
    fields,
    stored: before && valuesOf(before),
    etag: stored?.etag,
    start: repositoryId === null ? {} : { repository_ids: [repositoryId] },
    wholes: ['settings'],
    isLive: true,
  })
  const [from, to] = [partsOf(entered.texts['repository_ids']!), partsOf(entered.texts['destination_ids']!)]
  const preview = usePreview(from, settingsOf(fields, entered.texts))
  const form = withRefusal(entered, preview.error)
  const address = before ? `connections/${before.id}` : 'connections'
  const isComplete = from.length > 0 && to.length > 0

  const save = async (body: Values) => {
    const id = await saveObject('connections', before?.id, form, body)
    onSaved?.()
    navigate(`connections/${id}`)
  }

  const removesDestination = before?.destinations.some(({ id }) => !to.includes(id)) === true && before.held_deliveries > 0
  return html`<div class="columns beside">
    <${FormCard}
      form=${form}
      label=${before ? words.editTitle(before.name) : words.create}
      title=${before && inLanguage(formCatalogue).edit}
      action=${before ? undefined : words.create}
      cancelTo=${address}
      isDisabled=${!isComplete}
      onSave=${save}
    >
      <${FormFields}
        form=${form}
        words=${words}
        more=${{
          repository_ids: {
            beside: 'destination_ids',
            hint: repositories.length === 0 ? words.noRepositories : undefined,
            options: repositories,
            after: removesDestination && html`<${Notice} tone="warn">${words.removedHeld}</${Notice}>`,
          },
          destination_ids: { hint: destinations.length === 0 ? words.noDestinations : undefined, options: destinations },
          'settings.filter.min_bytes': { beside: 'settings.filter.max_bytes' },
          'settings.filter.fields': { placeholder: 'company_code: 1000, 2000' },
          'settings.properties': { placeholder: 'Vendor: {meta.vendor_name}' },
        }}
      />
      ${!isComplete && html`<p class="quiet">${words.chooseBoth}</p>`}
    </${FormCard}>
    <${PreviewOf} live=${preview} hasRepositories=${from.length > 0} isInvalid=${form.wrong.some((path) => path.startsWith('settings.'))} />
  </div>`
}

/** Creates or changes a connection, beside a preview of what the settings mean. */
export const ConnectionForm = (props: FormProps) => {
  const { connector } = inLanguage(connectorFieldsCatalogue)
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
