import { useState } from 'preact/hooks'
import { callRaw, callVersioned, may, type Schemas } from '../api.ts'
import { fieldAt, type Values } from '../form.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, texts } from '../preferences.ts'
import { navigate } from '../router.ts'
import * as formCatalogue from '../texts/form.ts'
import * as subscriptionsCatalogue from '../texts/subscriptions.ts'
import { loadDestinations, NewWithDestination, ofTypes, type Destination } from '../ui/choose-destination.ts'
import { FormField } from '../ui/fields.ts'
import { FormCard } from '../ui/form.ts'
import { announce, Confirm, ExactTime, Facts, Heading, Loaded, Notice, Time } from '../ui/parts.ts'
import { useForm } from '../ui/use-form.ts'
import { SubscriptionForm } from './subscription-form.ts'
import { SubscriptionState } from './subscriptions.ts'

const formWords = inLanguage(formCatalogue)
const subscriptionsWords = inLanguage(subscriptionsCatalogue)

type Subscription = Schemas['EventSubscription']

interface Loading {
  subscription: Subscription
  etag: string
  destinations: Destination[]
}

const load = async (id: string, signal: AbortSignal): Promise<Loading> => {
  const [{ data, etag }, destinations] = await Promise.all([
    callVersioned<Schemas['EventSubscriptionResponse']>(`/event-subscriptions/${id}`, signal),
    loadDestinations(signal),
  ])
  return { subscription: data, etag, destinations }
}

/** Types of the destinations that events can be sent to. */
const types = ['webhook']

const SubscriptionFacts = ({ subscription: { attributes }, destinations }: { subscription: Subscription; destinations: Destination[] }) => {
  const words = subscriptionsWords()
  const destination = destinations.find(({ id }) => id === attributes.destination_id)
  const { attempts, failing_since: failingSince, next_attempt_at: next, last_error: error, last_error_code: code } = attributes
  const { waiting_since: waitingSince, last_sent_at: lastSent } = attributes
  return html`<section class="card" aria-label=${attributes.name}>
    <${Facts}
      of=${[
        [words.events, attributes.events.map((event) => words.names[event] ?? event).join(', ')],
        [
          words.destination,
          html`<a href=${`destinations/${attributes.destination_id}`}>${destination?.attributes.name ?? attributes.destination_id}</a>`,
        ],
        [words.waiting, waitingSince === null ? words.nothingWaits : html`<${Time} at=${waitingSince} />`],
        [words.lastSent, lastSent === null ? words.never : html`<${Time} at=${lastSent} />`],
        ...(attempts > 0
          ? [
              [words.attempts, attempts],
              [words.failingSince, failingSince !== null && html`<${ExactTime} at=${failingSince} />`],
              [words.nextAttempt, next !== null && html`<${Time} at=${next} isPlanned />`],
              [words.error, html`${code !== null && html`<code>${code}</code>`} ${error}`],
            ]
          : []),
        [words.cursor, html`<code>${attributes.cursor}</code>`],
        [words.created, html`<${ExactTime} at=${attributes.created_at} />`],
        [words.changed, html`<${ExactTime} at=${attributes.updated_at} />`],
      ]}
    />
  </section>`
}

const replayFields = [fieldAt('after', 'text')]

const Replay = ({ id, onReplayed, onCancel }: { id: string; onReplayed: () => void; onCancel: () => void }) => {
  const words = subscriptionsWords()
  const form = useForm({ fields: replayFields, start: {} })
  const replay = async (body: Values) => {
    await callRaw('POST', `/event-subscriptions/${id}/replay`, { body })
    onReplayed()
  }
  return html`<${FormCard} form=${form} title=${words.replayTitle} action=${words.replay} onSave=${replay} onCancel=${onCancel}>
    <${FormField} form=${form} path="after" label=${words.cursor} hint=${words.replayHint} />
  </${FormCard}>`
}

const Existing = ({ id }: { id: string }) => {
  const words = subscriptionsWords()
  const { screens } = texts()
  const form = formWords()
  const [version, setVersion] = useState({ number: 0, message: '' })
  const [open, setOpen] = useState<'nothing' | 'form' | 'replay'>('nothing')
  const [isAsked, setAsked] = useState(false)
  const live = useLive(`${id} ${version.number}`, (signal) => load(encodeURIComponent(id), signal), open === 'form' ? 0 : undefined)
  const done = (message: string) => {
    announce(message)
    setOpen('nothing')
    setVersion(({ number }) => ({ number: number + 1, message }))
  }
  const attributes = live.data?.subscription.attributes
  const remove = async () => {
    await callRaw('DELETE', `/event-subscriptions/${id}`, { headers: { 'if-match': live.data!.etag } })
    navigate('subscriptions')
  }
  const toggle = (which: 'form' | 'replay') => () => setOpen(open === which ? 'nothing' : which)
  return html`<${Heading} title=${attributes?.name ?? screens.subscriptions}>
      ${attributes && html`<${SubscriptionState} of=${attributes} />`}
    </${Heading}>
    ${version.message !== '' && open === 'nothing' && html`<${Notice} tone="good">${version.message}</${Notice}>`}
    <${Loaded} live=${live}>
      ${() => {
        const { subscription, etag, destinations } = live.data!
        return html`<div class="actions">
            ${
              may('member') &&
              html`<button type="button" class="button" aria-expanded=${open === 'replay'} onClick=${toggle('replay')}>
                  ${words.replay}
                </button>
                <button type="button" class="button" aria-expanded=${open === 'form'} onClick=${toggle('form')}>${form.edit}</button>`
            }
            ${may('admin') && html`<button type="button" class="button" onClick=${() => setAsked(true)}>${form.delete}</button>`}
          </div>
          ${
            open === 'replay' &&
            html`<${Replay} id=${encodeURIComponent(id)} onReplayed=${() => done(words.replayed)} onCancel=${() => setOpen('nothing')} />`
          }
          ${
            open === 'form'
              ? html`<${SubscriptionForm}
                  key=${version.number}
                  stored=${{ id, attributes: subscription.attributes, etag }}
                  destinations=${ofTypes(types, destinations, subscription.attributes.destination_id)}
                  reload=${() => setVersion(({ number }) => ({ number: number + 1, message: '' }))}
                  onSaved=${() => done(form.saved)}
                />`
              : html`<${SubscriptionFacts} subscription=${subscription} destinations=${destinations} />`
          }
          ${
            isAsked &&
            html`<${Confirm}
              isDestructive
              title=${words.confirmDelete}
              action=${form.delete}
              onConfirm=${remove}
              onClose=${() => setAsked(false)}
            >
              <p>${words.deleteEffect(subscription.attributes.name)}</p>
            </${Confirm}>`
          }`
      }}
    </${Loaded}>`
}

const New = () => {
  const words = subscriptionsWords()
  return html`<${NewWithDestination}
    title=${words.createTitle}
    types=${types}
    none=${words.noDestinations}
    form=${(destinations: Destination[], reload: () => void) =>
      html`<${SubscriptionForm}
        destinations=${destinations}
        reload=${reload}
        onSaved=${(id: string) => navigate(`subscriptions/${id}`)}
      />`}
  />`
}

export const SubscriptionScreen = ({ id }: { id: string }) =>
  html`<p class="back"><a href="subscriptions">${subscriptionsWords().back}</a></p>
    ${id === 'new' ? html`<${New} />` : html`<${Existing} key=${id} id=${id} />`}`
