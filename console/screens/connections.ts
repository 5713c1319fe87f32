import { useState } from 'preact/hooks'
import { call, may, type Schemas } from '../api.ts'
import { healthOf } from '../destination-health.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, texts } from '../preferences.ts'
import { addressOf, navigate, route } from '../router.ts'
import * as connectionsCatalogue from '../texts/connections.ts'
import { Badge, Heading, Loaded, Table } from '../ui/parts.ts'
import { WiringFigure } from '../ui/wiring-figure.ts'
import { layOutWiring, stateOf, type ConnectionState } from '../wiring.ts'
import { ConfirmSwitch, heldText } from './connection-switch.ts'

type Connection = Schemas['Connection']

const states: ConnectionState[] = ['active', 'inactive', 'held']
// Of a workspace with more, the picture leaves out some that no connection links.
const perPage = 100
const refreshMs = 10_000

const load = async (signal: AbortSignal) => {
  const query = { per_page: perPage }
  const [connections, repositories, destinations] = await Promise.all([
    call<Schemas['ConnectionList']>('GET', '/connections', { signal }),
    call<Schemas['RepositoryList']>('GET', '/repositories', { query, signal }),
    call<Schemas['DestinationList']>('GET', '/destinations', { query, signal }),
  ])
  return {
    connections: connections.data,
    all: {
      repositories: repositories.data.map(({ id, attributes: { repo_id, name } }) => ({ id, repo_id, name })),
      destinations: destinations.data.map(({ id, attributes: { name, connector_type: type } }) => ({ id, name, type })),
    },
    health: new Map(destinations.data.map(({ id, attributes }) => [id, healthOf(attributes)])),
  }
}

const isFound = ({ name, repositories, destinations }: Connection, text: string) =>
  [
    name,
    ...repositories.flatMap(({ repo_id: repoId, description }) => [repoId, description]),
    ...destinations.map((destination) => destination.name),
  ].some((each) => each.toLowerCase().includes(text.toLowerCase()))

const Row = ({ connection, onSwitch }: { connection: Connection; onSwitch: () => void }) => {
  const words = inLanguage(connectionsCatalogue)
  const { id, name, repositories, destinations, is_active: isActive } = connection
  const state = stateOf(connection)
  const action = isActive ? words.switchOff : words.switchOn
  return html`<tr role="row">
    <td role="cell"><${Badge} status=${state} label=${words.states[state]} /></td>
    <td role="cell" class="main-cell name"><a href=${`connections/${id}`}>${name}</a></td>
    <td role="cell">
      <span class="cell-name">${words.from}: </span>
      <ul class="names">
        ${repositories.map(
          ({ id: each, repo_id: repoId, description }) =>
            html`<li key=${each}><a href=${`repositories/${each}`} title=${description}>${repoId}</a></li>`,
        )}
      </ul>
    </td>
    <td role="cell">
      <span class="cell-name">${words.to}: </span>
      <ul class="names">
        ${destinations.map(({ id: each, name: title }) => html`<li key=${each}><a href=${`destinations/${each}`}>${title}</a></li>`)}
      </ul>
    </td>
    <td role="cell">
      <span class="cell-name">${words.held}: </span>${
        connection.held_deliveries === 0 ? html`<span class="quiet">${words.nothing}</span>` : heldText(connection)
      }
    </td>
    ${
      may('member') &&
      html`<td role="cell">
        <button type="button" class="button slim" aria-label=${words.of(action, name)} onClick=${onSwitch}>${action}</button>
      </td>`
    }
  </tr>`
}

export const ConnectionsScreen = () => {
  const words = inLanguage(connectionsCatalogue)
  const { screens, common } = texts()
  const [asked, setAsked] = useState<Connection>()
  const { query } = route.value
  const [text, state] = [query.get('q') ?? '', query.get('state') ?? '']
  const live = useLive('connections', load, refreshMs)
  const filter = (change: { q?: string; state?: string }) =>
    navigate(addressOf('connections', { q: text, state, ...change }), { replace: true })
  return html`<${Heading} title=${screens.connections}>
      ${may('member') && html`<a class="button primary" href="connections/new">${words.create}</a>`}
    </${Heading}>
    <p class="quiet">${words.intro}</p>
    <div class="filters">
      <label class="field"
        ><span>${words.find}</span>
        <input type="search" value=${text} onInput=${(event: Event) => filter({ q: (event.target as HTMLInputElement).value })}
      /></label>
      <label class="field"
        ><span>${words.state}</span>
        <select value=${state} onChange=${(event: Event) => filter({ state: (event.target as HTMLSelectElement).value })}>
          <option value="">${common.all}</option>
          ${states.map((each) => html`<option key=${each} value=${each}>${words.states[each]}</option>`)}
        </select></label
      >
    </div>
    <${Loaded} live=${live}>
      ${() => {
        const { connections, all, health } = live.data!
        const isFiltered = text !== '' || state !== ''
        const shown = connections.filter((each) => isFound(each, text) && (state === '' || stateOf(each) === state))
        if (shown.length === 0) return html`<p class="empty">${isFiltered ? words.noneFound : words.empty}</p>`
        const columns = [words.state, words.fields.name, words.from, words.to, words.held, ...(may('member') ? [words.action] : [])]
        return html`<${WiringFigure} wiring=${isFiltered ? layOutWiring(shown) : layOutWiring(shown, all)} health=${health} />
          <${Table} label=${screens.connections} columns=${columns}>
            ${shown.map((each) => html`<${Row} key=${each.id} connection=${each} onSwitch=${() => setAsked(each)} />`)}
          </${Table}>
          ${asked && html`<${ConfirmSwitch} connection=${asked} onDone=${live.reload} onClose=${() => setAsked(undefined)} />`}`
      }}
    </${Loaded}>`
}
