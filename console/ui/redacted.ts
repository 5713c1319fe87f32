import { html } from '../html.ts'
import { texts } from '../preferences.ts'

// The relay has put it in the place of a secret before it stored the request. See src/capture/redact.ts.
const redacted = '[REDACTED]'

/** A captured text, in which the places of removed secrets are marked. */
export const Redacted = ({ text }: { text: string }) => {
  const [first = '', ...rest] = text.split(redacted)
  return html`${first}${rest.map((part) => html`<mark class="redacted" title=${texts().common.redactedHint}>${texts().common.redacted}</mark>${part}`)}`
}

export const hasRedacted = (text: string): boolean => text.includes(redacted)
