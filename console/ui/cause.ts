import { call, type Schemas } from '../api.ts'
import { html, type Children } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage } from '../preferences.ts'
import * as destinationsCatalogue from '../texts/destinations.ts'
import * as remediesCatalogue from '../texts/remedies.ts'
import { isErrorOutdated, LastError } from './last-error.ts'
import { Notice } from './parts.ts'

interface Props {
  attributes: Schemas['Destination']['attributes']
  /** Whether what failed is tried again by itself, or a test shows if it is mended. */
  failed: 'retried' | 'test'
}

/** The last error of a destination that has not taken anything since, and what to do. */
export const Cause = ({ attributes, failed }: Props): Children => {
  const { whatToDo, remedy } = inLanguage(remediesCatalogue)
  if (attributes.last_error === null) return null
  return html`<${Notice} tone="warn">
    <p><strong>${inLanguage(destinationsCatalogue).lastError}:</strong> <${LastError} attributes=${attributes} /></p>
    ${
      !isErrorOutdated(attributes) &&
      html`<p><strong>${whatToDo}:</strong> ${remedy(attributes.last_error_code, attributes.name, failed)}</p>`
    }
  </${Notice}>`
}

/** Why the circuit of a destination is not closed, as the destination says it. */
export const CircuitCause = ({ id }: { id: string }) => {
  const live = useLive(`circuit of ${id}`, (signal) => call<Schemas['DestinationResponse']>('GET', `/destinations/${id}`, { signal }))
  return live.data ? html`<${Cause} attributes=${live.data.data.attributes} failed="retried" />` : null
}
