import type { Schemas } from '../api.ts'
import { html } from '../html.ts'
import { inLanguage } from '../preferences.ts'
import * as subscriptionsCatalogue from '../texts/subscriptions.ts'
import { linkTo, loadDestinations, type Destination } from '../ui/choose-destination.ts'
import { ConfiguredList } from '../ui/configured-list.ts'
import { Badge, Time } from '../ui/parts.ts'

type Attributes = Schemas['EventSubscription']['attributes']

const stateOf = ({ is_active: isActive, attempts, waiting_since: waitingSince }: Attributes) => {
  if (!isActive) return 'inactive'
  if (attempts > 0) return 'failing'
  return waitingSince === null ? 'sent' : 'behind'
}

const statuses = { inactive: 'inactive', failing: 'failing', behind: 'pending', sent: 'active' }

/** How far a subscription is. */
export const SubscriptionState = ({ of }: { of: Attributes }) => {
  const state = stateOf(of)
  return html`<${Badge} status=${statuses[state]} label=${inLanguage(subscriptionsCatalogue).states[state]} />`
}

export const SubscriptionsScreen = () => {
  const words = inLanguage(subscriptionsCatalogue)
  const { name, events, destination_id: destination } = words.fields
  return html`<${ConfiguredList}
    resource="event-subscriptions"
    list="subscriptions"
    words=${words}
    columns=${[name, events, destination, words.waiting, words.status]}
    loadContext=${loadDestinations}
    cells=${(attributes: Attributes, destinations: Destination[]) =>
      html`<td role="cell" class="wide-cell">${attributes.events.map((event) => words.choices.events[event] ?? event).join(', ')}</td>
        <td role="cell" data-label=${destination}>${linkTo(attributes.destination_id, destinations)}</td>
        <td role="cell" class="stack" data-label=${words.waiting}>
          ${attributes.waiting_since === null ? words.nothingWaits : html`<${Time} at=${attributes.waiting_since} />`}
          ${attributes.last_error !== null && html`<span class="small">${attributes.last_error}</span>`}
        </td>
        <td role="cell"><${SubscriptionState} of=${attributes} /></td>`}
  />`
}
