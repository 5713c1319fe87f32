import { call, callRaw, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage } from '../preferences.ts'
import { navigate } from '../router.ts'
import * as destinationsCatalogue from '../texts/destinations.ts'
import { announce, Confirm, Loaded } from '../ui/parts.ts'

const destinationsWords = inLanguage(destinationsCatalogue)

interface Asked {
  id: string
  name: string
  onClose: () => void
}

const Named = ({ text, names }: { text: string; names: string[] }) =>
  names.length === 0
    ? null
    : html`<p>${text}</p>
        <ul>
          ${names.map((name) => html`<li key=${name}><strong>${name}</strong></li>`)}
        </ul>`

const loadRemoval = async (id: string, signal: AbortSignal) => {
  const [removal, statistics] = await Promise.all([
    call<Schemas['RemovalResponse']>('DELETE', `/destinations/${id}`, { query: { dry_run: true }, signal, changesNothing: true }),
    call<Schemas['DestinationStatsList']>('GET', '/stats/destinations', { query: { destination_id: id }, signal }),
  ])
  const { pending = 0, held = 0, retrying = 0, failed = 0 } = statistics.data[0]?.attributes.current_deliveries ?? {}
  return { removal: removal.data, cancelled: pending + held + retrying + failed }
}

/** Asks whether to delete a destination, and says what goes with it. */
export const DeleteDestination = ({ id, name, onClose }: Asked) => {
  const words = destinationsWords()
  const live = useLive(id, (signal) => loadRemoval(id, signal), 0)
  // Nobody confirms what is not shown yet.
  if (!live.data && !live.error) return null
  const remove = async () => {
    await callRaw('DELETE', `/destinations/${id}`)
    announce(words.wasDeleted)
    navigate('destinations')
  }
  return html`<${Confirm} title=${words.deleteOf(name)} action=${words.delete} onConfirm=${remove} onClose=${onClose}>
    <${Loaded} live=${live}>
      ${() => {
        const { removal, cancelled } = live.data!
        const { removed_connections: connections, removed_notifications: notifications, unwired_repositories: unwired } = removal
        return html`<p>${words.deleteErases}</p>
          <p>${words.deleteCancels(cancelled)}</p>
          <${Named} text=${words.deleteConnections} names=${connections.map((each) => each.name)} />
          <${Named} text=${words.deleteUnwired} names=${unwired.map((each) => `${each.name} (${each.repo_id})`)} />
          <${Named} text=${words.deleteNotifications} names=${notifications.map((each) => each.name)} />
          ${connections.length + notifications.length === 0 && html`<p>${words.deleteAlone}</p>`}`
      }}
    </${Loaded}>
  </${Confirm}>`
}

/** Asks whether to revoke the links in all mails that were sent to a destination. */
export const RevokeLinks = ({ id, name, onClose }: Asked) => {
  const words = destinationsWords()
  const revoke = async () => {
    await callRaw('POST', `/destinations/${id}/download-links/revoke`)
    announce(words.wasRevoked)
  }
  return html`<${Confirm} title=${words.revokeTitle} action=${words.revoke} onConfirm=${revoke} onClose=${onClose}>
    <p>${words.revokeText(name)}</p>
  </${Confirm}>`
}
