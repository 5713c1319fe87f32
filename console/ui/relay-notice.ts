import { call, session, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { texts } from '../preferences.ts'
import { nameOfWorkspace } from '../workspace-choice.ts'
import { Notice } from './parts.ts'

/** Says on every screen that no deliveries are made, and why. */
export const RelayNotice = () => {
  const live = useLive(`relay of ${nameOfWorkspace(session.value!)}`, (signal) =>
    call<Schemas['RelayResponse']>('GET', '/relay', { signal }),
  )
  const status = live.data?.data.attributes.status ?? 'working'
  // What was true before the relay stopped answering says nothing.
  if (status === 'working' || live.error) return null
  return html`<${Notice} tone="bad"
    ><p><strong>${texts().app.relay[status]}</strong></p></${Notice}
  >`
}
