import { callRaw, type Schemas } from '../api.ts'
import { fieldAt, type Values } from '../form.ts'
import { html } from '../html.ts'
import { inLanguage } from '../preferences.ts'
import * as formCatalogue from '../texts/form.ts'
import * as subscriptionsCatalogue from '../texts/subscriptions.ts'
import { FormField } from '../ui/fields.ts'
import { FormCard } from '../ui/form.ts'
import { useForm } from '../ui/use-form.ts'

const formWords = inLanguage(formCatalogue)
const subscriptionsWords = inLanguage(subscriptionsCatalogue)

type Attributes = Schemas['EventSubscription']['attributes']

/** What a new subscription starts with. */
const start = { events: ['document.delivered', 'document.failed'], is_active: true }

const fields = [
  fieldAt('name', 'text', { isRequired: true }),
  fieldAt('events', 'checks', { isRequired: true }),
  fieldAt('destination_id', 'choice', { isRequired: true }),
  fieldAt('is_active', 'switch'),
]

/** @param stored the subscription to change, with the ETag of what is shown */
export const SubscriptionForm = ({
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
  const words = subscriptionsWords()
  const form = useForm({ fields, stored: stored?.attributes, start })

  const save = async (body: Values) => {
    const response = stored
      ? await callRaw('PATCH', `/event-subscriptions/${stored.id}`, { body, headers: { 'if-match': stored.etag } })
      : await callRaw('POST', '/event-subscriptions', { body })
    onSaved(((await response.json()) as Schemas['EventSubscriptionResponse']).data.id)
  }

  return html`<${FormCard}
    form=${form}
    action=${stored ? formWords().save : words.create}
    onSave=${save}
    reload=${reload}
    cancelTo=${stored ? undefined : 'subscriptions'}
  >
    <${FormField} form=${form} path="name" label=${words.name} />
    <${FormField}
      form=${form}
      path="events"
      label=${words.events}
      hint=${words.eventsHint}
      options=${Object.entries(words.names).map(([value, label]) => ({ value, label }))}
    />
    <${FormField}
      form=${form}
      path="destination_id"
      label=${words.destination}
      hint=${words.destinationHint}
      options=${[{ value: '', label: words.choose }, ...destinations.map(({ id, attributes }) => ({ value: id, label: attributes.name }))]}
    />
    <${FormField} form=${form} path="is_active" label=${words.active} hint=${words.activeHint} />
  </${FormCard}>`
}
