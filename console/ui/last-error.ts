import type { Schemas } from '../api.ts'
import { html } from '../html.ts'
import { inLanguage } from '../preferences.ts'
import * as destinationsCatalogue from '../texts/destinations.ts'
import { Time } from './parts.ts'

type Attributes = Pick<
  Schemas['Destination']['attributes'],
  'last_error' | 'last_error_code' | 'last_error_at' | 'failed_attempts' | 'updated_at'
>

/** Returns true if the destination was changed after its last error: whether it is repaired is not known yet. */
export const isErrorOutdated = ({ last_error_at: at, updated_at: changedAt }: Pick<Attributes, 'last_error_at' | 'updated_at'>): boolean =>
  at !== null && at < changedAt

/** The error of the last attempts at a destination, with its time and the number of attempts that have failed since the last success. */
export const LastError = ({ attributes }: { attributes: Attributes }) => {
  const { last_error: error, last_error_code: code, last_error_at: at, failed_attempts: count } = attributes
  const words = inLanguage(destinationsCatalogue)
  if (error === null) return null
  return html`<span
    >${code !== null && html`<code>${code}</code> `}<span lang="en">${error}</span> ${
      at !== null &&
      html`<span class="small"
        ><${Time} at=${at} />,${' '}
        ${words.failedInARow(count)}${isErrorOutdated(attributes) && html`. <strong>${words.beforeChange}</strong>`}</span
      >`
    }</span
  >`
}
