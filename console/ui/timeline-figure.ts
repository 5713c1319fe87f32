import type { Schemas } from '../api.ts'
import { formatDuration } from '../format.ts'
import { html } from '../html.ts'
import { locale, inLanguage, texts } from '../preferences.ts'
import * as documentCatalogue from '../texts/document.ts'
import { layOutTimeline, type TimelineLane } from '../timeline.ts'
import { toneOf } from './parts.ts'

const laneHeight = 44
const axisHeight = 22

const percent = (value: number) => `${value.toFixed(2)}%`

const Lane = ({ lane, top }: { lane: TimelineLane; top: number }) => {
  const middle = top + 30
  const end = percent(lane.line.width)
  return html`<g class=${toneOf(lane.status)}>
    <text x="0" y=${top + 14} class="lane-name">${lane.name}</text>
    <line x1="0" x2=${end} y1=${middle} y2=${middle} class="wait" />
    <circle cx="4" cy=${middle} r="4" class="start" />
    ${lane.attempts.map(
      ({ number, left, width, outcome }) =>
        html`<rect
          key=${number}
          x=${percent(left)}
          y=${middle - 7}
          width=${percent(width)}
          height="14"
          rx="2"
          class=${`attempt ${toneOf(outcome)}`}
        />`,
    )}
    ${lane.next !== null && html`<circle cx=${percent(lane.next)} cy=${middle} r="5" class="next" />`}
    ${lane.status === 'delivered' && html`<circle cx=${end} cy=${middle} r="5" class="arrived" />`}
  </g>`
}

/** The timeline of a document as a picture. The tables below it contain the same. */
export const TimelineFigure = ({
  document: { attributes },
  attempts,
}: {
  document: Schemas['SingleDocument']
  attempts: Schemas['DeliveryAttempt'][]
}) => {
  const words = inLanguage(documentCatalogue)
  const { deliveryStatus } = texts()
  const { deliveries, received_at: receivedAt } = attributes
  const nowMs = Date.now()
  const timeline = layOutTimeline(
    Date.parse(receivedAt),
    deliveries.map((delivery) => ({
      id: delivery.destination_id,
      name: delivery.destination_name,
      status: delivery.status,
      statusSinceMs: Date.parse(delivery.status_since),
      nextAttemptAtMs: delivery.next_attempt_at === null ? null : Date.parse(delivery.next_attempt_at),
      attempts: attempts
        .filter(({ attributes: { destination_id: id } }) => id === delivery.destination_id)
        .map(({ attributes: { number, started_at: startedAt, duration_ms: durationMs, outcome } }) => ({
          number,
          startedAtMs: Date.parse(startedAt),
          durationMs,
          outcome,
        })),
    })),
    nowMs,
  )
  const summary = [
    words.stored,
    ...deliveries.map(({ destination_name: name, status, attempts: count }) => words.timelineText(name, deliveryStatus[status], count)),
  ].join('. ')
  const height = axisHeight + timeline.lanes.length * laneHeight + 6
  return html`<svg class="timeline" role="img" aria-label=${summary} width="100%" height=${height}>
      <text x="0" y="14" class="tick-label">0</text>
      ${timeline.ticks.map(
        ({ left, ms }) =>
          html`<g key=${ms} class="tick">
            <line x1=${percent(left)} x2=${percent(left)} y1="18" y2=${height} />
            <text x=${percent(left)} y="14" class="tick-label" text-anchor="middle">${formatDuration(ms, locale())}</text>
          </g>`,
      )}
      ${timeline.now !== null && html`<line class="now" x1=${percent(timeline.now)} x2=${percent(timeline.now)} y1="18" y2=${height} />`}
      ${timeline.lanes.map((lane, index) => html`<${Lane} key=${lane.id} lane=${lane} top=${axisHeight + index * laneHeight} />`)}
    </svg>
    <p class="small">${words.timelineScale}</p>`
}
