import type { Schemas } from '../api.ts'
import { formatDuration } from '../format.ts'
import { html } from '../html.ts'
import { inLanguage, locale } from '../preferences.ts'
import * as notificationsCatalogue from '../texts/notifications.ts'
import { linkTo, loadDestinations, type Destination } from '../ui/choose-destination.ts'
import { ConfiguredList } from '../ui/configured-list.ts'
import { Badge } from '../ui/parts.ts'

type Attributes = Schemas['Notification']['attributes']

/** Whether a notification announces anything. */
export const NotificationState = ({ of: { is_active: isActive } }: { of: Attributes }) => {
  const words = inLanguage(notificationsCatalogue)
  return html`<${Badge} status=${isActive ? 'active' : 'inactive'} label=${isActive ? words.fields.is_active : words.inactive} />`
}

export const NotificationsScreen = () => {
  const words = inLanguage(notificationsCatalogue)
  const { name, events, destination_id: destination, quiet_seconds: quiet } = words.fields
  return html`<${ConfiguredList}
    resource="notifications"
    list="notifications"
    words=${words}
    columns=${[name, events, destination, quiet, words.status]}
    loadContext=${loadDestinations}
    cells=${(attributes: Attributes, destinations: Destination[]) =>
      html`<td role="cell" class="wide-cell">${attributes.events.map((event) => words.choices.events[event]).join(', ')}</td>
        <td role="cell" data-label=${destination}>${linkTo(attributes.destination_id, destinations)}</td>
        <td role="cell" data-label=${quiet}>${formatDuration(attributes.quiet_seconds * 1_000, locale())}</td>
        <td role="cell"><${NotificationState} of=${attributes} /></td>`}
  />`
}
