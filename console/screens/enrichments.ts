import { call, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import { inLanguage, locale } from '../preferences.ts'
import * as enrichmentsCatalogue from '../texts/enrichments.ts'
import { ConfiguredList } from '../ui/configured-list.ts'
import { Badge } from '../ui/parts.ts'

type Attributes = Schemas['Enrichment']['attributes']
type Repository = Schemas['Repository']

const repositoriesMax = 100

export const loadRepositories = async (signal: AbortSignal): Promise<Repository[]> =>
  (await call<Schemas['RepositoryList']>('GET', '/repositories', { query: { per_page: repositoriesMax }, signal })).data

/** Whether an enrichment works. */
export const EnrichmentState = ({ attributes }: { attributes: Attributes }) => {
  const words = inLanguage(enrichmentsCatalogue)
  const { is_active: isActive, is_failing: isFailing } = attributes
  const status = isFailing ? 'failing' : isActive ? 'active' : 'inactive'
  return html`<${Badge} status=${status} label=${status === 'active' ? words.fields.is_active : words[status]} />`
}

const countNames = ['complete', 'partial', 'pending', 'failed', 'skipped'] as const

/** The number of documents by the status of their enrichment, in words. */
export const countsText = ({ documents }: Attributes, counts: Record<(typeof countNames)[number], string>): string =>
  countNames
    .filter((name) => documents[name] > 0)
    .map((name) => `${counts[name]}: ${documents[name].toLocaleString(locale())}`)
    .join(', ') || '–'

export const EnrichmentsScreen = () => {
  const words = inLanguage(enrichmentsCatalogue)
  const { name, repository_ids: repositories } = words.fields
  return html`<${ConfiguredList}
    resource="enrichments"
    list="enrichments"
    words=${words}
    columns=${[name, repositories, words.documents, words.status]}
    loadContext=${loadRepositories}
    cells=${(attributes: Attributes, known: Repository[]) => {
      const names = new Map(known.map((each) => [each.id, each.attributes.repo_id]))
      return html`<td role="cell" data-label=${repositories}>
          ${attributes.repository_ids.map((id) => names.get(id) ?? id).join(', ') || '–'}
        </td>
        <td role="cell" data-label=${words.documents}>${countsText(attributes, words.counts)}</td>
        <td role="cell"><${EnrichmentState} attributes=${attributes} /></td>`
    }}
  />`
}
