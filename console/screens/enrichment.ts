import { may, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import { inLanguage } from '../preferences.ts'
import * as enrichmentsCatalogue from '../texts/enrichments.ts'
import { configuredScreen } from '../ui/configured-screen.ts'
import { EnrichmentTry } from '../ui/enrichment-try.ts'
import { Notice } from '../ui/parts.ts'
import { EnrichmentForm, enrichmentFields } from './enrichment-form.ts'
import { countsText, EnrichmentState, loadRepositories } from './enrichments.ts'

type Attributes = Schemas['Enrichment']['attributes']
type Repository = Schemas['Repository']

const linksTo = (ids: readonly string[], repositories: readonly Repository[]) => {
  const names = new Map(repositories.map((each) => [each.id, each.attributes.repo_id]))
  return ids.map((id, index) => html`${index > 0 && ', '}<a key=${id} href=${`repositories/${id}`}>${names.get(id) ?? id}</a>`)
}

export const EnrichmentScreen = ({ id }: { id: string }) => {
  const words = inLanguage(enrichmentsCatalogue)
  return configuredScreen<Attributes, Repository[]>(id, {
    resource: 'enrichments',
    list: 'enrichments',
    words,
    loadContext: loadRepositories,
    state: (attributes) => html`<${EnrichmentState} attributes=${attributes} />`,
    warning: (attributes) => attributes.is_failing && html`<${Notice} tone="warn">${words.failingText}</${Notice}>`,
    fields: enrichmentFields(),
    values: ({ repository_ids: ids }, repositories) => ({ repository_ids: ids.length === 0 ? words.none : linksTo(ids, repositories) }),
    facts: (attributes) => [
      [words.credentials, attributes.http === null ? undefined : attributes.has_credentials ? words.stored : words.none],
      [words.documents, countsText(attributes, words.counts)],
    ],
    details: ({ steps }) =>
      html`<details>
        <summary>${words.fields.steps}: ${steps.map(({ name }) => name).join(', ')}</summary>
        <pre class="code" tabindex="0">${JSON.stringify(steps, null, 2)}</pre>
      </details>`,
    form: (props, repositories) => html`<${EnrichmentForm} ...${props} repositories=${repositories} />`,
    below: ({ repository_ids: [repositoryId, ...others] }, repositories) => {
      const only = others.length === 0 ? repositories.find((each) => each.id === repositoryId) : undefined
      return may('member') && html`<${EnrichmentTry} id=${id} repoId=${only?.attributes.repo_id} />`
    },
  })
}
