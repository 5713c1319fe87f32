import { useState } from 'preact/hooks'
import { call, may, type Schemas } from '../api.ts'
import { html, type Children } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, texts } from '../preferences.ts'
import * as startCatalogue from '../texts/start.ts'
import { Badge, ErrorNotice, Heading, Loaded, Mark, Notice } from '../ui/parts.ts'
import { useTestDocument } from '../ui/test-document.ts'

type Repository = Schemas['RepositoryList']['data'][number]
type Document = Schemas['DocumentList']['data'][number]

const repositoriesMax = 100

interface Loading {
  hasDestination: boolean
  hasRepository: boolean
  /** The repositories whose documents are delivered. */
  connected: Repository[]
  newest: Document | undefined
}

const load = async (signal: AbortSignal): Promise<Loading> => {
  const list = <List>(path: string, perPage: number) => call<List>('GET', path, { query: { per_page: perPage }, signal })
  const [destinations, repositories, documents] = await Promise.all([
    list<Schemas['DestinationList']>('/destinations', 1),
    list<Schemas['RepositoryList']>('/repositories', repositoriesMax),
    list<Schemas['DocumentList']>('/documents', 1),
  ])
  const isConnected = ({ attributes: { status, warnings } }: Repository) =>
    status === 'active' && warnings.every(({ code }) => code !== 'not_connected')
  return {
    hasDestination: destinations.data.length > 0,
    hasRepository: repositories.data.length > 0,
    connected: repositories.data.filter(isConnected),
    newest: documents.data[0],
  }
}

/** Sends a test document to one of the repositories. */
const SendTest = ({ connected, isFirst, onSent }: { connected: Repository[]; isFirst: boolean; onSent: () => void }) => {
  const words = inLanguage(startCatalogue)
  const [chosen, setChosen] = useState<string>()
  const { state, send } = useTestDocument(onSent)
  const repository = connected.find(({ id }) => id === chosen) ?? connected[0]!
  return html`<div class="actions">
      ${
        connected.length > 1 &&
        html`<select
          aria-label=${words.repository}
          value=${repository.id}
          onChange=${(event: Event) => setChosen((event.target as HTMLSelectElement).value)}
        >
          ${connected.map(({ id, attributes }) => html`<option key=${id} value=${id}>${attributes.repo_id} · ${attributes.name}</option>`)}
        </select>`
      }
      <button
        type="button"
        class=${isFirst ? 'button primary' : 'button'}
        disabled=${state.isBusy}
        onClick=${() => void send(repository.id)}
      >
        ${state.isBusy ? `${words.sending} …` : words.send(repository.attributes.repo_id)}
      </button>
    </div>
    ${state.error && html`<${ErrorNotice} error=${state.error} />`}`
}

/** Where a document is on its way to each destination. */
const Arrival = ({ document: { id, attributes } }: { document: Document }) => {
  const words = inLanguage(startCatalogue)
  const { deliveryStatus } = texts()
  const { deliveries } = attributes
  return html`<p>${words.newest}: <a class="mono" href=${`documents/${id}`}>${attributes.doc_id}</a></p>
    <ul class="plain">
      ${deliveries.map(
        ({ destination_id: destination, destination_name: name, status }) =>
          html`<li key=${destination}><${Badge} status=${status} label=${deliveryStatus[status]} /> ${name}</li>`,
      )}
    </ul>
    ${
      deliveries.length > 0 &&
      deliveries.every(({ status }) => status === 'delivered') &&
      html`<${Notice} tone="good">${words.arrived}</${Notice}>`
    }`
}

const Step = ({ name, isDone, children }: { name: keyof (typeof startCatalogue)['en']['steps']; isDone: boolean; children: Children }) => {
  const words = inLanguage(startCatalogue)
  return html`<li class=${`card step ${isDone ? 'done' : ''}`}>
    <span class=${`step-mark ${isDone ? 'good' : ''}`}
      >${isDone && html`<${Mark} status="delivered" />`}<span class="visually-hidden">${isDone ? words.done : words.open}</span></span
    >
    <div>
      <h2>${words.steps[name]}</h2>
      <p class="quiet">${words.hints[name]}</p>
      ${children}
    </div>
  </li>`
}

/** The way from an empty workspace to the first document that arrives. */
export const StartScreen = () => {
  const words = inLanguage(startCatalogue)
  const { screens } = texts()
  const live = useLive('start', load)
  const isMember = may('member')
  return html`<${Heading} title=${screens.start} />
    <p class="quiet">${words.intro}</p>
    ${!isMember && html`<${Notice} tone="info">${words.mayNot}</${Notice}>`}
    <${Loaded} live=${live}>
      ${() => {
        const { hasDestination, hasRepository, connected, newest } = live.data!
        const isDone = { destination: hasDestination, repository: hasRepository, connection: connected.length > 0 }
        const open = (['destination', 'repository', 'connection'] as const).find((name) => !isDone[name])
        const link = (name: keyof typeof isDone) =>
          !isDone[name] &&
          isMember &&
          html`<a class=${name === open ? 'button primary' : 'button'} href=${`${name.replace(/y$/, 'ie')}s/new`}>${words.steps[name]}</a>`
        return html`<ol class="first-steps">
            <${Step} name="destination" isDone=${isDone.destination}>${link('destination')}</${Step}>
            <${Step} name="repository" isDone=${isDone.repository}>${link('repository')}</${Step}>
            <${Step} name="connection" isDone=${isDone.connection}>${link('connection')}</${Step}>
            <${Step} name="document" isDone=${newest !== undefined}>
              ${
                isMember &&
                isDone.connection &&
                html`<${SendTest} connected=${connected} isFirst=${newest === undefined} onSent=${live.reload} />`
              }
              ${newest && html`<${Arrival} document=${newest} />`}
            </${Step}>
          </ol>
          ${
            newest &&
            html`<p>
              ${connected[0] && html`${words.source} <a href=${`repositories/${connected[0].id}`}>${words.toRepository}</a> · `}
              <a href="overview">${words.toOverview}</a>
            </p>`
          }`
      }}
    </${Loaded}>`
}
