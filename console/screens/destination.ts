import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { call, may, type Schemas } from '../api.ts'
import { totalsOf } from '../bars.ts'
import { healthOf } from '../destination-health.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, locale, texts } from '../preferences.ts'
import { addressOf, route } from '../router.ts'
import * as connectorFieldsCatalogue from '../texts/connector-fields.ts'
import * as destinationsCatalogue from '../texts/destinations.ts'
import * as formCatalogue from '../texts/form.ts'
import { Backlog } from '../ui/backlog.ts'
import { BarPlot } from '../ui/bars-figure.ts'
import { Cause } from '../ui/cause.ts'
import { DeliverAgain } from '../ui/deliver-again.ts'
import { numberText } from '../ui/field-facts.ts'
import { HealthBadge } from '../ui/health-badge.ts'
import { isErrorOutdated } from '../ui/last-error.ts'
import { Badge, Choices, Facts, Heading, Loaded, Mark, Notice, Time } from '../ui/parts.ts'
import { TestOutcome, useTargetTest } from '../ui/target-test.ts'
import { EditDestination, NewDestination } from './destination-form.ts'
import { DeleteDestination, RevokeLinks } from './destination-removal.ts'

type Attributes = Schemas['SingleDestination']['attributes']

const hourMs = 3_600_000
// A range that were longer than 7 days would be counted by day.
const minuteMs = 60_000
const statisticsMs = 30_000
const ranges = { day: 24, week: 7 * 24, month: 30 * 24 }
type Range = keyof typeof ranges

const formatPeriod = (start: string, interval: 'hour' | 'day') =>
  new Intl.DateTimeFormat(
    locale(),
    interval === 'day' ? { dateStyle: 'medium', timeZone: 'UTC' } : { dateStyle: 'medium', timeStyle: 'short' },
  ).format(new Date(start))

const Numbers = ({ series, interval }: { series: Schemas['StatsPeriod'][]; interval: 'hour' | 'day' }) => {
  const words = inLanguage(destinationsCatalogue)
  const busy = series.filter(({ delivered, failed }) => delivered + failed > 0).toReversed()
  if (busy.length === 0) return null
  return html`<details class="table-below">
    <summary>${words.numbers}</summary>
    <table class="list compact">
      <thead>
        <tr>
          ${[words.period[interval], words.delivered, words.failed].map((name) => html`<th key=${name} scope="col">${name}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${busy.map(
          ({ start, delivered, failed }) =>
            html`<tr key=${start}>
              <td><time datetime=${start}>${formatPeriod(start, interval)}</time></td>
              <td>${delivered.toLocaleString(locale())}</td>
              <td>${failed.toLocaleString(locale())}</td>
            </tr>`,
        )}
      </tbody>
    </table>
  </details>`
}

const Throughput = ({ id }: { id: string }) => {
  const words = inLanguage(destinationsCatalogue)
  const asked = route.value.query.get('range') as Range | null
  const range = asked !== null && Object.hasOwn(ranges, asked) ? asked : 'day'
  const live = useLive(
    `${id} ${range}`,
    (signal) => {
      const from = new Date(Date.now() - ranges[range] * hourMs + minuteMs).toISOString()
      return call<Schemas['StatsResponse']>('GET', '/stats', { query: { destination_id: id, date_from: from }, signal })
    },
    statisticsMs,
  )
  return html`<section class="card" aria-labelledby="throughput">
    <header class="card-head">
      <h2 id="throughput">${words.throughput}</h2>
      <${Choices}
        label=${words.rangeLabel}
        current=${range}
        of=${Object.entries(words.ranges).map(([name, label]) => [
          name,
          label,
          addressOf(`destinations/${id}`, { range: name === 'day' ? undefined : name }),
        ])}
      />
    </header>
    <${Loaded} live=${live}>
      ${() => {
        const { series, interval, errors, oldest_deliveries: oldest } = live.data!.data.attributes
        const { delivered, failed } = totalsOf(series)
        const label = `${words.ranges[range]}: ${words.attempts(delivered, failed)}`
        return html`<${BarPlot} series=${series} interval=${interval} label=${label} />
          <ul class="chips legend">
            <li class="chip good"><${Mark} status="delivered" />${words.delivered}: ${delivered.toLocaleString(locale())}</li>
            <li class=${`chip ${failed > 0 ? 'bad' : ''}`}>
              <${Mark} status="failed" />${words.failed}: ${failed.toLocaleString(locale())}
            </li>
          </ul>
          <${Facts}
            of=${[
              [
                words.oldestOpenDelivery,
                oldest?.[0]
                  ? html`<a href=${`documents/${oldest[0].document_id}`}><${Time} at=${oldest[0].received_at} /></a>`
                  : words.noneOpen,
              ],
              [
                words.errorCodes,
                errors.length === 0
                  ? undefined
                  : errors.map(
                      ({ code, attempts }) =>
                        html`<span key=${code} class="error-code"><code>${code}</code> ${words.errorCount(attempts)}</span>`,
                    ),
              ],
            ]}
          />
          <${Numbers} series=${series} interval=${interval} />`
      }}
    </${Loaded}>
  </section>`
}

const Actions = ({ id, attributes, reload }: { id: string; attributes: Attributes; reload: () => void }) => {
  const words = inLanguage(destinationsCatalogue)
  const [version, setVersion] = useState(0)
  const { state: tested, test } = useTargetTest(`/destinations/${id}/test`, words, () => {
    reload()
    setVersion((before) => before + 1)
  })
  const [asked, setAsked] = useState<'delete' | 'revoke'>()
  const close = () => setAsked(undefined)
  const { name, connector_type: kind } = attributes
  return html`<div class="actions">
      <button type="button" class="button primary" disabled=${tested.isBusy} onClick=${() => void test()}>
        ${tested.isBusy ? `${words.testing} …` : words.test}
      </button>
      <a class="button" href=${`destinations/${id}?edit=yes`}>${inLanguage(formCatalogue).edit}</a>
      ${
        may('admin') &&
        kind === 'email' &&
        html`<button type="button" class="button" onClick=${() => setAsked('revoke')}>${words.revoke}</button>`
      }
      ${may('admin') && html`<button type="button" class="button danger" onClick=${() => setAsked('delete')}>${words.delete}</button>`}
    </div>
    <${TestOutcome} state=${tested} words=${words} name=${name} />
    ${
      // What has just failed in a test also fails in a retry.
      tested.result?.status !== 'failed' &&
      html`<${Backlog}
        key=${version}
        id=${id}
        name=${name}
        isMended=${tested.result?.status === 'success' || isErrorOutdated(attributes)}
      />`
    }
    ${asked === 'delete' && html`<${DeleteDestination} id=${id} name=${name} onClose=${close} />`}
    ${asked === 'revoke' && html`<${RevokeLinks} id=${id} name=${name} onClose=${close} />`}`
}

const written = (name: string, value: unknown) => {
  const { common } = texts()
  if (typeof value === 'boolean') return value ? common.yes : common.no
  if (typeof value === 'number') return numberText(name, value)
  return html`<span class="mono">${typeof value === 'string' ? value : JSON.stringify(value)}</span>`
}

const optionalTime = (at: string | null, isPlanned = false): ComponentChildren =>
  at === null ? undefined : html`<${Time} at=${at} isPlanned=${isPlanned} />`

const State = ({ id, attributes }: { id: string; attributes: Attributes }) => {
  const words = inLanguage(destinationsCatalogue)
  const { signIn: signInName } = inLanguage(connectorFieldsCatalogue)
  const { slots, slots_in_use: used } = attributes
  const health = healthOf(attributes)
  const note = health in words.healthNote ? words.healthNote[health as keyof typeof words.healthNote] : undefined
  return html`<section class="card" aria-labelledby="state">
    <h2 id="state">${words.status}</h2>
    ${note !== undefined && html`<p>${note}</p>`}
    <${Facts}
      of=${[
        [words.nextTrial, optionalTime(attributes.next_trial_at, true)],
        [words.lastDelivered, optionalTime(attributes.last_delivered_at) ?? words.never],
        [inLanguage(formCatalogue).credentials.signIn, attributes.sign_in === null ? undefined : signInName(attributes.sign_in)],
        [words.credentialsExpire, optionalTime(attributes.credentials_expire_at, true)],
        [words.slots, used === 0 ? undefined : words.slotsOf(used, slots)],
      ]}
    />
    <p class="after">
      <a href=${addressOf('documents', { destination_id: id, delivery_status: 'failed' })}>${words.failedDocuments}</a>
    </p>
  </section>`
}

const ShowDestination = ({ id }: { id: string }) => {
  const words = inLanguage(destinationsCatalogue)
  const { connector, label } = inLanguage(connectorFieldsCatalogue)
  const { screens } = texts()
  const live = useLive(id, (signal) =>
    call<Schemas['SingleDestinationResponse']>('GET', `/destinations/${encodeURIComponent(id)}`, { signal }),
  )
  const shown = live.data?.data.attributes
  return html`<p class="back"><a href="destinations">${words.back}</a></p>
    <${Heading} title=${shown?.name ?? screens.destinations}>${shown && html`<${HealthBadge} attributes=${shown} />`}</${Heading}>
    <${Loaded} live=${live}>
      ${() => {
        const { attributes } = live.data!.data
        return html`<${Cause} attributes=${attributes} failed="test" />
          ${may('member') && html`<${Actions} id=${id} attributes=${attributes} reload=${live.reload} />`}
          ${attributes.warnings.map(({ code, message }) => html`<${Notice} key=${code} tone="warn">${message}</${Notice}>`)}
          <${Throughput} id=${id} />
          <div class="columns">
            <${State} id=${id} attributes=${attributes} />
            <section class="card" aria-labelledby="config">
              <h2 id="config">${words.config}</h2>
              <${Facts}
                of=${[
                  [words.kind, connector(attributes.connector_type)],
                  ...Object.entries(attributes.config).map(([name, value]) => [label(name), written(name, value)]),
                ]}
              />
            </section>
          </div>
          <section class="card" aria-labelledby="connections">
            <h2 id="connections">${words.connections}</h2>
            ${attributes.connections.length === 0 && html`<p class="quiet">${words.noConnections}</p>`}
            <ul class="plain">
              ${attributes.connections.map(
                (connection) =>
                  html`<li key=${`${connection.id} ${connection.source_repo_id}`}>
                    <${Badge} status=${connection.status} label=${words.connectionStatus[connection.status]} />
                    <a href=${`connections/${connection.id}`}>${connection.name}</a>
                    <span class="small">${words.fromRepository(connection.source_repo_id, connection.source_name)}</span>
                  </li>`,
              )}
            </ul>
          </section>
          ${may('member') && html`<${DeliverAgain} id=${id} name=${attributes.name} />`}`
      }}
    </${Loaded}>`
}

/** One destination, its form, or the form of a new one. */
export const DestinationScreen = ({ id }: { id: string }) => {
  const { query } = route.value
  if (id === 'new') return html`<${NewDestination} kind=${query.get('type')} />`
  if (query.has('edit')) return html`<${EditDestination} id=${id} />`
  return html`<${ShowDestination} id=${id} />`
}
