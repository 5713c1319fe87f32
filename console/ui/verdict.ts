import { mostUrgentFirst } from '../../src/domain/delivery-states.ts'
import type { Schemas } from '../api.ts'
import { html } from '../html.ts'
import { inLanguage } from '../preferences.ts'
import * as documentCatalogue from '../texts/document.ts'
import { Time } from './parts.ts'

type Delivery = Schemas['SingleDocument']['attributes']['deliveries'][number]

/** Returns whether a person can have a delivery made once more. */
export const retryable = ({ status }: Delivery) => status === 'failed' || status === 'cancelled'

/** Says in a sentence why a destination does not have the document. */
const Missing = ({ delivery }: { delivery: Delivery }) => {
  const words = inLanguage(documentCatalogue)
  const { destination_name: name, status, last_error: error, status_since: since, waiting_for: wait, ended_by: end } = delivery
  if (status === 'failed') {
    return html`<span>${words.hasFailed(name)} <${Time} at=${since} />${error ? `: ${error.message.replace(/\.$/, '')}` : ''}.</span>`
  }
  if (status === 'cancelled') return html`<span>${words.wasCancelled(name)} <${Time} at=${since} />. ${end && words.endedBy[end]}</span>`
  return html`<span>${wait ? words.waitsFor(name, words.waits[wait.reason](name, wait.connection_name)) : words.isUnderWay(name)}.</span>`
}

/** Deliveries that wait for the same thing are named together. */
const byWait = (deliveries: Delivery[]): Delivery[][] => {
  const words = inLanguage(documentCatalogue)
  const keyOf = ({ destination_id: id, destination_name: name, waiting_for: wait }: Delivery) =>
    wait ? words.waits[wait.reason](name, wait.connection_name) : id
  return [...Map.groupBy(deliveries, keyOf).values()]
}

const MissingTogether = ({ deliveries }: { deliveries: Delivery[] }) => {
  const words = inLanguage(documentCatalogue)
  const [first] = deliveries as [Delivery]
  const { waiting_for: wait, destination_name: name } = first
  if (deliveries.length === 1 || !wait) return html`<${Missing} delivery=${first} />`
  return html`<span
    >${words.waitFor(
      deliveries.map((each) => each.destination_name),
      words.waits[wait.reason](name, wait.connection_name),
    )}.</span
  >`
}

/** Answers in one sentence or two if the document reached every destination, and what keeps it from the others. */
export const Verdict = ({ deliveries }: { deliveries: Delivery[] }) => {
  const words = inLanguage(documentCatalogue)
  const missing = mostUrgentFirst(deliveries).filter(({ status }) => status !== 'delivered')
  const tone = missing.length === 0 ? 'good' : missing.some(retryable) ? 'bad' : 'info'
  return html`<div class=${`notice ${tone} verdict`}>
    <p>
      <strong>${words.verdict(deliveries.length - missing.length, deliveries.length)}</strong>
      ${byWait(missing).map((group) => html` <${MissingTogether} key=${group[0]!.destination_id} deliveries=${group} />`)}
    </p>
  </div>`
}
