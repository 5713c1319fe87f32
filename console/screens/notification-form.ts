import { quietSecondsBounds, silenceHoursBounds } from '../../src/domain/bounds.ts'
import { callRaw, type Schemas } from '../api.ts'
import { fieldAt, type Values } from '../form.ts'
import { formatDuration } from '../format.ts'
import { html } from '../html.ts'
import { inLanguage, locale } from '../preferences.ts'
import * as formCatalogue from '../texts/form.ts'
import * as notificationsCatalogue from '../texts/notifications.ts'
import { FormField } from '../ui/fields.ts'
import { FormCard } from '../ui/form.ts'
import { useForm } from '../ui/use-form.ts'

const formWords = inLanguage(formCatalogue)
const notificationsWords = inLanguage(notificationsCatalogue)

type Attributes = Schemas['Notification']['attributes']

const events: Schemas['IncidentEvent'][] = [
  'destination.failing',
  'delivery.failed',
  'source.silent',
  'certificate.expiring',
  'repository.not_connected',
  'enrichment.failing',
  'upstream.failing',
  'event_subscription.failing',
]
/** What a new notification starts with. */
const start = { events, quiet_seconds: 900, silence_hours: 72, is_active: true }

const fields = [
  fieldAt('name', 'text', { isRequired: true }),
  fieldAt('events', 'checks', { isRequired: true }),
  fieldAt('destination_id', 'choice', { isRequired: true }),
  fieldAt('quiet_seconds', 'number', {
    isRequired: true,
    isInteger: true,
    minimum: quietSecondsBounds.min,
    maximum: quietSecondsBounds.max,
  }),
  fieldAt('silence_hours', 'number', {
    isRequired: true,
    isInteger: true,
    minimum: silenceHoursBounds.min,
    maximum: silenceHoursBounds.max,
  }),
  fieldAt('is_active', 'switch'),
]

/** @param stored the notification to change, with the ETag of what is shown */
export const NotificationForm = ({
  stored,
  destinations,
  reload,
  onSaved,
}: {
  stored?: { id: string; attributes: Attributes; etag: string }
  destinations: readonly Schemas['Destination'][]
  reload: () => void
  onSaved: (id: string) => void
}) => {
  const words = notificationsWords()
  const { save: saveLabel, seconds } = formWords()
  const form = useForm({ fields, stored: stored?.attributes, start })

  const save = async (body: Values) => {
    const response = stored
      ? await callRaw('PATCH', `/notifications/${stored.id}`, { body, headers: { 'if-match': stored.etag } })
      : await callRaw('POST', '/notifications', { body })
    onSaved(((await response.json()) as Schemas['NotificationResponse']).data.id)
  }

  const quiet = Number(form.texts['quiet_seconds'])
  return html`<${FormCard}
    form=${form}
    action=${stored ? saveLabel : words.create}
    onSave=${save}
    reload=${reload}
    cancelTo=${stored ? undefined : 'notifications'}
  >
    <${FormField} form=${form} path="name" label=${words.name} />
    <${FormField}
      form=${form}
      path="events"
      label=${words.events}
      hint=${words.eventsHint}
      options=${events.map((event) => ({
        value: event,
        label: words.incidents[event],
        hint: words.incidentHints[event],
      }))}
    />
    <${FormField}
      form=${form}
      path="destination_id"
      label=${words.destination}
      hint=${words.destinationHint}
      options=${[{ value: '', label: words.choose }, ...destinations.map(({ id, attributes }) => ({ value: id, label: attributes.name }))]}
    />
    <${FormField}
      form=${form}
      path="quiet_seconds"
      label=${words.quiet}
      hint=${words.quietHint}
      unit=${quiet >= 60 ? `${seconds} = ${formatDuration(quiet * 1_000, locale())}` : seconds}
    />
    <${FormField} form=${form} path="silence_hours" label=${words.silence} hint=${words.silenceHint} unit=${words.hours} />
    <${FormField} form=${form} path="is_active" label=${words.active} hint=${words.activeHint} />
  </${FormCard}>`
}
