import { useState } from 'preact/hooks'
import type { Health } from '../destination-health.ts'
import { html } from '../html.ts'
import { inLanguage } from '../preferences.ts'
import * as connectionsCatalogue from '../texts/connections.ts'
import * as connectorFieldsCatalogue from '../texts/connector-fields.ts'
import * as destinationsCatalogue from '../texts/destinations.ts'
import { type ConnectionState, type Wiring } from '../wiring.ts'

const width = 100
const curve = (from: number, to: number) => `M0 ${from}C${width / 2} ${from} ${width / 2} ${to} ${width} ${to}`

type Line = Wiring['incoming'][number]

const Lines = ({ lines, height, isDim }: { lines: Line[]; height: number; isDim: (connectionId: string) => boolean }) =>
  html`<svg class="links" width="100%" height=${height} viewBox=${`0 0 ${width} ${height}`} preserveAspectRatio="none">
    ${lines.map(
      ({ connectionId, state, from, to }) =>
        html`<path
          key=${`${connectionId} ${from} ${to}`}
          d=${curve(from, to)}
          class=${`${state} ${isDim(connectionId) ? 'dim' : ''}`}
          vector-effect="non-scaling-stroke"
        />`,
    )}
  </svg>`

interface NodeProps {
  href: string
  title: string
  subtitle: string
  state: ConnectionState | 'plain' | 'unlinked' | 'failing'
  isDim: boolean
  onHover: (isOver: boolean) => void
}

// Left out of the order of Tab: the table below the picture has the same links.
const Node = ({ href, title, subtitle, state, isDim, onHover }: NodeProps) =>
  html`<a
    class=${`node ${state} ${isDim ? 'dim' : ''}`}
    href=${href}
    tabindex="-1"
    title=${title}
    onMouseEnter=${() => onHover(true)}
    onMouseLeave=${() => onHover(false)}
    ><strong>${title}</strong>${subtitle !== '' && html`<span class="small">${subtitle}</span>`}</a
  >`

/**
 * Repositories at the left, connections in the middle, destinations at the right. A table has to show the same.
 * @param health of the destinations, by their ids
 */
export const WiringFigure = ({ wiring, health = new Map() }: { wiring: Wiring; health?: ReadonlyMap<string, Health> }) => {
  const words = inLanguage(connectionsCatalogue)
  const { health: healthNames } = inLanguage(destinationsCatalogue)
  const { connector } = inLanguage(connectorFieldsCatalogue)
  const [lit, setLit] = useState<ReadonlySet<string>>()
  const { height, repositories, connections, destinations, incoming, outgoing } = wiring
  const isDim = (connectionId: string) => lit !== undefined && !lit.has(connectionId)
  const connectionsAt = (lines: Line[], end: 'from' | 'to', y: number) =>
    new Set(lines.filter((line) => line[end] === y).map(({ connectionId }) => connectionId))
  const hover = (ids: ReadonlySet<string>) => (isOver: boolean) => setLit(isOver && ids.size > 0 ? ids : undefined)
  const end = (path: string, nodes: Wiring['repositories'], lines: Line[], side: 'from' | 'to', nameOf = (subtitle: string) => subtitle) =>
    nodes.map(({ id, title, subtitle, y }) => {
      const ids = connectionsAt(lines, side, y)
      const isLinked = ids.size > 0
      const trouble = [health.get(id)].find((each) => each === 'failing' || each === 'paused')
      // What is not linked is discarded at a repository. A destination may serve notifications alone.
      const state = trouble ? 'failing' : isLinked || side === 'to' ? 'plain' : 'unlinked'
      return html`<${Node}
        key=${id}
        href=${`${path}/${id}`}
        title=${title}
        subtitle=${trouble ? healthNames[trouble] : isLinked ? nameOf(subtitle) : words.notLinked}
        state=${state}
        isDim=${lit !== undefined && ![...ids].some((each) => lit.has(each))}
        onHover=${hover(ids)}
      />`
    })
  return html`<figure class="wiring card" aria-hidden="true">
    <span class="small">${words.fields.repository_ids}</span><span></span><span class="small">${words.connections}</span><span></span
    ><span class="small">${words.fields.destination_ids}</span>
    <div class="nodes">${end('repositories', repositories, incoming, 'from')}</div>
    <${Lines} lines=${incoming} height=${height} isDim=${isDim} />
    <div class="nodes">
      ${connections.map(
        ({ id, title, state }) =>
          html`<${Node}
            key=${id}
            href=${`connections/${id}`}
            title=${title}
            subtitle=${words.states[state]}
            state=${state}
            isDim=${isDim(id)}
            onHover=${hover(new Set([id]))}
          />`,
      )}
    </div>
    <${Lines} lines=${outgoing} height=${height} isDim=${isDim} />
    <div class="nodes">${end('destinations', destinations, outgoing, 'to', connector)}</div>
  </figure>`
}
