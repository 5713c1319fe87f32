import { useState } from 'preact/hooks'
import { html } from '../html.ts'
import { inLanguage } from '../preferences.ts'
import * as destinationsCatalogue from '../texts/destinations.ts'
import { BulkRetryProgress, ConfirmBulkRetry } from './bulk-retry.ts'
import { DateField } from './filters.ts'
import { Disclosure } from './parts.ts'

/** Offers to deliver again what a destination has got in a time: it has lost it. */
export const DeliverAgain = ({ id, name }: { id: string; name: string }) => {
  const words = inLanguage(destinationsCatalogue)
  const [from, setFrom] = useState('')
  const [to, setTo] = useState('')
  const [isAsked, setAsked] = useState(false)
  const [started, setStarted] = useState<string>()
  const onEnd = () => {}
  return html`${started !== undefined && html`<${BulkRetryProgress} id=${started} onEnd=${onEnd} />`}
    <${Disclosure} title=${words.deliverAgain}>
      ${() => html`
        <p>${words.deliverAgainHint}</p>
        <div class="filters">
          <${DateField} label=${words.deliveredFrom} value=${from} onChange=${setFrom} />
          <${DateField} label=${words.deliveredTo} value=${to} onChange=${setTo} />
          <button type="button" class="button" onClick=${() => setAsked(true)}>${words.deliverAgainAction}</button>
        </div>
      `}
    </${Disclosure}>
    ${
      isAsked &&
      html`<${ConfirmBulkRetry}
        target=${{ action: 'deliver', destinationId: id, destinationName: name, deliveredFrom: from || undefined, deliveredTo: to || undefined }}
        onStarted=${setStarted}
        onClose=${() => setAsked(false)}
      />`
    }`
}
