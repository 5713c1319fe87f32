// The fields of a form: the texts that stand for values, the values that texts stand for, and which message of the API belongs to which
// field. Pure, so that it can be tested without a browser.

/**
 * How a value is entered: `lines` is a text of several lines, `checks` some of the choices, `list` one value per line, `pairs` one
 * `name: value` per line, and `json` a JSON object. `object` is a switch: off stands for null, on for an object whose values have fields of
 * their own.
 */
export type InputKind = 'text' | 'lines' | 'number' | 'date' | 'switch' | 'choice' | 'checks' | 'list' | 'pairs' | 'json' | 'object'

/** The text in the input of each field, by path. A switch has `true` or `false`. */
export type Texts = Record<string, string>
export type Values = Record<string, unknown>

export interface Field {
  /** Path of the value in the request, for example `config.url`. */
  path: string
  input: InputKind
  isRequired: boolean
  /** Returns false while a field that is required may be empty, which may depend on the other fields. */
  requiredWhen?: ((texts: Texts) => boolean) | undefined
  /** The value is never shown: its input is empty at first. */
  isSecret: boolean
  /** The text that stands for the default. Empty if the field has none. */
  fallback: string
  /** The value that an empty text stands for. Without it, an empty text is no value. */
  empty?: unknown
  /** Values of a choice. In a choice without a default, the empty text means no value. */
  choices: readonly string[]
  /** What separates the values of a list, which have a line each without it, or those of a pair, which has one without it. */
  separator?: RegExp | undefined
  isInteger?: boolean | undefined
  minimum?: number | undefined
  maximum?: number | undefined
  maxLength?: number | undefined
  /** Finds the value in a longer text that was entered, such as an id in an address: its first group. */
  takenFrom?: RegExp | undefined
  /** Returns true if the field is a part of the request, which may depend on the other fields. */
  when?: ((texts: Texts) => boolean) | undefined
}

/** Returns a field that is optional, if nothing else is said about it. */
export const fieldAt = (path: string, input: InputKind, more: Partial<Field> = {}): Field => ({
  path,
  input,
  isRequired: false,
  isSecret: false,
  fallback: '',
  choices: [],
  ...more,
})

/** The problem of a text that can be found without the relay. */
export type Problem = 'required' | 'number' | 'integer' | 'range' | 'json' | 'pairs'

/** Returns the value at a path. */
export const valueAt = (values: Values, path: string): unknown =>
  path.split('.').reduce<unknown>((value, key) => (value as Values | null | undefined)?.[key], values)

const putAt = (values: Values, path: string, value: unknown): void => {
  const keys = path.split('.')
  const last = keys.pop()!
  const parent = keys.reduce((object, key) => (object[key] ??= {}) as Values, values)
  parent[last] = value
}

/** Returns the text that stands for a value. */
export const textOf = ({ input, separator }: Pick<Field, 'input' | 'separator'>, value: unknown): string => {
  if (input === 'object') return String(typeof value === 'object' && value !== null)
  if (value === undefined || value === null) return ''
  if (input === 'list' || input === 'checks') {
    return (Array.isArray(value) ? value : [value]).map(String).join(separator ? ', ' : '\n')
  }
  if (input === 'pairs') {
    return Object.entries(value)
      .map(([name, each]) => `${name}: ${Array.isArray(each) ? each.join(', ') : String(each)}`)
      .join('\n')
  }
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2)
}

/** Returns the texts of values. What is not set has the text of its default; a secret has none. */
export const textsOf = (fields: readonly Field[], values: Values = {}): Texts =>
  Object.fromEntries(
    fields.map((field) => {
      if (field.isSecret) return [field.path, '']
      const value = valueAt(values, field.path)
      return [field.path, value === undefined && field.fallback !== '' ? field.fallback : textOf(field, value)]
    }),
  )

/** Returns the parts of a text that are not blank. */
export const partsOf = (text: string, separator: RegExp | string = '\n'): string[] =>
  text
    .split(separator)
    .map((part) => part.trim())
    .filter((part) => part !== '')

const pairsOf = (text: string, separator: RegExp | undefined): Record<string, string | string[]> | undefined => {
  const valueOf = (entered: string) => {
    const parts = separator ? partsOf(entered, separator) : []
    return parts.length > 1 ? parts : entered
  }
  const pairs = partsOf(text).map((line) => /^([^:]*[^:\s])\s*:\s*(.*)$/.exec(line))
  return pairs.every((pair) => pair !== null) ? Object.fromEntries(pairs.map(([, name, value]) => [name!, valueOf(value!)])) : undefined
}

const objectOf = (text: string): object | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

type Read = { value: unknown } | { problem: Problem }

const numberOf = (text: string, { isInteger, minimum = -Infinity, maximum = Infinity }: Field): Read => {
  if (!/^-?\d+(\.\d+)?$/.test(text)) return { problem: 'number' }
  const value = Number(text)
  if (isInteger && !Number.isInteger(value)) return { problem: 'integer' }
  return value < minimum || value > maximum ? { problem: 'range' } : { value }
}

/** Returns the value that a text stands for, or undefined if it stands for none. */
const readText = (field: Field, text: string, isRequired = field.isRequired): Read => {
  const { input, isSecret, empty, separator } = field
  // A secret may begin or end with a space.
  const entered = isSecret || input === 'lines' ? text : text.trim()
  if (entered.trim() === '') return isRequired ? { problem: 'required' } : { value: empty }
  if (input === 'switch') return { value: entered === 'true' }
  if (input === 'object') return { value: entered === 'true' ? {} : null }
  if (input === 'number') return numberOf(entered, field)
  if (input === 'list' || input === 'checks') return { value: partsOf(entered, separator) }
  if (input === 'pairs' || input === 'json') {
    const value = input === 'pairs' ? pairsOf(entered, separator) : objectOf(entered)
    return value ? { value } : { problem: input }
  }
  return { value: entered }
}

/** Returns true if a field must not be empty, as the others are. */
export const isRequiredIn = ({ isRequired, requiredWhen, when }: Field, texts: Texts): boolean =>
  isRequired && requiredWhen?.(texts) !== false && when?.(texts) !== false

interface Entered {
  values: Values
  /** Problems by path. Empty if all texts are right. */
  problems: Record<string, Problem>
}

const collect = (fields: readonly Field[], texts: Texts, isIncluded: (field: Field, value: unknown) => boolean): Entered => {
  const entered: Entered = { values: {}, problems: {} }
  for (const field of fields) {
    if (field.when?.(texts) === false) continue
    const read = readText(field, texts[field.path] ?? '', isRequiredIn(field, texts))
    if ('problem' in read) entered.problems[field.path] = read.problem
    else if (isIncluded(field, read.value)) putAt(entered.values, field.path, read.value ?? null)
  }
  return entered
}

/** Returns the values of a new object. Empty texts and defaults are left out. */
export const newValues = (fields: readonly Field[], texts: Texts): Entered =>
  collect(fields, texts, ({ path, fallback }, value) => value !== undefined && (fallback === '' || texts[path] !== fallback))

/** Returns the values that differ from the stored ones, as a JSON Merge Patch: null removes a value. */
export const changedValues = (fields: readonly Field[], texts: Texts, stored: Texts): Entered =>
  collect(fields, texts, (field, value) => {
    const before = readText(field, stored[field.path] ?? '')
    return JSON.stringify(value) !== JSON.stringify('value' in before ? before.value : undefined)
  })

/**
 * Returns values with the whole of each object at the paths, if any of it is among them: the API replaces such an object.
 * @param texts of all fields
 */
export const withWhole = (values: Values, paths: readonly string[], fields: readonly Field[], texts: Texts): Values => {
  const entered = newValues(fields, texts).values
  return { ...values, ...Object.fromEntries(paths.filter((path) => values[path]).map((path) => [path, entered[path] ?? {}])) }
}

/** Returns the name below a place to which a message refers, such as that of a header. The items of a list have none. */
const nameBelow = (place: string, path: string): string => {
  const rest = path.slice(place.length + 1)
  return rest === '' || /^\d+$/.test(rest) ? '' : `${rest}: `
}

/** What an error response says about a value. */
interface Detail {
  path: string
  message: string
}

/**
 * Assigns the details of an error response to the places where a form can show them: its fields, and the objects that they belong to.
 * @returns the messages by place, and the details that no place fits
 */
export const placeDetails = (details: readonly Detail[], places: readonly string[]): { at: Record<string, string[]>; others: Detail[] } => {
  const at: Record<string, string[]> = {}
  const others: Detail[] = []
  // The longest place that fits is the closest one.
  const closestFirst = places.toSorted((one, other) => other.length - one.length)
  for (const detail of details) {
    const { path, message } = detail
    const place = closestFirst.find((each) => path === each || path.startsWith(`${each}.`))
    if (place === undefined) others.push(detail)
    else at[place] = [...new Set([...(at[place] ?? []), nameBelow(place, path) + message])]
  }
  return { at, others }
}
