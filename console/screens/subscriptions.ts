import { call, may, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, texts } from '../preferences.ts'
import { addressOf, route } from '../router.ts'
import * as subscriptionsCatalogue from '../texts/subscriptions.ts'
import { Badge, Heading, Loaded, Pager, Table, Time } from '../ui/parts.ts'

const subscriptionsWords = inLanguage(subscriptionsCatalogue)

type Subscription = Schemas['EventSubscription']

const perPage = 25
const destinationsMax = 100

const pageOf = (query: URLSearchParams) => Math.max(1, Math.trunc(Number(query.get('page') ?? 1)) || 1)

interface Loading {
  subscriptions: Schemas['EventSubscriptionList']
  destinationNames: Map<string, string>
}

const load = async (page: number, signal: AbortSignal): Promise<Loading> => {
  const [subscriptions, destinations] = await Promise.all([
    call<Schemas['EventSubscriptionList']>('GET', '/event-subscriptions', { query: { page, per_page: perPage }, signal }),
    call<Schemas['DestinationList']>('GET', '/destinations', { query: { per_page: destinationsMax }, signal }),
  ])
  return { subscriptions, destinationNames: new Map(destinations.data.map(({ id, attributes }) => [id, attributes.name])) }
}

const stateOf = ({ is_active: isActive, attempts, waiting_since: waitingSince }: Subscription['attributes']) => {
  if (!isActive) return 'inactive'
  if (attempts > 0) return 'failing'
  return waitingSince === null ? 'sent' : 'behind'
}

const statuses = { inactive: 'inactive', failing: 'failing', behind: 'pending', sent: 'active' }

/** How far a subscription is. */
export const SubscriptionState = ({ of }: { of: Subscription['attributes'] }) => {
  const state = stateOf(of)
  return html`<${Badge} status=${statuses[state]} label=${subscriptionsWords().states[state]} />`
}

const Row = ({ subscription: { id, attributes }, destinationName }: { subscription: Subscription; destinationName: string }) => {
  const words = subscriptionsWords()
  const { name, events, destination_id: destinationId, waiting_since: waitingSince, last_error: error } = attributes
  return html`<tr role="row">
    <td role="cell" class="main-cell"><a href=${`subscriptions/${id}`}>${name}</a></td>
    <td role="cell" class="wide-cell">${events.map((event) => words.names[event] ?? event).join(', ')}</td>
    <td role="cell" data-label=${words.destination}><a href=${`destinations/${destinationId}`}>${destinationName}</a></td>
    <td role="cell" class="stack" data-label=${words.waiting}>
      ${waitingSince === null ? words.nothingWaits : html`<${Time} at=${waitingSince} />`}
      ${error !== null && html`<span class="small">${error}</span>`}
    </td>
    <td role="cell"><${SubscriptionState} of=${attributes} /></td>
  </tr>`
}

export const SubscriptionsScreen = () => {
  const words = subscriptionsWords()
  const { screens } = texts()
  const page = pageOf(route.value.query)
  const live = useLive(`subscriptions ${page}`, (signal) => load(page, signal))
  return html`<${Heading} title=${screens.subscriptions}>
      ${may('member') && html`<a class="button primary" href="subscriptions/new">${words.create}</a>`}
    </${Heading}>
    <p class="quiet">${words.intro}</p>
    <${Loaded} live=${live}>
      ${() => {
        const { subscriptions, destinationNames } = live.data!
        const { data, meta } = subscriptions
        if (data.length === 0) return html`<p class="empty">${words.empty}</p>`
        return html`<${Table}
            label=${screens.subscriptions}
            columns=${[words.name, words.events, words.destination, words.waiting, words.status]}
          >
            ${data.map((subscription) => {
              const { destination_id: destinationId } = subscription.attributes
              const name = destinationNames.get(destinationId) ?? destinationId
              return html`<${Row} key=${subscription.id} subscription=${subscription} destinationName=${name} />`
            })}
          </${Table}>
          <${Pager}
            page=${page}
            perPage=${perPage}
            total=${meta.total}
            addressOfPage=${(to: number) => addressOf('subscriptions', { page: to === 1 ? undefined : String(to) })}
          />`
      }}
    </${Loaded}>`
}
