// Filters that choose one of the repositories or connections of the workspace.
import { call, type Schemas } from '../api.ts'
import { repositoryText } from '../format.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { SelectField, type Option } from './filters.ts'

const choicesMax = 100

interface ChoiceProps {
  label: string
  value: string | undefined
  onChange: (value: string) => void
}

/** Returns a field that chooses from a list of the API. A value that is not on the list stays: what it names may have been deleted. */
const choiceOf =
  <List>(resource: string, optionsOf: (list: List) => Option[]) =>
  ({ label, value, onChange }: ChoiceProps) => {
    const live = useLive(resource, (signal) => call<List>('GET', `/${resource}`, { query: { per_page: choicesMax }, signal }), 0)
    const known = live.data ? optionsOf(live.data) : []
    const options: Option[] = value === undefined || known.some(([id]) => id === value) ? known : [...known, [value, value]]
    return html`<${SelectField} label=${label} value=${value} options=${options} onChange=${onChange} />`
  }

/** Chooses a repository by its repo_id. */
export const RepositoryField = choiceOf<Schemas['RepositoryList']>('repositories', ({ data }) =>
  data.map(({ attributes }): Option => [
    attributes.repo_id,
    repositoryText({ repo_id: attributes.repo_id, repository_name: attributes.name }),
  ]),
)

/** Chooses a destination by its id. */
export const DestinationField = choiceOf<Schemas['DestinationList']>('destinations', ({ data }) =>
  data.map(({ id, attributes }): Option => [id, attributes.name]),
)

/** Chooses a connection by its id. Its deliveries outlive a connection. */
export const ConnectionField = choiceOf<Schemas['ConnectionList']>('connections', ({ data }) =>
  data.map(({ id, name }): Option => [id, name]),
)
