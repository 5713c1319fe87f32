import { useState } from 'preact/hooks'
import { call, callRaw, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage } from '../preferences.ts'
import { navigate } from '../router.ts'
import * as destinationsCatalogue from '../texts/destinations.ts'
import { announce, Confirm, Loaded } from '../ui/parts.ts'
import { loadRemovals, RemovalOf } from '../ui/removal.ts'

interface Asked {
  id: string
  name: string
  onClose: () => void
}

const loadRemoval = async (id: string, signal: AbortSignal) => {
  const [removals, statistics] = await Promise.all([
    loadRemovals(`/destinations/${id}`, signal),
    call<Schemas['DestinationStatsList']>('GET', '/stats/destinations', { query: { destination_id: id }, signal }),
  ])
  const { pending = 0, held = 0, retrying = 0, failed = 0 } = statistics.data[0]?.attributes.current_deliveries ?? {}
  return { removals, cancelled: pending + held + retrying + failed }
}

/** Asks whether to delete a destination, and says what goes with it. */
export const DeleteDestination = ({ id, name, onClose }: Asked) => {
  const words = inLanguage(destinationsCatalogue)
  const [isKept, setIsKept] = useState(true)
  const live = useLive(id, (signal) => loadRemoval(id, signal), 0)
  // The deletion cannot be confirmed before its effects are shown.
  if (!live.data && !live.error) return null
  const remove = async () => {
    await callRaw('DELETE', `/destinations/${id}`, { query: { keep_connections: isKept } })
    announce(words.wasDeleted)
    navigate('destinations')
  }
  return html`<${Confirm} isDestructive title=${words.deleteOf(name)} action=${words.delete} onConfirm=${remove} onClose=${onClose}>
    <${Loaded} live=${live}>
      ${() => {
        const { removals, cancelled } = live.data!
        return html`<p>${words.deleteErases}</p>
          <p>${words.deleteCancels(cancelled)}</p>
          <${RemovalOf} removals=${removals} isKept=${isKept} onKeep=${setIsKept} />
          ${removals.all.removed_connections.length + removals.all.removed_notifications.length === 0 && html`<p>${words.deleteAlone}</p>`}`
      }}
    </${Loaded}>
  </${Confirm}>`
}

/** Asks whether to revoke the links in all mails that were sent to a destination. */
export const RevokeLinks = ({ id, name, onClose }: Asked) => {
  const words = inLanguage(destinationsCatalogue)
  const revoke = async () => {
    await callRaw('POST', `/destinations/${id}/download-links/revoke`)
    announce(words.wasRevoked)
  }
  return html`<${Confirm} isDestructive title=${words.revokeTitle} action=${words.revoke} onConfirm=${revoke} onClose=${onClose}>
    <p>${words.revokeText(name)}</p>
  </${Confirm}>`
}
