import { useEffect } from 'preact/hooks'
import { call, session, type Schemas } from '../api.ts'
import { formatBytes, formatDuration } from '../format.ts'
import { html, type Children } from '../html.ts'
import { useLive } from '../live.ts'
import { rangeNamed, ranges, startOf, statesOf, totalsOf, type Period, type Range, type State, type Statistics } from '../overview.ts'
import { inLanguage, locale, texts } from '../preferences.ts'
import { addressOf, navigate, route } from '../router.ts'
import * as overviewCatalogue from '../texts/overview.ts'
import { Badge, Choices, Heading, Loaded, Notice, Time } from '../ui/parts.ts'
import { Plot, type PlotSeries } from '../ui/plot.ts'

const tones = ['bad', 'warn', 'info'] as const

/** Something that the overview says above its numbers, with the screen that shows more. */
interface Banner {
  tone: (typeof tones)[number]
  text: string
  href: string
  link: string
}

const states: Record<State, Pick<Banner, 'tone' | 'href'>> = {
  attention: { tone: 'bad', href: 'attention' },
  retrying: { tone: 'warn', href: addressOf('documents', { delivery_status: 'retrying' }) },
  held: { tone: 'warn', href: addressOf('documents', { delivery_status: 'held' }) },
  pending: { tone: 'info', href: addressOf('documents', { delivery_status: 'pending' }) },
}

const count = (value: number) => value.toLocaleString(locale())
const duration = (ms: number) => formatDuration(ms, locale())

const discardedMax = 3
// The longest page of a list.
const listMax = 100

/** Returns what is to be said. */
const bannersOf = ({ statistics: { present }, discarded, failing }: Loading): Banner[] => {
  const words = inLanguage(overviewCatalogue)
  const notShown = discarded.meta.total - discarded.data.length
  return [
    ...statesOf(present).map(([state, number]) => ({ ...states[state], text: words.state[state](number), link: words.show[state] })),
    ...[
      ...discarded.data.map(({ attributes: { documents, repo_id: repoId, is_connected: isConnected } }) =>
        words.discarded(documents, repoId, isConnected),
      ),
      ...(notShown > 0 ? [words.moreDiscarded(notShown)] : []),
    ].map((text) => ({ tone: 'bad' as const, text, href: 'attention', link: words.showDiscarded })),
    ...failing.repositories.flatMap(({ id, attributes: { repo_id: repoId, warnings } }) =>
      warnings.flatMap(({ code }) =>
        code === 'upstream_failing' || code === 'requests_refused'
          ? { tone: 'bad' as const, text: words.repositoryFails[code](repoId), href: `repositories/${id}`, link: words.showRepository }
          : [],
      ),
    ),
    ...failing.enrichments.map(({ id, attributes: { name } }) => ({
      tone: 'warn' as const,
      text: words.enrichmentFails(name),
      href: `enrichments/${id}`,
      link: words.showEnrichment,
    })),
  ]
}

/** Says what is not as it should be, and what is under way: the worst first. */
const Banners = ({ loaded }: { loaded: Loading }) => {
  const banners = bannersOf(loaded)
  if (banners.length === 0) return html`<${Notice} tone="good"><p>${inLanguage(overviewCatalogue).allDelivered}</p></${Notice}>`
  return tones
    .map((tone) => [tone, banners.filter((each) => each.tone === tone)] as const)
    .filter(([, its]) => its.length > 0)
    .map(
      ([tone, its]) =>
        html`<${Notice} key=${tone} tone=${tone}>
          ${its.map(({ text, href, link }) => html`<p key=${text}><strong>${text}</strong> <a href=${href}>${link}</a></p>`)}
        </${Notice}>`,
    )
}

const Tile = ({ name, value, more }: { name: string; value: Children; more?: Children }) =>
  html`<div class="tile">
    <dt>${name}</dt>
    <dd>
      <span class="value">${value}</span>
      ${more && html`<span class="small">${more}</span>`}
    </dd>
  </div>`

const Tiles = ({ statistics: { series, latency, present } }: { statistics: Statistics }) => {
  const words = inLanguage(overviewCatalogue)
  const totals = totalsOf(series)
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
  const words = inLanguage(overviewCatalogue)
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

const waitingMax = 5

const Waiting = ({ deliveries }: { deliveries: NonNullable<Statistics['oldest_deliveries']> }) => {
  const words = inLanguage(overviewCatalogue)
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
    repositories: repositories.data,
  }
  return { statistics: stats.data.attributes, discarded, failing, isUnused: !used.has(name) }
}

type Loading = Awaited<ReturnType<typeof load>>

export const OverviewScreen = () => {
  const words = inLanguage(overviewCatalogue)
  const { screens } = texts()
  const range = rangeNamed(route.value.query.get('range'))
  const live = useLive(range, (signal) => load(range, signal))
  const isUnused = live.data?.isUnused === true
  useEffect(() => {
    if (isUnused) navigate('start', { replace: true })
  }, [isUnused])
  return html`<${Heading} title=${screens.overview}
      ><${Choices}
        label=${words.range}
        current=${range}
        of=${ranges.map((name) => [name, words.ranges[name], addressOf('overview', { range: name === '24h' ? undefined : name })])}
    /></${Heading}>
    <${Loaded} live=${live}>
      ${() => {
        if (isUnused) return null
        const { statistics } = live.data!
        const { series } = statistics
        return html`<${Banners} loaded=${live.data!} />
          <${Tiles} statistics=${statistics} />
          <${Figure}
            title=${words.receivedAndDelivered}
            statistics=${statistics}
            format=${count}
            series=${[
              { label: words.received, values: of(series, ({ received }) => received), colour: 'accent', shape: 'bars' },
              { label: words.delivered, values: of(series, ({ delivered }) => delivered), colour: 'good', shape: 'steps' },
              { label: words.failed, values: of(series, ({ failed }) => failed), colour: 'bad', shape: 'steps' },
            ]}
          />
          <div class="columns">
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
            <${Waiting} deliveries=${statistics.oldest_deliveries ?? []} />
          </div>
          <p class="small"><a href="start">${words.start}</a></p>`
      }}
    </${Loaded}>`
}
