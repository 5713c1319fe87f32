import { callRaw, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import { inLanguage } from '../preferences.ts'
import * as connectionsCatalogue from '../texts/connections.ts'
import { Confirm } from '../ui/parts.ts'

type Connection = Schemas['Connection']

// The API counts no further.
const heldMaxCount = 1_000

/** Returns how many deliveries a connection holds, as a text. */
export const heldText = ({ held_deliveries: held }: Connection): string =>
  inLanguage(connectionsCatalogue).heldDeliveries(held, held >= heldMaxCount)

/** Asks before a connection is switched on or off, and says what happens to its deliveries. */
export const ConfirmSwitch = ({ connection, onDone, onClose }: { connection: Connection; onDone: () => void; onClose: () => void }) => {
  const words = inLanguage(connectionsCatalogue)
  const { id, name, is_active: isActive, held_deliveries: held, settings } = connection
  const change = async () => {
    await callRaw('PATCH', `/connections/${id}`, { body: { is_active: !isActive } })
    onDone()
  }
  return html`<${Confirm}
    title=${isActive ? words.offTitle(name) : words.onTitle(name)}
    action=${isActive ? words.switchOff : words.switchOn}
    onConfirm=${change}
    onClose=${onClose}
  >
    ${
      isActive
        ? html`<p>${words.offText}</p>
            <p>${words.offOther}</p>`
        : html`<p>${settings['on_resume'] === 'skip' ? words.onSkip : words.onForward}</p>`
    }
    ${held > 0 && html`<p>${words.holdsNow}: <strong>${heldText(connection)}</strong></p>`}
  </${Confirm}>`
}
