import { call, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { SelectField } from './filters.ts'

const repositoriesMax = 100

/** Chooses a repository by its repo_id. A value that is not among the repositories can be chosen, too: the repository may have been deleted. */
export const RepositoryField = ({
  label,
  value,
  onChange,
}: {
  label: string
  value: string | undefined
  onChange: (value: string) => void
}) => {
  const live = useLive(
    'repositories',
    (signal) => call<Schemas['RepositoryList']>('GET', '/repositories', { query: { per_page: repositoriesMax }, signal }),
    0,
  )
  const known = (live.data?.data ?? []).map(({ attributes }) => attributes.repo_id)
  const ids = value === undefined || known.includes(value) ? known : [...known, value]
  return html`<${SelectField} label=${label} value=${value} options=${ids.map((id) => [id, id])} onChange=${onChange} />`
}
