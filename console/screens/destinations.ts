import { call, may, type Schemas } from '../api.ts'
import { totalsOf } from '../bars.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, locale, texts } from '../preferences.ts'
import { addressOf, route } from '../router.ts'
import * as connectorFieldsCatalogue from '../texts/connector-fields.ts'
import * as destinationsCatalogue from '../texts/destinations.ts'
import { Sparkline } from '../ui/bars-figure.ts'
import { HealthBadge } from '../ui/health-badge.ts'
import { LastError } from '../ui/last-error.ts'
import { Heading, Loaded, Pager, Time } from '../ui/parts.ts'

const perPage = 50
const statisticsMs = 30_000

type Destination = Schemas['Destination']
type Statistics = Schemas['DestinationStats']['attributes']

/** Bars of a day with the numbers in words. */
const LastDay = ({ series }: { series: Statistics['series'] }) => {
  const words = inLanguage(destinationsCatalogue)
  const { delivered, failed } = totalsOf(series)
  if (delivered + failed === 0) return html`<span class="quiet">${words.noAttempts}</span>`
  return html`<span class="last-day"
    ><${Sparkline} series=${series} label=${`${words.lastDay}: ${words.attempts(delivered, failed)}`} />
    <span aria-hidden="true"
      >${delivered.toLocaleString(locale())}${failed > 0 && html` <span class="failed-count">${failed.toLocaleString(locale())}</span>`}</span
    ></span
  >`
}

const OldestOpen = ({ statistics }: { statistics: Statistics }) => {
  const words = inLanguage(destinationsCatalogue)
  const { oldest_delivery: oldest, current_deliveries: current } = statistics
  const label = html`<span class="cell-name">${words.oldestOpen}: </span>`
  if (!oldest) return html`<span class="quiet">${label}${words.noneOpen}</span>`
  return html`${label}<a href=${`documents/${oldest.document_id}`}><${Time} at=${oldest.received_at} /></a>${' '}<span class="small"
      >${words.openDeliveries(current.pending + current.retrying)}</span
    >`
}

const Row = ({ destination: { id, attributes }, statistics }: { destination: Destination; statistics: Statistics | undefined }) => {
  const words = inLanguage(destinationsCatalogue)
  const { next_trial_at: next, slots, slots_in_use: used } = attributes
  return html`<tr role="row">
    <td role="cell">
      <${HealthBadge} attributes=${attributes} />${' '}
      ${next !== null && html`<span class="small">${words.nextTrial}: <${Time} at=${next} isPlanned /></span>`}
    </td>
    <td role="cell" class="name-cell">
      <a href=${`destinations/${id}`}>${attributes.name}</a>${' '}
      <span class="small">${inLanguage(connectorFieldsCatalogue).connector(attributes.connector_type)}</span>
    </td>
    <td role="cell">${statistics && html`<${LastDay} series=${statistics.series} />`}</td>
    <td role="cell">${statistics && html`<${OldestOpen} statistics=${statistics} />`}</td>
    <td role="cell" class=${used === slots ? '' : 'quiet'}><span class="cell-name">${words.slots}: </span>${words.slotsOf(used, slots)}</td>
    <td role="cell" class="error-cell"><${LastError} attributes=${attributes} /></td>
  </tr>`
}

export const DestinationsScreen = () => {
  const words = inLanguage(destinationsCatalogue)
  const { screens } = texts()
  const page = Math.max(1, Math.trunc(Number(route.value.query.get('page') ?? 1)) || 1)
  const query = { page, per_page: perPage }
  const live = useLive(`destinations ${page}`, (signal) => call<Schemas['DestinationList']>('GET', '/destinations', { query, signal }))
  const counted = useLive(
    `destinations ${page}`,
    (signal) => call<Schemas['DestinationStatsList']>('GET', '/stats/destinations', { query, signal }),
    statisticsMs,
  )
  const statistics = new Map(counted.data?.data.map(({ id, attributes }) => [id, attributes]))
  return html`<${Heading} title=${screens.destinations}>
      ${may('member') && html`<a class="button primary" href="destinations/new">${words.create}</a>`}
    </${Heading}>
    <${Loaded} live=${live}>
      ${() => {
        const { data, meta } = live.data!
        if (data.length === 0) return html`<p class="empty">${words.empty}</p>`
        return html`<table role="table" class="list" aria-label=${screens.destinations}>
            <thead role="rowgroup">
              <tr role="row">
                ${[words.status, words.name, words.lastDay, words.oldestOpen, words.slots, words.lastError].map(
                  (name) => html`<th key=${name} role="columnheader" scope="col">${name}</th>`,
                )}
              </tr>
            </thead>
            <tbody role="rowgroup">
              ${data.map((each) => html`<${Row} key=${each.id} destination=${each} statistics=${statistics.get(each.id)} />`)}
            </tbody>
          </table>
          <${Pager}
            page=${page}
            perPage=${perPage}
            total=${meta.total}
            addressOfPage=${(to: number) => addressOf('destinations', { page: to === 1 ? undefined : String(to) })}
          />`
      }}
    </${Loaded}>`
}
