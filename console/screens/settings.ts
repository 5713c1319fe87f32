import { useState } from 'preact/hooks'
import { settingsBounds } from '../../src/domain/bounds.ts'
import { attemptTimes } from '../../src/domain/retry.ts'
import { callRaw, callVersioned, may, type Schemas } from '../api.ts'
import type { Values } from '../form.ts'
import { formatBytes, formatDuration } from '../format.ts'
import { html, type Children } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, locale, texts } from '../preferences.ts'
import { checkSettings, settingsFields, type NumberName, type Settings } from '../settings-form.ts'
import * as formCatalogue from '../texts/form.ts'
import * as settingsCatalogue from '../texts/settings.ts'
import { FormField, Problems } from '../ui/fields.ts'
import { FormCard } from '../ui/form.ts'
import { Facts, Heading, Loaded, Notice } from '../ui/parts.ts'
import { useForm } from '../ui/use-form.ts'

const formWords = inLanguage(formCatalogue)
const settingsWords = inLanguage(settingsCatalogue)

const groups = {
  retries: ['max_retries', 'retry_ttl_seconds', 'retry_initial_interval_seconds', 'retry_max_interval_seconds'],
  retention: ['captured_requests_days', 'captured_bodies_days', 'content_days', 'events_days', 'audit_days'],
  receiver: ['receiver_max_bytes', 'receiver_max_requests_per_minute'],
} as const satisfies Record<string, NumberName[]>

type Group = keyof typeof groups | 'bridge'

interface Loading {
  settings: Settings
  etag: string
}

const load = async (signal: AbortSignal): Promise<Loading> => {
  const { data, etag } = await callVersioned<Schemas['SettingsResponse']>('/settings', signal)
  return { settings: data.attributes, etag }
}

const unitOf = (name: NumberName): string => {
  const form = formWords()
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
            ${group === 'retries' && html`<${Schedule} values=${Object.fromEntries(groups.retries.map((name) => [name, String(settings[name])]))} />`}
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

const shownAttempts = 6

/** Says when a delivery is attempted with these settings. */
const Schedule = ({ values }: { values: Readonly<Record<string, string>> }) => {
  const words = settingsWords()
  const [retries, ttl, first, longest] = groups.retries.map((name) => Number(values[name] || 'missing')) as [number, number, number, number]
  // While a value is typed, it may be anything.
  if (![ttl, first, longest].every((value) => value > 0) || !(retries >= 0 && retries <= settingsBounds.max_retries.max)) return null
  const policy = { maxRetries: retries, ttlMs: ttl * 1_000, initialIntervalMs: first * 1_000, maxIntervalMs: longest * 1_000 }
  const starts = attemptTimes(policy)
  const times = starts.map((ms) => (ms === 0 ? '0 s' : formatDuration(ms, locale())))
  return html`<p class="small">${words.schedule(times.slice(0, shownAttempts), starts.length, times.at(-1)!)}</p>`
}

const Form = ({ settings, etag, reload, onSaved }: Loading & { reload: () => void; onSaved: () => void }) => {
  const words = settingsWords()
  const { save: saveLabel } = formWords()
  const form = useForm({
    fields: settingsFields(settings),
    stored: settings,
    groups: ['rfc.credentials'],
    check: (values) => Object.fromEntries(Object.entries(checkSettings(values)).map(([path, problem]) => [path, words[problem]])),
  })
  const save = async (body: Values) => {
    await callRaw('PATCH', '/settings', { body, headers: { 'if-match': etag } })
    onSaved()
  }
  const number = (name: NumberName) => {
    if (name === 'audit_days' && settings.tier === 'compliance') return html`<p key=${name}>${words.compliance}</p>`
    const other = inWords(name, form.texts[name]!)
    const unit = other === undefined ? unitOf(name) : `${unitOf(name)} = ${other}`
    return html`<${FormField} key=${name} form=${form} path=${name} label=${words.fields[name]} hint=${words.hints[name]} unit=${unit} />`
  }
  const rfc = (name: Exclude<keyof typeof words.rfcHints, 'credentials'>) =>
    html`<${FormField} form=${form} path=${`rfc.${name}`} label=${words.rfc[name]} hint=${words.rfcHints[name]} rows=${4} isMono />`
  return html`<${FormCard} form=${form} action=${saveLabel} isBroad onSave=${save} reload=${reload}>
    <div class="columns">
      <${Card} group="retries">${groups.retries.map(number)}<${Schedule} values=${form.texts} /></${Card}>
      <${Card} group="retention">${groups.retention.map(number)}</${Card}>
      <${Card} group="receiver">
        <${FormField}
          form=${form}
          path="receiver_allowed_cidrs"
          label=${words.fields.receiver_allowed_cidrs}
          hint=${words.hints.receiver_allowed_cidrs}
        />
        ${groups.receiver.map(number)}
      </${Card}>
      <${Card} group="bridge">
        <${FormField} form=${form} path="rfc" label=${words.bridgeOn} />
        ${
          form.texts['rfc'] === 'true' &&
          html`${rfc('url')} ${rfc('client')} ${rfc('language')} ${rfc('allowed_functions')} ${rfc('ca_certificate')}
            <${Problems} messages=${form.messagesOf('rfc.credentials')} />
            <${FormField} form=${form} path="rfc.credentials.user" label=${words.rfc.user} isMono />
            <${FormField} form=${form} path="rfc.credentials.password" label=${words.rfc.password} hint=${words.rfcHints.credentials} />`
        }
      </${Card}>
    </div>
  </${FormCard}>`
}

export const SettingsScreen = () => {
  const words = settingsWords()
  const { screens } = texts()
  const [version, setVersion] = useState({ number: 0, isSaved: false })
  const live = useLive(`settings ${version.number}`, load, 0)
  const loadAgain = (isSaved: boolean) => setVersion(({ number }) => ({ number: number + 1, isSaved }))
  return html`<${Heading} title=${screens.settings} />
    <p class="quiet">${words.intro}</p>
    ${version.isSaved && html`<${Notice} tone="good">${formWords().saved}</${Notice}>`}
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
