import { call, may, type Schemas } from '../api.ts'
import { formatDuration } from '../format.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, locale, texts } from '../preferences.ts'
import { addressOf, route } from '../router.ts'
import * as notificationsCatalogue from '../texts/notifications.ts'
import { Badge, Heading, Loaded, Pager, Table } from '../ui/parts.ts'

const notificationsWords = inLanguage(notificationsCatalogue)

type Notification = Schemas['Notification']

const perPage = 25
const destinationsMax = 100

const pageOf = (query: URLSearchParams) => Math.max(1, Math.trunc(Number(query.get('page') ?? 1)) || 1)

interface Loading {
  notifications: Schemas['NotificationList']
  destinationNames: Map<string, string>
}

const load = async (page: number, signal: AbortSignal): Promise<Loading> => {
  const [notifications, destinations] = await Promise.all([
    call<Schemas['NotificationList']>('GET', '/notifications', { query: { page, per_page: perPage }, signal }),
    call<Schemas['DestinationList']>('GET', '/destinations', { query: { per_page: destinationsMax }, signal }),
  ])
  return { notifications, destinationNames: new Map(destinations.data.map(({ id, attributes }) => [id, attributes.name])) }
}

const Row = ({ notification: { id, attributes }, destinationName }: { notification: Notification; destinationName: string }) => {
  const words = notificationsWords()
  const { name, events, destination_id: destinationId, quiet_seconds: quiet, is_active: isActive } = attributes
  return html`<tr role="row">
    <td role="cell" class="main-cell"><a href=${`notifications/${id}`}>${name}</a></td>
    <td role="cell" class="wide-cell">${events.map((event) => words.incidents[event]).join(', ')}</td>
    <td role="cell" data-label=${words.destination}><a href=${`destinations/${destinationId}`}>${destinationName}</a></td>
    <td role="cell" data-label=${words.quiet}>${formatDuration(quiet * 1_000, locale())}</td>
    <td role="cell"><${Badge} status=${isActive ? 'active' : 'inactive'} label=${isActive ? words.active : words.inactive} /></td>
  </tr>`
}

export const NotificationsScreen = () => {
  const words = notificationsWords()
  const { screens } = texts()
  const page = pageOf(route.value.query)
  const live = useLive(`notifications ${page}`, (signal) => load(page, signal))
  return html`<${Heading} title=${screens.notifications}>
      ${may('member') && html`<a class="button primary" href="notifications/new">${words.create}</a>`}
    </${Heading}>
    <p class="quiet">${words.intro}</p>
    <${Loaded} live=${live}>
      ${() => {
        const { notifications, destinationNames } = live.data!
        const { data, meta } = notifications
        if (data.length === 0) return html`<p class="empty">${words.empty}</p>`
        return html`<${Table}
            label=${screens.notifications}
            columns=${[words.name, words.events, words.destination, words.quiet, words.status]}
          >
            ${data.map((notification) => {
              const { destination_id: destinationId } = notification.attributes
              const name = destinationNames.get(destinationId) ?? destinationId
              return html`<${Row} key=${notification.id} notification=${notification} destinationName=${name} />`
            })}
          </${Table}>
          <${Pager}
            page=${page}
            perPage=${perPage}
            total=${meta.total}
            addressOfPage=${(to: number) => addressOf('notifications', { page: to === 1 ? undefined : String(to) })}
          />`
      }}
    </${Loaded}>`
}
