// Fields that filter a list. Filters are kept in the address, so that a list can be sent to a colleague.
import { useLayoutEffect, useState } from 'preact/hooks'
import { html, type Children } from '../html.ts'
import { texts } from '../preferences.ts'
import { addressOf, navigate, route } from '../router.ts'

type Values<Name extends string> = Partial<Record<Name, string>>

export interface Filters<Name extends string> {
  /** The filters that the address sets. */
  values: Values<Name>
  /** Shows the list with other filters, from its first page. An empty value removes a filter. */
  change(changes: Values<Name>): void
}

/** Returns the filters in the address of a list. @param path of the list, relative to the console */
export const filtersOf = <Name extends string>(path: string, names: readonly Name[]): Filters<Name> => {
  const { query } = route.value
  const values = Object.fromEntries(names.flatMap((name) => (query.get(name) ? [[name, query.get(name)!]] : []))) as Values<Name>
  return {
    values,
    change: (changes) => {
      const to = addressOf(path, { ...values, ...changes })
      if (new URL(to, document.baseURI).href !== location.href) navigate(to)
    },
  }
}

const valueOf = (event: Event) => (event.target as HTMLInputElement).value.trim()

interface FieldProps {
  label: string
  value: string | undefined
  onChange: (value: string) => void
}

export type Option = readonly [value: string, label: string]

const Options = ({ of }: { of: readonly Option[] }) =>
  of.map(([value, label]) => html`<option key=${value} value=${value}>${label}</option>`)

/** @param options values with their labels, or groups of them by the label of the group */
export const SelectField = ({
  label,
  value = '',
  options,
  onChange,
}: FieldProps & { options: readonly Option[] | ReadonlyMap<string, readonly Option[]> }) =>
  html`<label class="field"
    ><span>${label}</span>
    <select value=${value} onChange=${(event: Event) => onChange(valueOf(event))}>
      <option value="">${texts().common.all}</option>
      ${
        options instanceof Map
          ? [...options].map(([group, its]) => html`<optgroup key=${group} label=${group}><${Options} of=${its} /></optgroup>`)
          : html`<${Options} of=${options} />`
      }
    </select></label
  >`

export const DateField = ({ label, value = '', onChange }: FieldProps) =>
  html`<label class="field"
    ><span>${label}</span><input type="date" value=${value} onChange=${(event: Event) => onChange(valueOf(event))}
  /></label>`

/** Filters when the text is complete: with Enter, or when the field is left. */
export const SearchField = ({ label, value = '', placeholder, onChange }: FieldProps & { placeholder?: string }) => {
  // The typed text must stay when the screen is drawn again. A layout effect runs before anyone can type.
  const [text, setText] = useState(value)
  useLayoutEffect(() => setText(value), [value])
  const submit = (event: Event) => {
    event.preventDefault()
    onChange(text.trim())
  }
  return html`<form class="search" onSubmit=${submit}>
    <label class="field"
      ><span>${label}</span>
      <input
        type="search"
        value=${text}
        maxlength="255"
        placeholder=${placeholder}
        onInput=${(event: Event) => setText((event.target as HTMLInputElement).value)}
        onChange=${(event: Event) => onChange(valueOf(event))} /></label
    ><button type="submit" class="button">${texts().common.find}</button>
  </form>`
}

interface BarProps {
  /** Path of the list. */
  path: string
  isFiltered: boolean
  search: Children
  /** Filters that are seldom needed, shown if one of them is set. */
  rest?: Children
  hasRest?: boolean
  children: Children
}

/** The filters of a list, with the link that removes them. A narrow window shows only the search until the others are asked for. */
export const FilterBar = ({ path, isFiltered, search, rest, hasRest = false, children }: BarProps) => {
  const { common } = texts()
  const [isOpen, setOpen] = useState(false)
  return html`<search aria-label=${common.filters} class=${`filters ${isOpen ? 'open' : ''}`}>
    ${search} ${children}
    <button type="button" class=${`button ${rest ? '' : 'narrow'}`} aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>
      ${common.moreFilters}
    </button>
    ${(isOpen || hasRest) && rest} ${isFiltered && html`<a class="button" href=${path}>${common.removeFilters}</a>`}
  </search>`
}
