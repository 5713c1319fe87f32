import { useState } from 'preact/hooks'
import { call, callRaw, type Schemas } from '../api.ts'
import { defaultPathTemplate, formOf, settingsOf, type SettingsForm } from '../connection-settings.ts'
import * as connectionsCatalogue from '../texts/connections.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage } from '../preferences.ts'
import { navigate } from '../router.ts'
import { Checkbox, Choice, EntryForm, TextField } from '../ui/form.ts'
import { Loaded, Notice } from '../ui/parts.ts'
import { PreviewOf, usePreview } from './connection-preview.ts'

const connectionsWords = inLanguage(connectionsCatalogue)

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

interface End {
  id: string
  title: string
  subtitle: string
}

const Ends = ({
  legend,
  empty,
  ends,
  chosen,
  onChange,
}: {
  legend: string
  empty: string
  ends: End[]
  chosen: string[]
  onChange: (chosen: string[]) => void
}) =>
  html`<fieldset class="entry">
    <legend>${legend}</legend>
    ${ends.length === 0 && html`<p class="quiet">${empty}</p>`}
    <ul class="checks">
      ${ends.map(
        ({ id, title, subtitle }) =>
          html`<li key=${id}>
            <label class="check">
              <input
                type="checkbox"
                checked=${chosen.includes(id)}
                onChange=${(event: Event) =>
                  onChange((event.target as HTMLInputElement).checked ? [...chosen, id] : chosen.filter((each) => each !== id))}
              />
              <span>${title} <span class="small">${subtitle}</span></span>
            </label>
          </li>`,
      )}
    </ul>
  </fieldset>`

interface FormProps {
  /** The connection to change, with the ETag of what is shown. */
  stored?: { connection: Connection; etag: string }
  onSaved?: () => void
}

const Fields = ({ stored, onSaved, repositories, destinations }: FormProps & { repositories: End[]; destinations: End[] }) => {
  const words = connectionsWords()
  const before = stored?.connection
  const [name, setName] = useState(before?.name ?? '')
  const [isActive, setActive] = useState(true)
  const [from, setFrom] = useState(before?.repositories.map(({ id }) => id) ?? [])
  const [to, setTo] = useState(before?.destinations.map(({ id }) => id) ?? [])
  const [form, setForm] = useState<SettingsForm>(formOf(before?.settings ?? {}))
  const change = (field: keyof SettingsForm) => (value: string) => setForm((current) => ({ ...current, [field]: value }))
  const settings = settingsOf(form)
  const preview = usePreview(from, settings)
  /** What the relay says about a value, while it is being typed. */
  const problem = (path: string) => preview.error?.details.find((detail) => detail.path.startsWith(`settings.${path}`))?.message
  const address = before ? `connections/${before.id}` : 'connections'
  const isComplete = from.length > 0 && to.length > 0

  const save = async () => {
    const body = { name, repository_ids: from, destination_ids: to, settings }
    if (stored) {
      await callRaw('PATCH', `/connections/${stored.connection.id}`, { body, headers: { 'if-match': stored.etag } })
      onSaved?.()
      navigate(address)
      return
    }
    const { data } = await call<Schemas['ConnectionResponse']>('POST', '/connections', { body: { ...body, is_active: isActive } })
    navigate(`connections/${data.id}`)
  }

  const removesDestination = before?.destinations.some(({ id }) => !to.includes(id)) === true && before.held_deliveries > 0
  const text = (field: 'contentTypes' | 'compIds', path: string, label: string, hint: string) =>
    html`<${TextField}
      id=${path}
      label=${label}
      hint=${hint}
      error=${problem(`filter.${path}`)}
      value=${form[field]}
      onInput=${change(field)}
      isMono
    />`
  const bytes = (field: 'minBytes' | 'maxBytes', path: string, label: string) =>
    html`<${TextField}
      id=${path}
      label=${label}
      type="number"
      error=${problem(`filter.${path}`)}
      value=${form[field]}
      onInput=${change(field)}
    />`
  return html`<div class="columns beside">
    <${EntryForm}
      label=${before ? words.editTitle(before.name) : words.create}
      title=${before && words.edit}
      action=${before ? words.save : words.create}
      cancelTo=${address}
      isDisabled=${!isComplete}
      onSubmit=${save}
    >
      <${TextField} id="name" label=${words.name} value=${name} onInput=${setName} required maxLength=${200} />
      <div class="two">
        <${Ends} legend=${words.repositories} empty=${words.noRepositories} ends=${repositories} chosen=${from} onChange=${setFrom} />
        <${Ends} legend=${words.destinations} empty=${words.noDestinations} ends=${destinations} chosen=${to} onChange=${setTo} />
      </div>
      ${removesDestination && html`<${Notice} tone="warn">${words.removedHeld}</${Notice}>`}
      ${text('contentTypes', 'content_types', words.contentTypes, words.contentTypesHint)}
      ${text('compIds', 'comp_ids', words.compIds, words.compIdsHint)}
      <div class="two">${bytes('minBytes', 'min_bytes', words.minBytes)} ${bytes('maxBytes', 'max_bytes', words.maxBytes)}</div>
      <${TextField}
        id="path_template"
        label=${words.pathTemplate}
        hint=${words.pathTemplateHint}
        error=${problem('path_template')}
        value=${form.pathTemplate}
        placeholder=${defaultPathTemplate}
        onInput=${change('pathTemplate')}
        maxLength=${500}
        isMono
      />
      <${Choice}
        id="on_resume"
        label=${words.onResume}
        value=${form.onResume}
        options=${(['forward', 'skip'] as const).map((each) => [each, words.onResumes[each]])}
        onInput=${change('onResume')}
      />
      ${
        !before &&
        html`<${Checkbox} id="is_active" label=${words.isActive} hint=${words.isActiveHint} isChecked=${isActive} onChange=${setActive} />`
      }
      ${!isComplete && html`<p class="quiet">${words.chooseBoth}</p>`}
    </${EntryForm}>
    <${PreviewOf} live=${preview} hasRepositories=${from.length > 0} />
  </div>`
}

/** Creates or changes a connection, beside a preview of what the settings mean. */
export const ConnectionForm = (props: FormProps) => {
  const live = useLive(
    'ends of connections',
    async (signal) => {
      const [repositories, destinations] = await Promise.all([
        loadAll<Schemas['Repository']>('/repositories', signal),
        loadAll<Schemas['Destination']>('/destinations', signal),
      ])
      return {
        repositories: repositories.map(({ id, attributes }) => ({ id, title: attributes.repo_id, subtitle: attributes.name })),
        destinations: destinations.map(({ id, attributes }) => ({ id, title: attributes.name, subtitle: attributes.connector_type })),
      }
    },
    0,
  )
  return html`<${Loaded} live=${live}>${() => html`<${Fields} ...${props} ...${live.data!} />`}</${Loaded}>`
}
