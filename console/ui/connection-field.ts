import { call, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { SelectField, type Option } from './filters.ts'

const connectionsMax = 100

/** Chooses a connection. A value that is not among the connections can be chosen, too: its deliveries outlive a connection. */
export const ConnectionField = ({
  label,
  value,
  onChange,
}: {
  label: string
  value: string | undefined
  onChange: (value: string) => void
}) => {
  const live = useLive(
    'connections',
    (signal) => call<Schemas['ConnectionList']>('GET', '/connections', { query: { per_page: connectionsMax }, signal }),
    0,
  )
  const known = (live.data?.data ?? []).map(({ id, name }): Option => [id, name])
  const options: Option[] = value === undefined || known.some(([id]) => id === value) ? known : [...known, [value, value]]
  return html`<${SelectField} label=${label} value=${value} options=${options} onChange=${onChange} />`
}
