import { useState } from 'preact/hooks'
import { call, callRaw, callVersioned, may, type Schemas } from '../api.ts'
import { formatDuration } from '../format.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, locale, texts } from '../preferences.ts'
import { navigate } from '../router.ts'
import * as enrichmentsCatalogue from '../texts/enrichments.ts'
import * as formCatalogue from '../texts/form.ts'
import { EnrichmentTry } from '../ui/enrichment-try.ts'
import { announce, Confirm, ExactTime, Facts, Heading, Loaded, Notice } from '../ui/parts.ts'
import { EnrichmentForm } from './enrichment-form.ts'
import { countsText, EnrichmentState } from './enrichments.ts'

const formWords = inLanguage(formCatalogue)
const enrichmentsWords = inLanguage(enrichmentsCatalogue)

type Enrichment = Schemas['Enrichment']
type Repository = Schemas['Repository']

const repositoriesMax = 100

const loadRepositories = async (signal: AbortSignal): Promise<Repository[]> =>
  (await call<Schemas['RepositoryList']>('GET', '/repositories', { query: { per_page: repositoriesMax }, signal })).data

interface Loading {
  enrichment: Enrichment
  etag: string
  repositories: Repository[]
}

const load = async (id: string, signal: AbortSignal): Promise<Loading> => {
  const [{ data, etag }, repositories] = await Promise.all([
    callVersioned<Schemas['EnrichmentResponse']>(`/enrichments/${id}`, signal),
    loadRepositories(signal),
  ])
  return { enrichment: data, etag, repositories }
}

const EnrichmentFacts = ({ enrichment: { attributes }, repositories }: { enrichment: Enrichment; repositories: Repository[] }) => {
  const words = enrichmentsWords()
  const { repository_ids: ids, wait_seconds: wait, late_days: late, http, has_credentials: hasCredentials, steps } = attributes
  const names = new Map(repositories.map((each) => [each.id, each.attributes.repo_id]))
  return html`<section class="card" aria-label=${attributes.name}>
    <${Facts}
      of=${[
        [
          words.repositories,
          ids.length === 0
            ? words.none
            : ids.map((id, index) => html`${index > 0 && ', '}<a key=${id} href=${`repositories/${id}`}>${names.get(id) ?? id}</a>`),
        ],
        [words.documents, countsText(attributes, words.counts)],
        [words.wait, formatDuration(wait * 1_000, locale())],
        [words.late, formatDuration(late * 86_400_000, locale())],
        [words.url, http === null ? undefined : html`<span class="mono">${http.url}</span>`],
        [words.credentials, http === null ? undefined : hasCredentials ? words.stored : words.none],
        [words.created, html`<${ExactTime} at=${attributes.created_at} />`],
        [words.changed, html`<${ExactTime} at=${attributes.updated_at} />`],
      ]}
    />
    <details>
      <summary>${words.steps}: ${steps.map(({ name }) => name).join(', ')}</summary>
      <pre class="code" tabindex="0">${JSON.stringify(steps, null, 2)}</pre>
    </details>
  </section>`
}

const Existing = ({ id }: { id: string }) => {
  const words = enrichmentsWords()
  const { screens } = texts()
  const form = formWords()
  const [version, setVersion] = useState({ number: 0, isSaved: false })
  const [isEditing, setEditing] = useState(false)
  const [isAsked, setAsked] = useState(false)
  const live = useLive(`${id} ${version.number}`, (signal) => load(encodeURIComponent(id), signal), 0)
  const loadAgain = (isSaved: boolean) => setVersion(({ number }) => ({ number: number + 1, isSaved }))
  const attributes = live.data?.enrichment.attributes
  const remove = async () => {
    await callRaw('DELETE', `/enrichments/${id}`, { headers: { 'if-match': live.data!.etag } })
    navigate('enrichments')
  }
  return html`<${Heading} title=${attributes?.name ?? screens.enrichments}>
      ${attributes && html`<${EnrichmentState} attributes=${attributes} />`}
    </${Heading}>
    ${version.isSaved && !isEditing && html`<${Notice} tone="good">${form.saved}</${Notice}>`}
    <${Loaded} live=${live}>
      ${() => {
        const { enrichment, etag, repositories } = live.data!
        const saved = () => {
          announce(form.saved)
          setEditing(false)
          loadAgain(true)
        }
        const [repositoryId, ...others] = enrichment.attributes.repository_ids
        const only = others.length === 0 ? repositories.find((each) => each.id === repositoryId) : undefined
        return html`${enrichment.attributes.is_failing && html`<${Notice} tone="warn">${words.failingText}</${Notice}>`}
          <div class="actions">
            ${
              may('member') &&
              html`<button type="button" class="button" aria-expanded=${isEditing} onClick=${() => setEditing(!isEditing)}>
                ${form.edit}
              </button>`
            }
            ${may('admin') && html`<button type="button" class="button" onClick=${() => setAsked(true)}>${form.delete}</button>`}
          </div>
          ${
            isEditing
              ? html`<${EnrichmentForm}
                  key=${version.number}
                  stored=${{ id, attributes: enrichment.attributes, etag }}
                  repositories=${repositories}
                  reload=${() => loadAgain(false)}
                  onSaved=${saved}
                />`
              : html`<${EnrichmentFacts} enrichment=${enrichment} repositories=${repositories} />`
          }
          ${may('member') && !isEditing && html`<${EnrichmentTry} id=${id} repoId=${only?.attributes.repo_id} />`}
          ${
            isAsked &&
            html`<${Confirm} title=${words.confirmDelete} action=${form.delete} onConfirm=${remove} onClose=${() => setAsked(false)}>
              <p>${words.deleteEffect(enrichment.attributes.name)}</p>
            </${Confirm}>`
          }`
      }}
    </${Loaded}>`
}

const New = () => {
  const words = enrichmentsWords()
  const live = useLive('repositories', loadRepositories, 0)
  return html`<${Heading} title=${words.createTitle} />
    <${Loaded} live=${live}>
      ${() =>
        html`<${EnrichmentForm}
          repositories=${live.data!}
          reload=${live.reload}
          onSaved=${(id: string) => navigate(`enrichments/${id}`)}
        />`}
    </${Loaded}>`
}

export const EnrichmentScreen = ({ id }: { id: string }) =>
  html`<p class="back"><a href="enrichments">${enrichmentsWords().back}</a></p>
    ${id === 'new' ? html`<${New} />` : html`<${Existing} key=${id} id=${id} />`}`
