import { loadWorkspaceStates, session, type WorkspaceState } from '../api.ts'
import { formatBytes } from '../format.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, locale, texts } from '../preferences.ts'
import { addressOf } from '../router.ts'
import * as workspacesCatalogue from '../texts/workspaces.ts'
import { Heading, Loaded, Table, Time } from '../ui/parts.ts'
import { nameOfWorkspace } from '../workspace-choice.ts'

const refreshMs = 10_000

const Row = ({ state }: { state: WorkspaceState }) => {
  const words = inLanguage(workspacesCatalogue)
  const { app } = texts()
  const { oldest_open_at: oldest, last_request_at: last, stored_bytes: stored, max_bytes: limit } = state
  const workspace = nameOfWorkspace(state)
  const isHere = workspace === nameOfWorkspace(session.value!)
  const bytes = (value: number) => formatBytes(value, locale())
  const noneText = html`<span class="quiet">${words.none}</span>`
  const trouble = [
    { number: state.attention, text: app.documents, path: 'attention' },
    { number: state.failing, text: words.failing, path: 'destinations' },
    { number: state.refusing, text: words.refusing, path: 'requests', query: { status_class: '4xx' } },
    { number: state.held, text: words.held, path: 'documents', query: { delivery_status: 'held' } },
  ].filter(({ number }) => number > 0)
  // The page is loaded again with the other workspace (target).
  return html`<tr role="row">
    <td role="cell" class="main-cell name">
      <a href=${addressOf('overview', { workspace })} target="_self">${workspace}</a>
      ${isHere && html`<span class="small">${words.here}</span>`}
    </td>
    <td role="cell">
      <span class="cell-name">${words.attention}: </span>
      ${trouble.length === 0 && html`<span class="quiet">${words.nothing}</span>`}
      ${trouble.map(
        ({ number, text, path, query }) =>
          html`<div key=${path}><a href=${addressOf(path, { ...query, workspace })} target="_self">${text(number)}</a></div>`,
      )}
    </td>
    <td role="cell"><span class="cell-name">${words.oldest}: </span>${oldest === null ? noneText : html`<${Time} at=${oldest} />`}</td>
    <td role="cell"><span class="cell-name">${words.lastRequest}: </span>${last === null ? noneText : html`<${Time} at=${last} />`}</td>
    <td role="cell">
      <span class="cell-name">${words.stored}: </span>${limit === null ? bytes(stored) : words.storedOf(bytes(stored), bytes(limit))}
    </td>
  </tr>`
}

export const WorkspacesScreen = () => {
  const words = inLanguage(workspacesCatalogue)
  const { screens } = texts()
  const live = useLive('workspaces', loadWorkspaceStates, refreshMs)
  const columns = [words.workspace, words.attention, words.oldest, words.lastRequest, words.stored]
  return html`<${Heading} title=${screens.workspaces} />
    <p class="quiet">${words.intro}</p>
    <${Loaded} live=${live}>
      ${() =>
        html`<${Table} label=${screens.workspaces} columns=${columns}>
          ${live.data!.map((state) => html`<${Row} key=${nameOfWorkspace(state)} state=${state} />`)}
        </${Table}>`}
    </${Loaded}>`
}
