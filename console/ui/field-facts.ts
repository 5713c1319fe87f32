import { valueAt, type Field, type Values } from '../form.ts'
import { formatBytes, formatDuration } from '../format.ts'
import { html, type Children } from '../html.ts'
import { locale } from '../preferences.ts'
import type { FieldWords } from './fields.ts'

export type Fact = [name: string, value: Children]

const unitMs: [end: string, ms: number][] = [
  ['_seconds', 1_000],
  ['_hours', 3_600_000],
  ['_days', 86_400_000],
]

/** Returns a number with the unit that its name ends with. */
export const numberText = (path: string, value: number): string => {
  const [, ms] = unitMs.find(([end]) => path.endsWith(end)) ?? []
  if (ms !== undefined) return formatDuration(value * ms, locale())
  if (path.endsWith('port')) return String(value)
  return path.endsWith('_bytes') ? formatBytes(value, locale()) : value.toLocaleString(locale())
}

/** Returns a value as people read it, or undefined if it has no place among facts: a switch, a certificate, a script. */
const shownOf = ({ path, input }: Field, value: unknown, choices: Readonly<Record<string, string>> = {}): Children => {
  if (typeof value === 'number') return numberText(path, value)
  if (input === 'choice') return choices[String(value)] ?? String(value)
  if (input === 'checks') return (value as string[]).map((each) => choices[each] ?? each).join(', ')
  return input === 'text' ? html`<span class="mono">${value}</span>` : undefined
}

/**
 * Returns the values of fields as facts, with the labels of the form and in its order.
 * @param own what is shown in place of a value, by the path of its field. Undefined hides it
 */
export const factsOf = (fields: readonly Field[], words: FieldWords, values: Values, own: Readonly<Record<string, Children>>): Fact[] =>
  Object.entries(words.fields).flatMap(([path, label]): Fact[] => {
    if (path in own) return [[label, own[path]]]
    const field = fields.find((each) => each.path === path)
    const value = valueAt(values, path)
    return field && value !== undefined && value !== null ? [[label, shownOf(field, value, words.choices?.[path])]] : []
  })
