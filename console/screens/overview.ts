import { useEffect } from 'preact/hooks'
import { call, session, type Schemas } from '../api.ts'
import { formatBytes, formatDuration } from '../format.ts'
import { html, type Children } from '../html.ts'
import { useLive } from '../live.ts'
import { rangeNamed, ranges, startOf, statesOf, totalsOf, type Period, type Range, type State, type Statistics } from '../overview.ts'
import { inLanguage, locale, texts } from '../preferences.ts'
import { addressOf, navigate, route } from '../router.ts'
import * as overviewCatalogue from '../texts/overview.ts'
import { Badge, Heading, Loaded, Notice, Time } from '../ui/parts.ts'
import { Plot, type PlotSeries } from '../ui/plot.ts'

const overviewWords = inLanguage(overviewCatalogue)

const tones: Record<State, 'bad' | 'warn' | 'info' | 'good'> = {
  attention: 'bad',
  retrying: 'warn',
  pending: 'info',
  held: 'warn',
  delivered: 'good',
}
const addresses: Record<Exclude<State, 'delivered'>, string> = {
  attention: 'attention',
  retrying: addressOf('documents', { delivery_status: 'retrying' }),
  pending: addressOf('documents', { delivery_status: 'pending' }),
  held: addressOf('documents', { delivery_status: 'held' }),
}

const count = (value: number) => value.toLocaleString(locale())
const duration = (ms: number) => formatDuration(ms, locale())

const RangeLinks = ({ current }: { current: Range }) => {
  const words = overviewWords()
  return html`<nav class="segments" aria-label=${words.range}>
    ${ranges.map(
      (range) =>
        html`<a
          key=${range}
          class="button"
          href=${addressOf('overview', { range: range === '24h' ? undefined : range })}
          aria-current=${range === current ? 'true' : undefined}
          >${words.ranges[range]}</a
        >`,
    )}
  </nav>`
}

const StateNotice = ({ present }: { present: Statistics['present'] }) => {
  const words = overviewWords()
  const states = statesOf(present)
  const [[first]] = states as [[State, number]]
  if (first === 'delivered' && (present.unacknowledged_discards ?? 0) > 0) return null
  return html`<${Notice} tone=${tones[first]}>
    ${states.map(
      ([state, number], index) =>
        html`<p key=${state} class="state">
          ${index === 0 ? html`<strong>${words.state[state](number)}</strong>` : words.state[state](number)}${' '}
          ${state !== 'delivered' && html`<a href=${addresses[state]}>${words.show[state]}</a>`}
        </p>`,
    )}
  </${Notice}>`
}

const discardedMax = 3

/** The repositories whose documents were discarded for lack of a connection. */
const DiscardedNotice = ({ list: { data, meta } }: { list: Schemas['DiscardedGroupList'] }) => {
  const words = overviewWords()
  if (data.length === 0) return null
  return html`<${Notice} tone="bad">
    ${data.map(
      ({ id, attributes: { documents, repo_id: repoId, is_connected: isConnected } }) =>
        html`<p key=${id}>${words.discarded(documents, repoId, isConnected)}</p>`,
    )}
    <p>${meta.total > data.length && words.moreDiscarded(meta.total - data.length)} <a href="attention">${words.showDiscarded}</a></p>
  </${Notice}>`
}

/** The repositories whose earlier content server fails. */
const UpstreamsNotice = ({ failing }: { failing: Schemas['Repository'][] }) => {
  const words = overviewWords()
  if (failing.length === 0) return null
  return html`<${Notice} tone="bad">
    ${failing.map(
      ({ id, attributes: { repo_id: repoId } }) =>
        html`<p key=${id}>${words.upstreamFails(repoId)} <a href=${`repositories/${id}`}>${words.showRepository}</a></p>`,
    )}
  </${Notice}>`
}

// The longest page of a list.
const listMax = 100

/** The enrichments whose latest documents lack business data. */
const EnrichmentsNotice = ({ failing }: { failing: Schemas['Enrichment'][] }) => {
  const words = overviewWords()
  if (failing.length === 0) return null
  return html`<${Notice} tone="warn">
    ${failing.map(
      ({ id, attributes: { name } }) =>
        html`<p key=${id}>${words.enrichmentFails(name)} <a href=${`enrichments/${id}`}>${words.showEnrichment}</a></p>`,
    )}
  </${Notice}>`
}

const Tile = ({ name, value, more }: { name: string; value: Children; more?: Children }) =>
  html`<div class="tile">
    <dt>${name}</dt>
    <dd>
      <span class="value">${value}</span>
      ${more && html`<span class="small">${more}</span>`}
    </dd>
  </div>`

const Tiles = ({ statistics: { series, latency, oldest_deliveries: oldest, present } }: { statistics: Statistics }) => {
  const words = overviewWords()
  const totals = totalsOf(series)
  const first = oldest?.[0]
  return html`<dl class="tiles" aria-label=${words.numbers}>
    <${Tile} name=${words.received} value=${count(totals.received)} />
    <${Tile} name=${words.delivered} value=${count(totals.delivered)} />
    <${Tile} name=${words.failed} value=${count(totals.failed)} />
    <${Tile}
      name=${`${words.latency} (${words.median})`}
      value=${latency.p50_ms === null ? '–' : duration(latency.p50_ms)}
      more=${latency.p95_ms === null ? words.noLatency : words.percentiles(duration(latency.p95_ms), duration(latency.p99_ms ?? 0))}
    />
    <${Tile}
      name=${words.oldest}
      value=${first ? html`<a href=${`documents/${first.document_id}`}><${Time} at=${first.received_at} /></a>` : words.noOldest}
      more=${first?.destination_name}
    />
    <${Tile}
      name=${words.stored}
      value=${formatBytes(present.stored_bytes, locale())}
      more=${present.max_bytes !== null && words.storedAtMost(formatBytes(present.max_bytes, locale()))}
    />
  </dl>`
}

/** A plot with its table. */
const Figure = ({
  title,
  hint,
  statistics: { series: periods, interval },
  series,
  format,
  scale,
}: {
  title: string
  hint?: string
  statistics: Statistics
  series: PlotSeries[]
  format: (value: number) => string
  scale?: 'logarithmic'
}) => {
  const words = overviewWords()
  const dateFormat = new Intl.DateTimeFormat(locale(), {
    ...(interval === 'day' ? { timeZone: 'UTC' } : { timeStyle: 'short' as const }),
    dateStyle: 'medium',
  })
  const notes = [hint, interval === 'day' ? words.days : undefined].filter((note) => note !== undefined).join(' ')
  return html`<section class="card figure">
    <h2>${title}</h2>
    <${Plot}
      label=${words.plotOf(title)}
      starts=${periods.map(({ start }) => Date.parse(start))}
      series=${series}
      interval=${interval}
      period=${words[interval]}
      scale=${scale}
      format=${format}
    />
    ${notes !== '' && html`<p class="small">${notes}</p>`}
    <details>
      <summary>${words.numbersOf}</summary>
      <div class="scroll" tabindex="0" role="region" aria-label=${words.tableOf(title)}>
        <table class="list compact numbers" role="table" aria-label=${words.tableOf(title)}>
          <thead role="rowgroup">
            <tr role="row">
              ${[words[interval], ...series.map(({ label }) => label)].map(
                (name) => html`<th key=${name} role="columnheader" scope="col">${name}</th>`,
              )}
            </tr>
          </thead>
          <tbody role="rowgroup">
            ${periods
              .map(
                ({ start }, index) =>
                  html`<tr key=${start} role="row">
                    <td role="cell"><time datetime=${start}>${dateFormat.format(new Date(start))}</time></td>
                    ${series.map(({ label, values }) => {
                      const value = values[index] ?? null
                      return html`<td key=${label} role="cell">${value === null ? '–' : format(value)}</td>`
                    })}
                  </tr>`,
              )
              .toReversed()}
          </tbody>
        </table>
      </div>
    </details>
  </section>`
}

const Errors = ({ errors }: { errors: Statistics['errors'] }) => {
  const words = overviewWords()
  return html`<section class="card">
    <h2>${words.errors}</h2>
    ${
      errors.length === 0
        ? html`<p class="quiet">${words.noErrors}</p>`
        : html`<ul class="plain ranking">
            ${errors.map(
              ({ code, attempts }) =>
                html`<li key=${code}>
                  <code>${code}</code>
                  <span class="bar"><span style=${{ width: `${(100 * attempts) / errors[0]!.attempts}%` }}></span></span>
                  <span><span class="visually-hidden">${words.attempts}: </span>${count(attempts)}</span>
                </li>`,
            )}
          </ul>`
    }
  </section>`
}

const waitingMax = 5

const Waiting = ({ deliveries }: { deliveries: NonNullable<Statistics['oldest_deliveries']> }) => {
  const words = overviewWords()
  const { deliveryStatus } = texts()
  return html`<section class="card">
    <h2>${words.waiting}</h2>
    ${
      deliveries.length === 0
        ? html`<p class="quiet">${words.noWaiting}</p>`
        : html`<ul class="plain">
            ${deliveries.slice(0, waitingMax).map(
              ({ destination_id: id, destination_name: name, document_id: document, status, received_at: at }) =>
                html`<li key=${id}>
                  <a href=${`destinations/${id}`}>${name}</a>
                  <${Badge} status=${status} label=${deliveryStatus[status]} />
                  <a class="end" href=${`documents/${document}`}
                    ><span class="visually-hidden">${words.document}: </span><${Time} at=${at}
                  /></a>
                </li>`,
            )}
          </ul>`
    }
  </section>`
}

const of = (periods: readonly Period[], value: (period: Period) => number | null) => periods.map(value)

/** The workspaces that are known to have received a document. The others are shown their first steps. */
const used = new Set<string>()

const load = async (range: Range, signal: AbortSignal) => {
  const { user_slug: user, workspace_slug: workspace } = session.value!
  const name = `${user}/${workspace}`
  const [stats, newest, discarded, enrichments, repositories] = await Promise.all([
    call<Schemas['StatsResponse']>('GET', '/stats', { query: { date_from: startOf(range, Date.now()).toISOString() }, signal }),
    used.has(name) ? undefined : call<Schemas['DocumentList']>('GET', '/documents', { query: { per_page: 1 }, signal }),
    call<Schemas['DiscardedGroupList']>('GET', '/discarded', { query: { per_page: discardedMax }, signal }),
    call<Schemas['EnrichmentList']>('GET', '/enrichments', { query: { per_page: listMax }, signal }),
    call<Schemas['RepositoryList']>('GET', '/repositories', { query: { per_page: listMax, status: 'active' }, signal }),
  ])
  if (newest && newest.data.length > 0) used.add(name)
  const failing = {
    enrichments: enrichments.data.filter(({ attributes }) => attributes.is_failing),
    upstreams: repositories.data.filter(({ attributes: { warnings } }) => warnings.some(({ code }) => code === 'upstream_failing')),
  }
  return { statistics: stats.data.attributes, discarded, failing, isUnused: !used.has(name) }
}

export const OverviewScreen = () => {
  const words = overviewWords()
  const { screens } = texts()
  const range = rangeNamed(route.value.query.get('range'))
  const live = useLive(range, (signal) => load(range, signal))
  const isUnused = live.data?.isUnused === true
  useEffect(() => {
    if (isUnused) navigate('start', { replace: true })
  }, [isUnused])
  return html`<${Heading} title=${screens.overview}><${RangeLinks} current=${range} /></${Heading}>
    <${Loaded} live=${live}>
      ${() => {
        if (isUnused) return null
        const { statistics } = live.data!
        const { series } = statistics
        return html`<${StateNotice} present=${statistics.present} />
          <${DiscardedNotice} list=${live.data!.discarded} />
          <${UpstreamsNotice} failing=${live.data!.failing.upstreams} />
          <${EnrichmentsNotice} failing=${live.data!.failing.enrichments} />
          <${Tiles} statistics=${statistics} />
          <${Figure}
            title=${words.receivedAndDelivered}
            statistics=${statistics}
            format=${count}
            series=${[
              { label: words.received, values: of(series, ({ received }) => received), colour: 'accent', shape: 'bars' },
              { label: words.delivered, values: of(series, ({ delivered }) => delivered), colour: 'good', shape: 'steps' },
            ]}
          />
          <div class="columns four">
            <${Figure}
              title=${words.failed}
              statistics=${statistics}
              format=${count}
              series=${[{ label: words.failed, values: of(series, ({ failed }) => failed), colour: 'bad', shape: 'bars' }]}
            />
            <${Figure}
              title=${words.latency}
              hint=${words.latencyHint}
              statistics=${statistics}
              format=${duration}
              scale="logarithmic"
              series=${[
                { label: words.median, values: of(series, ({ latency }) => latency.p50_ms), colour: 'good', shape: 'steps' },
                { label: words.percentile95, values: of(series, ({ latency }) => latency.p95_ms), colour: 'warn', shape: 'steps' },
              ]}
            />
            <${Errors} errors=${statistics.errors} />
            <${Waiting} deliveries=${statistics.oldest_deliveries ?? []} />
          </div>
          <p class="small"><a href="start">${words.start}</a></p>`
      }}
    </${Loaded}>`
}
