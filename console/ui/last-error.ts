import type { Schemas } from '../api.ts'
import { html } from '../html.ts'
import { inLanguage } from '../preferences.ts'
import * as destinationsCatalogue from '../texts/destinations.ts'
import { Time } from './parts.ts'

const destinationsWords = inLanguage(destinationsCatalogue)

type Attributes = Pick<Schemas['Destination']['attributes'], 'last_error' | 'last_error_code' | 'last_error_at' | 'failed_attempts'>

/** The error of the last attempts at a destination, with its time and the number of attempts that have failed since the last success. */
export const LastError = ({ attributes }: { attributes: Attributes }) => {
  const { last_error: error, last_error_code: code, last_error_at: at, failed_attempts: count } = attributes
  if (error === null) return null
  return html`<span
    >${code !== null && html`<code>${code}</code> `}<span lang="en">${error}</span> ${
      at !== null && html`<span class="small"><${Time} at=${at} />, ${destinationsWords().failedInARow(count)}</span>`
    }</span
  >`
}
