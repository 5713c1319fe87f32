import { call, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage } from '../preferences.ts'
import * as documentCatalogue from '../texts/document.ts'
import * as remediesCatalogue from '../texts/remedies.ts'
import { LastError } from './last-error.ts'
import { Notice } from './parts.ts'

const documentWords = inLanguage(documentCatalogue)
const remediesWords = inLanguage(remediesCatalogue)

/** Why the circuit of a destination is not closed, as the destination says it, with what to do. */
export const CircuitCause = ({ id, name }: { id: string; name: string }) => {
  const words = documentWords()
  const { whatToDo, remedy } = remediesWords()
  const live = useLive(`circuit of ${id}`, (signal) => call<Schemas['DestinationResponse']>('GET', `/destinations/${id}`, { signal }))
  const attributes = live.data?.data.attributes
  if (!attributes || attributes.last_error === null) return null
  return html`<${Notice} tone="warn">
    <p>${words.circuitCause(name)} <${LastError} attributes=${attributes} /></p>
    <p><strong>${whatToDo}:</strong> ${remedy(attributes.last_error_code, name, 'retried')}</p>
  </${Notice}>`
}
