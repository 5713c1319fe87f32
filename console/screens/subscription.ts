import { callRaw, type Schemas } from '../api.ts'
import type { Values } from '../form.ts'
import { html } from '../html.ts'
import { inLanguage } from '../preferences.ts'
import { requestFields } from '../request-schemas.ts'
import { changed } from '../schema-form.ts'
import * as subscriptionsCatalogue from '../texts/subscriptions.ts'
import { choicesOf, linkTo, loadDestinations, type Destination } from '../ui/choose-destination.ts'
import { configuredScreen } from '../ui/configured-screen.ts'
import type { Fact } from '../ui/field-facts.ts'
import { FormFields } from '../ui/fields.ts'
import { FormCard } from '../ui/form.ts'
import { ObjectForm, type FormProps } from '../ui/object-form.ts'
import { ExactTime, Time } from '../ui/parts.ts'
import { useForm } from '../ui/use-form.ts'
import { SubscriptionState } from './subscriptions.ts'

type Attributes = Schemas['EventSubscription']['attributes']

/** Types of the destinations that events can be sent to. */
const types = ['webhook']

/** Returns how far a subscription is. */
const factsOfState = (attributes: Attributes): Fact[] => {
  const words = inLanguage(subscriptionsCatalogue)
  const { waiting_since: waitingSince, last_sent_at: lastSent, cursor } = attributes
  const { attempts, failing_since: failingSince, next_attempt_at: next, last_error: error, last_error_code: code } = attributes
  return [
    [words.waiting, waitingSince === null ? words.nothingWaits : html`<${Time} at=${waitingSince} />`],
    [words.lastSent, lastSent === null ? words.never : html`<${Time} at=${lastSent} />`],
    ...(attempts > 0
      ? ([
          [words.attempts, attempts],
          [words.failingSince, failingSince !== null && html`<${ExactTime} at=${failingSince} />`],
          [words.nextAttempt, next !== null && html`<${Time} at=${next} isPlanned />`],
          [words.error, html`${code !== null && html`<code>${code}</code>`} ${error}`],
        ] satisfies Fact[])
      : []),
    [words.fields.after, html`<code>${cursor}</code>`],
  ]
}

const Replay = ({ id, onReplayed, onCancel }: { id: string; onReplayed: () => void; onCancel: () => void }) => {
  const words = inLanguage(subscriptionsCatalogue)
  const form = useForm({ fields: requestFields('POST /event-subscriptions/:id/replay') })
  const replay = async (body: Values) => {
    await callRaw('POST', `/event-subscriptions/${id}/replay`, { body })
    onReplayed()
  }
  return html`<${FormCard} form=${form} title=${words.replayTitle} action=${words.replay} onSave=${replay} onCancel=${onCancel}>
    <${FormFields} form=${form} words=${words} />
  </${FormCard}>`
}

// Where a subscription begins is changed by sending again.
const subscriptionFields = () =>
  changed(requestFields('POST /event-subscriptions'), { destination_id: { input: 'choice' } }).filter(({ path }) => path !== 'after')

/** What a new subscription starts with. */
const start = { events: ['document.delivered', 'document.failed'] }

const SubscriptionForm = ({ stored, destinations, ...rest }: FormProps<Attributes> & { destinations: readonly Destination[] }) => {
  const words = inLanguage(subscriptionsCatalogue)
  const form = useForm({
    fields: subscriptionFields(),
    stored: stored?.attributes,
    etag: stored?.etag,
    start,
  })
  return html`<${ObjectForm}
    form=${form}
    resource="event-subscriptions"
    list="subscriptions"
    words=${words}
    stored=${stored}
    more=${{ destination_id: { options: choicesOf(types, destinations, stored?.attributes.destination_id) } }}
    ...${rest}
  />`
}

export const SubscriptionScreen = ({ id }: { id: string }) => {
  const words = inLanguage(subscriptionsCatalogue)
  return configuredScreen<Attributes, Destination[]>(id, {
    resource: 'event-subscriptions',
    list: 'subscriptions',
    words,
    loadContext: loadDestinations,
    whyNot: (destinations) => (choicesOf(types, destinations).length === 0 ? words.noDestinations : undefined),
    state: (attributes) => html`<${SubscriptionState} of=${attributes} />`,
    panels: {
      replay: {
        label: words.replay,
        show: (done, close) => html`<${Replay} id=${encodeURIComponent(id)} onReplayed=${() => done(words.replayed)} onCancel=${close} />`,
      },
    },
    fields: subscriptionFields(),
    values: ({ destination_id: destinationId }, destinations) => ({ destination_id: linkTo(destinationId, destinations) }),
    facts: factsOfState,
    form: (props, destinations) => html`<${SubscriptionForm} ...${props} destinations=${destinations} />`,
  })
}
