import { useState } from 'preact/hooks'
import { attemptTimes } from '../../src/domain/retry.ts'
import { callRaw, callVersioned, may, type Schemas } from '../api.ts'
import type { Values } from '../form.ts'
import { formatDuration } from '../format.ts'
import { html, type Children } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, locale, texts } from '../preferences.ts'
import { requestFields } from '../request-schemas.ts'
import { checkSettings, settingsFields, type NumberName, type Settings } from '../settings-form.ts'
import * as formCatalogue from '../texts/form.ts'
import * as settingsCatalogue from '../texts/settings.ts'
import { FormFields, Problems, unitOf } from '../ui/fields.ts'
import { FormCard } from '../ui/form.ts'
import { Facts, Heading, Loaded, Notice } from '../ui/parts.ts'
import { useForm } from '../ui/use-form.ts'
import { Workers } from '../ui/workers.ts'

const groups = ['retries', 'retention', 'receiver', 'bridge'] as const
type Group = (typeof groups)[number]

const schedule = ['max_retries', 'retry_ttl_seconds', 'retry_initial_interval_seconds', 'retry_max_interval_seconds'] as const

/** Returns where a setting is shown, which follows from its name. */
const groupOf = (path: string): Group => {
  if (path.endsWith('_days')) return 'retention'
  if (path === 'rfc' || path.startsWith('rfc.')) return 'bridge'
  return path.startsWith('receiver_') ? 'receiver' : 'retries'
}

interface Loading {
  settings: Settings
  etag: string
}

const load = async (signal: AbortSignal): Promise<Loading> => {
  const { data, etag } = await callVersioned<Schemas['SettingsResponse']>('/settings', signal)
  return { settings: data.attributes, etag }
}

/** Returns the unit of a setting, if its name does not say it. */
const countedOf = (name: string): string | undefined => {
  const words = inLanguage(settingsCatalogue)
  if (name === 'max_retries') return words.attempts
  return name === 'receiver_max_requests_per_minute' ? words.requests : undefined
}

const written = (value: number) => value.toLocaleString(locale())

const Card = ({ group, children }: { group: Group; children: Children }) => {
  const words = inLanguage(settingsCatalogue)
  return html`<section class="card" aria-labelledby=${`group-${group}`}>
    <h2 id=${`group-${group}`}>${words.groups[group]}</h2>
    <p class="quiet">${words.groupHints[group]}</p>
    ${children}
  </section>`
}

/** The settings for those who may not change them. */
const ReadOnly = ({ settings }: { settings: Settings }) => {
  const words = inLanguage(settingsCatalogue)
  const { rfc, receiver_allowed_cidrs: ranges } = settings
  const shown = (name: string) => {
    if (name === 'receiver_allowed_cidrs') {
      return ranges.length === 0 ? words.anyAddress : html`<span class="mono">${ranges.join(', ')}</span>`
    }
    const value = settings[name as NumberName]
    if (value === null) return html`<span class="quiet">${name === 'audit_days' ? words.compliance : words.empty}</span>`
    return `${written(value)} ${countedOf(name) ?? unitOf(name, String(value))}`
  }
  const factsOf = (group: Group) =>
    Object.entries(words.fields)
      .filter(([name]) => groupOf(name) === group)
      .map(([name, label]) => [label, shown(name)])
  return html`<${Notice} tone="info">${words.readOnly}</${Notice}>
    <div class="columns">
      ${groups
        .filter((group) => group !== 'bridge')
        .map(
          (group) =>
            html`<${Card} key=${group} group=${group}>
              <${Facts} of=${factsOf(group)} />
              ${group === 'retries' && html`<${Schedule} values=${Object.fromEntries(schedule.map((name) => [name, String(settings[name])]))} />`}
            </${Card}>`,
        )}
      <${Card} group="bridge">
        ${
          rfc === null
            ? html`<p>${words.bridgeOff}</p>`
            : html`<${Facts}
                of=${[
                  [words.fields['rfc.url'], html`<span class="mono">${rfc.url}</span>`],
                  [words.fields['rfc.client'], rfc.client],
                  [words.fields['rfc.language'], rfc.language],
                  [words.fields['rfc.allowed_functions'], html`<span class="mono">${rfc.allowed_functions.join(', ')}</span>`],
                ]}
              />`
        }
      </${Card}>
    </div>`
}

const shownAttempts = 6
const shownRetriesMax = 100

/** Says when a delivery is attempted with these settings. */
const Schedule = ({ values }: { values: Readonly<Record<string, string>> }) => {
  const words = inLanguage(settingsCatalogue)
  const [retries, ttl, first, longest] = schedule.map((name) => Number(values[name] || 'missing')) as [number, number, number, number]
  // While a value is typed, it may be anything.
  if (![ttl, first, longest].every((value) => value > 0) || !(retries >= 0 && retries <= shownRetriesMax)) return null
  const policy = { maxRetries: retries, ttlMs: ttl * 1_000, initialIntervalMs: first * 1_000, maxIntervalMs: longest * 1_000 }
  const starts = attemptTimes(policy)
  const times = starts.map((ms) => (ms === 0 ? '0 s' : formatDuration(ms, locale())))
  return html`<p class="small">${words.schedule(times.slice(0, shownAttempts), starts.length, times.at(-1)!)}</p>`
}

const Form = ({ settings, etag, reload, onSaved }: Loading & { reload: () => void; onSaved: () => void }) => {
  const words = inLanguage(settingsCatalogue)
  const form = useForm({
    fields: settingsFields(requestFields('PATCH /settings'), settings),
    stored: settings,
    etag,
    groups: ['rfc.credentials'],
    check: (values) => Object.fromEntries(Object.entries(checkSettings(values)).map(([path, problem]) => [path, words[problem]])),
  })
  const save = async (body: Values) => {
    await callRaw('PATCH', '/settings', { body, headers: form.headers })
    onSaved()
  }
  const shown = (group: Group) =>
    html`<${FormFields}
        form=${form}
        words=${words}
        has=${(path: string) => groupOf(path) === group}
        more=${{
          max_retries: { unit: words.attempts },
          receiver_max_requests_per_minute: { unit: words.requests },
          'rfc.ca_certificate': { after: html`<${Problems} messages=${form.messagesOf('rfc.credentials')} />` },
        }}
      />
      ${group === 'retries' && html`<${Schedule} values=${form.texts} />`}
      ${group === 'retention' && settings.tier === 'compliance' && html`<p>${words.compliance}</p>`}`
  return html`<${FormCard} form=${form} isBroad onSave=${save} reload=${reload}>
    <div class="columns">${groups.map((group) => html`<${Card} key=${group} group=${group}>${shown(group)}</${Card}>`)}</div>
  </${FormCard}>`
}

export const SettingsScreen = () => {
  const words = inLanguage(settingsCatalogue)
  const { screens } = texts()
  const [version, setVersion] = useState({ number: 0, isSaved: false })
  const live = useLive(`settings ${version.number}`, load, 0)
  const loadAgain = (isSaved: boolean) => setVersion(({ number }) => ({ number: number + 1, isSaved }))
  return html`<${Heading} title=${screens.settings} />
    <p class="quiet">${words.intro}</p>
    ${version.isSaved && html`<${Notice} tone="good">${inLanguage(formCatalogue).saved}</${Notice}>`}
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
    </${Loaded}>
    ${may('admin') && html`<${Workers} />`}`
}
