import { useRef, useState } from 'preact/hooks'
import { quietSecondsBounds } from '../../src/domain/bounds.ts'
import { callRaw, type ApiError, type Schemas } from '../api.ts'
import { changedEntries, readNumber } from '../form-values.ts'
import { formatDuration } from '../format.ts'
import { html } from '../html.ts'
import { inLanguage, locale, texts } from '../preferences.ts'
import * as notificationsCatalogue from '../texts/notifications.ts'
import { Checkbox, SaveError, Choice, TextField } from '../ui/form.ts'
import { Notice } from '../ui/parts.ts'
import { focusFirstProblem } from '../ui/schema-form.ts'

const notificationsWords = inLanguage(notificationsCatalogue)

type Attributes = Schemas['Notification']['attributes']
type IncidentEvent = Schemas['IncidentEvent']
export type Editable = Pick<Attributes, 'name' | 'events' | 'destination_id' | 'quiet_seconds' | 'is_active'>
type Problems = Partial<Record<keyof Editable, string>>

/** What a new notification starts with. */
export const newNotification: Editable = {
  name: '',
  events: ['destination.failing', 'delivery.failed', 'source.silent', 'certificate.expiring', 'repository.not_connected'],
  destination_id: '',
  quiet_seconds: 900,
  is_active: true,
}

/** @param id of the notification, or undefined to create one  @param etag of the values that were loaded */
export const NotificationForm = ({
  id,
  current,
  etag,
  destinations,
  reload,
  onSaved,
}: {
  id: string | undefined
  current: Editable
  etag: string
  destinations: readonly Schemas['Destination'][]
  reload: () => void
  onSaved: (id: string) => void
}) => {
  const words = notificationsWords()
  const { form: formWords } = texts()
  const ref = useRef<HTMLFormElement>(null)
  const [values, setValues] = useState({ ...current, quiet_seconds: String(current.quiet_seconds) })
  const [state, setState] = useState<{ isBusy: boolean; problems: Problems; error?: ApiError; isUnchanged?: boolean }>({
    isBusy: false,
    problems: {},
  })
  const quiet = readNumber(values.quiet_seconds, quietSecondsBounds)
  const bounds = formWords.between(String(quietSecondsBounds.min), quietSecondsBounds.max.toLocaleString(locale()))
  const problemOf = (name: keyof Editable) =>
    state.problems[name] ?? state.error?.details.find(({ path }) => path.startsWith(name))?.message

  const problems = (): Problems => ({
    ...(values.name.trim() === '' && { name: formWords.required }),
    ...(values.events.length === 0 && { events: words.noEvents }),
    ...(values.destination_id === '' && { destination_id: words.noDestination }),
    ...('problem' in quiet && { quiet_seconds: formWords.outOf(bounds) }),
  })

  const submit = async (event: Event) => {
    event.preventDefault()
    const found = problems()
    if (Object.keys(found).length > 0) {
      setState({ isBusy: false, problems: found })
      return focusFirstProblem(ref.current)
    }
    const next = { ...values, name: values.name.trim(), quiet_seconds: 'value' in quiet ? quiet.value : null }
    const body = id === undefined ? next : changedEntries({ ...current }, next)
    if (Object.keys(body).length === 0) return setState({ isBusy: false, problems: {}, isUnchanged: true })
    setState({ isBusy: true, problems: {} })
    try {
      const response =
        id === undefined
          ? await callRaw('POST', '/notifications', { body })
          : await callRaw('PATCH', `/notifications/${id}`, { body, headers: { 'if-match': etag } })
      onSaved(((await response.json()) as Schemas['NotificationResponse']).data.id)
    } catch (thrown) {
      setState({ isBusy: false, problems: {}, error: thrown as ApiError })
      focusFirstProblem(ref.current)
    }
  }

  const choose = (event: IncidentEvent, isChosen: boolean) => {
    const isWanted = (each: IncidentEvent) => (each === event ? isChosen : values.events.includes(each))
    setValues({ ...values, events: newNotification.events.filter(isWanted) })
  }
  const seconds = 'value' in quiet && quiet.value !== null && quiet.value >= 60 ? ` = ${formatDuration(quiet.value * 1_000, locale())}` : ''

  return html`<form ref=${ref} class="card form" novalidate onSubmit=${submit}>
    ${state.error && html`<${SaveError} error=${state.error} reload=${reload} />`}
    ${state.isUnchanged && html`<${Notice} tone="info">${formWords.unchanged}</${Notice}>`}
    <${TextField}
      id="notification-name"
      label=${words.name}
      value=${values.name}
      error=${problemOf('name')}
      required
      onInput=${(name: string) => setValues({ ...values, name })}
    />
    <fieldset aria-describedby="events-hint">
      <legend>${words.events}</legend>
      ${problemOf('events') !== undefined && html`<p class="problem">${problemOf('events')}</p>`}
      <p id="events-hint" class="small">${words.eventsHint}</p>
      ${newNotification.events.map(
        (event) =>
          html`<${Checkbox}
            key=${event}
            id=${event}
            label=${words.incidents[event]}
            hint=${words.incidentHints[event]}
            isChecked=${values.events.includes(event)}
            onChange=${(isChosen: boolean) => choose(event, isChosen)}
          />`,
      )}
    </fieldset>
    <${Choice}
      id="notification-destination"
      label=${words.destination}
      hint=${words.destinationHint}
      error=${problemOf('destination_id')}
      value=${values.destination_id}
      options=${[['', words.choose], ...destinations.map((destination) => [destination.id, destination.attributes.name])]}
      onInput=${(destinationId: string) => setValues({ ...values, destination_id: destinationId })}
    />
    <${TextField}
      id="notification-quiet"
      label=${words.quiet}
      hint=${`${words.quietHint} ${formWords.outOf(bounds)}`}
      error=${problemOf('quiet_seconds')}
      value=${values.quiet_seconds}
      unit=${formWords.seconds + seconds}
      type="number"
      required
      onInput=${(text: string) => setValues({ ...values, quiet_seconds: text })}
    />
    <${Checkbox}
      id="notification-active"
      label=${words.active}
      hint=${words.activeHint}
      isChecked=${values.is_active}
      onChange=${(isActive: boolean) => setValues({ ...values, is_active: isActive })}
    />
    <div class="actions save">
      <button type="submit" class="button primary" disabled=${state.isBusy}>${id === undefined ? words.create : formWords.save}</button>
    </div>
  </form>`
}
