import { useRef, useState } from 'preact/hooks'
import { settingsBounds } from '../../src/domain/bounds.ts'
import { callRaw, may, type ApiError, type Schemas } from '../api.ts'
import { formatBytes, formatDuration } from '../format.ts'
import { html, type Children } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, locale, texts } from '../preferences.ts'
import {
  optionalNumbers,
  readSettings,
  textsOfSettings,
  type NumberName,
  type Settings,
  type SettingsProblem,
  type SettingsTexts,
} from '../settings-form.ts'
import * as settingsCatalogue from '../texts/settings.ts'
import { Checkbox, SaveError, TextArea, TextField } from '../ui/form.ts'
import { announce, Facts, Heading, Loaded, Notice } from '../ui/parts.ts'
import { focusFirstProblem } from '../ui/schema-form.ts'

const settingsWords = inLanguage(settingsCatalogue)

const groups = {
  retries: ['max_retries', 'retry_ttl_seconds', 'retry_initial_interval_seconds', 'retry_max_interval_seconds'],
  retention: ['captured_requests_days', 'captured_bodies_days', 'content_days', 'audit_days'],
  receiver: ['receiver_max_bytes', 'receiver_max_requests_per_minute'],
} as const satisfies Record<string, NumberName[]>

type Group = keyof typeof groups | 'bridge'

const rfcTextFields = ['url', 'client', 'language'] as const

interface Loading {
  settings: Settings
  etag: string
}

const load = async (signal: AbortSignal): Promise<Loading> => {
  const response = await callRaw('GET', '/settings', { signal })
  const { data } = (await response.json()) as Schemas['SettingsResponse']
  return { settings: data.attributes, etag: response.headers.get('etag') ?? '' }
}

const unitOf = (name: NumberName): string => {
  const { form } = texts()
  const words = settingsWords()
  if (name.endsWith('_seconds')) return form.seconds
  if (name.endsWith('_days')) return form.days
  if (name === 'receiver_max_bytes') return form.bytes
  return name === 'max_retries' ? words.attempts : words.requests
}

/** Writes a large number so that people can compare it: 86400 seconds are a day. */
const inWords = (name: NumberName, text: string): string | undefined => {
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value)) return undefined
  if (name.endsWith('_seconds') && value >= 60) return formatDuration(value * 1_000, locale())
  return name === 'receiver_max_bytes' && value >= 1_000 ? formatBytes(value, locale()) : undefined
}

const written = (value: number) => value.toLocaleString(locale())

const boundsOf = (name: NumberName): string => {
  const { form } = texts()
  const bounds: { min: number; max?: number } = settingsBounds[name]
  return bounds.max === undefined ? form.atLeast(written(bounds.min)) : form.between(written(bounds.min), written(bounds.max))
}

const problemText = (name: NumberName, problem: SettingsProblem | undefined): string | undefined => {
  const { form } = texts()
  const words = settingsWords()
  if (problem === undefined) return undefined
  if (problem === 'tooSmall' || problem === 'tooLarge') return form.outOf(boundsOf(name))
  if (problem === 'required' || problem === 'notANumber') return form[problem]
  return words[problem]
}

const Card = ({ group, children }: { group: Group; children: Children }) => {
  const words = settingsWords()
  return html`<section class="card" aria-labelledby=${`group-${group}`}>
    <h2 id=${`group-${group}`}>${words.groups[group]}</h2>
    <p class="quiet">${words.groupHints[group]}</p>
    ${children}
  </section>`
}

/** The settings for those who may not change them. */
const ReadOnly = ({ settings }: { settings: Settings }) => {
  const words = settingsWords()
  const shown = (name: NumberName) => {
    const value = settings[name]
    if (value === null) return html`<span class="quiet">${name === 'audit_days' ? words.compliance : words.empty}</span>`
    const other = inWords(name, String(value))
    return `${written(value)} ${unitOf(name)}${other === undefined ? '' : ` (${other})`}`
  }
  const { rfc, receiver_allowed_cidrs: ranges } = settings
  return html`<${Notice} tone="info">${words.readOnly}</${Notice}>
    <div class="columns">
      ${(Object.keys(groups) as (keyof typeof groups)[]).map(
        (group) =>
          html`<${Card} key=${group} group=${group}>
            <${Facts}
              of=${[
                ...(group === 'receiver'
                  ? [
                      [
                        words.fields.receiver_allowed_cidrs,
                        ranges.length === 0 ? words.anyAddress : html`<span class="mono">${ranges.join(', ')}</span>`,
                      ],
                    ]
                  : []),
                ...groups[group].map((name) => [words.fields[name], shown(name)]),
              ]}
            />
          </${Card}>`,
      )}
      <${Card} group="bridge">
        ${
          rfc === null
            ? html`<p>${words.bridgeOff}</p>`
            : html`<${Facts}
                of=${[
                  [words.rfc.url, html`<span class="mono">${rfc.url}</span>`],
                  [words.rfc.client, rfc.client],
                  [words.rfc.language, rfc.language],
                  [words.rfc.allowed_functions, html`<span class="mono">${rfc.allowed_functions.join(', ')}</span>`],
                ]}
              />`
        }
      </${Card}>
    </div>`
}

interface Saving {
  isBusy: boolean
  problems: Partial<Record<NumberName, SettingsProblem>>
  error?: ApiError
  message?: string
}

const Form = ({ settings, etag, reload, onSaved }: Loading & { reload: () => void; onSaved: () => void }) => {
  const words = settingsWords()
  const { form: formWords } = texts()
  const ref = useRef<HTMLFormElement>(null)
  const [values, setValues] = useState<SettingsTexts>(() => textsOfSettings(settings))
  const [state, setState] = useState<Saving>({ isBusy: false, problems: {} })
  const refusalOf = (path: string) =>
    state.error?.details.find((detail) => detail.path === path || detail.path.startsWith(`${path}.`))?.message

  const submit = async (event: Event) => {
    event.preventDefault()
    const read = readSettings(values, settings)
    if ('problems' in read) {
      setState({ isBusy: false, problems: read.problems })
      return focusFirstProblem(ref.current)
    }
    if (Object.keys(read.change).length === 0) return setState({ isBusy: false, problems: {}, message: formWords.unchanged })
    setState({ isBusy: true, problems: {} })
    try {
      await callRaw('PATCH', '/settings', { body: read.change, headers: { 'if-match': etag } })
      announce(formWords.saved)
      onSaved()
    } catch (thrown) {
      setState({ isBusy: false, problems: {}, error: thrown as ApiError })
      focusFirstProblem(ref.current)
    }
  }

  const number = (name: NumberName) => {
    if (name === 'audit_days' && settings.tier === 'compliance') return html`<p key=${name}>${words.compliance}</p>`
    const other = inWords(name, values.numbers[name])
    return html`<${TextField}
      key=${name}
      id=${name}
      label=${words.fields[name]}
      hint=${`${words.hints[name]} ${formWords.outOf(boundsOf(name))}`}
      error=${problemText(name, state.problems[name]) ?? refusalOf(name)}
      value=${values.numbers[name]}
      unit=${other === undefined ? unitOf(name) : `${unitOf(name)} = ${other}`}
      type="number"
      required=${!optionalNumbers.has(name)}
      onInput=${(text: string) => setValues({ ...values, numbers: { ...values.numbers, [name]: text } })}
    />`
  }
  const rfc = (name: keyof SettingsTexts['rfc'], more: { rows?: number; hint?: string; type?: 'password' }) =>
    html`<${more.rows === undefined ? TextField : TextArea}
      isMono
      key=${name}
      id=${`rfc-${name}`}
      label=${words.rfc[name]}
      error=${refusalOf(`rfc.${name}`) ?? (name === 'user' ? refusalOf('rfc.credentials') : undefined)}
      value=${values.rfc[name]}
      onInput=${(text: string) => setValues({ ...values, rfc: { ...values.rfc, [name]: text } })}
      ...${more}
    />`

  return html`<form ref=${ref} class="form broad" novalidate onSubmit=${submit}>
    <div class="columns">
      <${Card} group="retries">${groups.retries.map(number)}</${Card}>
      <${Card} group="retention">${groups.retention.map(number)}</${Card}>
      <${Card} group="receiver">
        <${TextArea}
          isMono
          id="receiver_allowed_cidrs"
          label=${words.fields.receiver_allowed_cidrs}
          hint=${words.hints.receiver_allowed_cidrs}
          error=${refusalOf('receiver_allowed_cidrs')}
          rows=${3}
          value=${values.allowedCidrs}
          onInput=${(text: string) => setValues({ ...values, allowedCidrs: text })}
        />
        ${groups.receiver.map(number)}
      </${Card}>
      <${Card} group="bridge">
        <${Checkbox}
          id="rfc-is-on"
          label=${words.bridgeOn}
          isChecked=${values.isBridgeOn}
          onChange=${(isBridgeOn: boolean) => setValues({ ...values, isBridgeOn })}
        />
        ${
          values.isBridgeOn &&
          html`${rfcTextFields.map((name) => rfc(name, { hint: words.rfcHints[name] }))}
          ${rfc('allowed_functions', { rows: 4, hint: words.rfcHints.allowed_functions })}
          ${rfc('ca_certificate', { rows: 4, hint: words.rfcHints.ca_certificate })} ${rfc('user', {})}
          ${rfc('password', { type: 'password', hint: words.rfcHints.credentials })}`
        }
      </${Card}>
    </div>
    ${state.error && html`<${SaveError} error=${state.error} reload=${reload} />`}
    ${state.message && html`<${Notice} tone="info">${state.message}</${Notice}>`}
    <div class="actions save">
      <button type="submit" class="button primary" disabled=${state.isBusy}>${formWords.save}</button>
    </div>
  </form>`
}

export const SettingsScreen = () => {
  const words = settingsWords()
  const { screens, form } = texts()
  const [version, setVersion] = useState({ number: 0, isSaved: false })
  const live = useLive(`settings ${version.number}`, load, 0)
  const loadAgain = (isSaved: boolean) => setVersion(({ number }) => ({ number: number + 1, isSaved }))
  return html`<${Heading} title=${screens.settings} />
    <p class="quiet">${words.intro}</p>
    ${version.isSaved && html`<${Notice} tone="good">${form.saved}</${Notice}>`}
    <${Loaded} live=${live}>
      ${() =>
        may('admin')
          ? html`<${Form}
              key=${version.number}
              ...${live.data!}
              reload=${() => loadAgain(false)}
              onSaved=${() => {
                scrollTo(0, 0)
                loadAgain(true)
              }}
            />`
          : html`<${ReadOnly} settings=${live.data!.settings} />`}
    </${Loaded}>`
}
