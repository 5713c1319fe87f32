import { call, may, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, locale, texts } from '../preferences.ts'
import { addressOf, route } from '../router.ts'
import * as enrichmentsCatalogue from '../texts/enrichments.ts'
import { Badge, Heading, Loaded, Pager, Table } from '../ui/parts.ts'

const enrichmentsWords = inLanguage(enrichmentsCatalogue)

const perPage = 25
const repositoriesMax = 100

const pageOf = (query: URLSearchParams) => Math.max(1, Math.trunc(Number(query.get('page') ?? 1)) || 1)

interface Loading {
  enrichments: Schemas['EnrichmentList']
  repositoryNames: Map<string, string>
}

const load = async (page: number, signal: AbortSignal): Promise<Loading> => {
  const [enrichments, repositories] = await Promise.all([
    call<Schemas['EnrichmentList']>('GET', '/enrichments', { query: { page, per_page: perPage }, signal }),
    call<Schemas['RepositoryList']>('GET', '/repositories', { query: { per_page: repositoriesMax }, signal }),
  ])
  return { enrichments, repositoryNames: new Map(repositories.data.map(({ id, attributes }) => [id, attributes.repo_id])) }
}

/** Whether an enrichment works. */
export const EnrichmentState = ({ attributes }: { attributes: Schemas['Enrichment']['attributes'] }) => {
  const words = enrichmentsWords()
  const { is_active: isActive, is_failing: isFailing } = attributes
  const status = isFailing ? 'failing' : isActive ? 'active' : 'inactive'
  return html`<${Badge} status=${status} label=${words[status]} />`
}

const countNames = ['complete', 'partial', 'pending', 'failed'] as const

/** The number of documents by the status of their enrichment, in words. */
export const countsText = (
  { documents }: Schemas['Enrichment']['attributes'],
  counts: Record<(typeof countNames)[number], string>,
): string =>
  countNames
    .filter((name) => documents[name] > 0)
    .map((name) => `${counts[name]}: ${documents[name].toLocaleString(locale())}`)
    .join(', ') || '–'

export const EnrichmentsScreen = () => {
  const words = enrichmentsWords()
  const { screens } = texts()
  const page = pageOf(route.value.query)
  const live = useLive(`enrichments ${page}`, (signal) => load(page, signal))
  return html`<${Heading} title=${screens.enrichments}>
      ${may('member') && html`<a class="button primary" href="enrichments/new">${words.create}</a>`}
    </${Heading}>
    <p class="quiet">${words.intro}</p>
    <${Loaded} live=${live}>
      ${() => {
        const { enrichments, repositoryNames } = live.data!
        const { data, meta } = enrichments
        if (data.length === 0) return html`<p class="empty">${words.empty}</p>`
        return html`<${Table} label=${screens.enrichments} columns=${[words.name, words.repositories, words.documents, words.status]}>
            ${data.map(
              ({ id, attributes }) =>
                html`<tr key=${id} role="row">
                  <td role="cell" class="main-cell"><a href=${`enrichments/${id}`}>${attributes.name}</a></td>
                  <td role="cell" data-label=${words.repositories}>
                    ${attributes.repository_ids.map((repositoryId) => repositoryNames.get(repositoryId) ?? repositoryId).join(', ') || '–'}
                  </td>
                  <td role="cell" data-label=${words.documents}>${countsText(attributes, words.counts)}</td>
                  <td role="cell"><${EnrichmentState} attributes=${attributes} /></td>
                </tr>`,
            )}
          </${Table}>
          <${Pager}
            page=${page}
            perPage=${perPage}
            total=${meta.total}
            addressOfPage=${(to: number) => addressOf('enrichments', { page: to === 1 ? undefined : String(to) })}
          />`
      }}
    </${Loaded}>`
}
