// Makes a form of a JSON schema: its fields, and the values that the texts of their inputs stand for. Pure, so that it can be tested without
// a browser.

/** As in the description of the API: JSON Schema 2020-12. */
export interface JsonSchema {
  type?: string | string[]
  title?: string
  description?: string
  properties?: Record<string, JsonSchema>
  required?: string[]
  additionalProperties?: boolean | JsonSchema
  items?: JsonSchema
  anyOf?: JsonSchema[]
  enum?: unknown[]
  default?: unknown
  format?: string
  writeOnly?: boolean
  minimum?: number
  maximum?: number
  maxLength?: number
}

/**
 * How a value is entered: `lines` is a text of several lines, `list` one value per line, `pairs` one `name: value` per line, and `json` a JSON
 * object.
 */
export type InputKind = 'text' | 'lines' | 'number' | 'switch' | 'choice' | 'list' | 'pairs' | 'json'

export interface Field {
  /** Name of the value in its object. */
  key: string
  input: InputKind
  title?: string | undefined
  description?: string | undefined
  isRequired: boolean
  /** The value is never shown: its input is empty at first. */
  isSecret: boolean
  /** The text that stands for the default. Empty if the schema has none. */
  fallback: string
  /** Of a choice. Not every choice has a default: the empty text is then none. */
  choices: string[]
  isInteger: boolean
  minimum?: number | undefined
  maximum?: number | undefined
  maxLength?: number | undefined
}

/** The text in the input of each field, by key. A switch has `true` or `false`. */
export type Texts = Record<string, string>

/** What is wrong with a text, as far as it can be told without the relay. */
export type Problem = 'required' | 'number' | 'integer' | 'range' | 'json' | 'pairs'

/** A longer text may have lines of its own: a certificate, a private key. */
const oneLineMax = 10_000

const typeOf = ({ type }: JsonSchema): string | undefined => (Array.isArray(type) ? type.find((each) => each !== 'null') : type)

const inputOf = (schema: JsonSchema): InputKind => {
  if (schema.enum) return 'choice'
  const type = typeOf(schema)
  if (type === 'boolean') return 'switch'
  if (type === 'integer' || type === 'number') return 'number'
  if (type === 'array' || schema.anyOf?.some((each) => typeOf(each) === 'array')) return 'list'
  if (type === 'string') return (schema.maxLength ?? 0) > oneLineMax ? 'lines' : 'text'
  return typeof schema.additionalProperties === 'object' ? 'pairs' : 'json'
}

/** Returns the text that stands for a value. */
export const textOf = (input: InputKind, value: unknown): string => {
  if (value === undefined || value === null) return ''
  if (input === 'list') return (Array.isArray(value) ? value : [value]).map(String).join('\n')
  if (input === 'pairs') {
    return Object.entries(value)
      .map(([name, each]) => `${name}: ${String(each)}`)
      .join('\n')
  }
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2)
}

/** Returns the fields of an object schema, in its order. */
export const fieldsOf = ({ properties = {}, required = [] }: JsonSchema): Field[] =>
  Object.entries(properties).map(([key, schema]) => {
    const input = inputOf(schema)
    return {
      key,
      input,
      title: schema.title,
      description: schema.description,
      isRequired: required.includes(key),
      isSecret: schema.writeOnly === true || schema.format === 'password',
      fallback: input === 'switch' ? String(schema.default === true) : textOf(input, schema.default),
      choices: (schema.enum ?? []).map(String),
      isInteger: typeOf(schema) === 'integer',
      minimum: schema.minimum,
      maximum: schema.maximum,
      maxLength: schema.maxLength,
    }
  })

/** Returns the texts of stored values. What is not set has the text of its default; a secret has none. */
export const textsOf = (fields: readonly Field[], values: Record<string, unknown> = {}): Texts =>
  Object.fromEntries(
    fields.map(({ key, input, isSecret, fallback }) => {
      if (isSecret) return [key, '']
      return [key, values[key] === undefined ? fallback : textOf(input, values[key])]
    }),
  )

const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')

const pairsOf = (text: string): Record<string, string> | undefined => {
  const pairs = linesOf(text).map((line) => /^([^:]*[^:\s])\s*:\s*(.*)$/.exec(line))
  return pairs.every((pair) => pair !== null) ? Object.fromEntries(pairs.map(([, name, value]) => [name!, value!])) : undefined
}

const objectOf = (text: string): object | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

const numberOf = (
  text: string,
  { isInteger, minimum = -Infinity, maximum = Infinity }: Field,
): { value: number } | { problem: Problem } => {
  const value = Number(text)
  if (!Number.isFinite(value)) return { problem: 'number' }
  if (isInteger && !Number.isInteger(value)) return { problem: 'integer' }
  return value < minimum || value > maximum ? { problem: 'range' } : { value }
}

/** Returns the value that a text stands for, or undefined if the text is empty. */
const valueOf = (field: Field, text: string): { value: unknown } | { problem: Problem } => {
  const { input, isSecret, isRequired } = field
  // A secret may begin or end with a space.
  const entered = isSecret || input === 'lines' ? text : text.trim()
  if (entered.trim() === '') return isRequired ? { problem: 'required' } : { value: undefined }
  if (input === 'switch') return { value: entered === 'true' }
  if (input === 'number') return numberOf(entered, field)
  if (input === 'list') return { value: linesOf(entered) }
  if (input === 'pairs' || input === 'json') {
    const value = input === 'pairs' ? pairsOf(entered) : objectOf(entered)
    return value ? { value } : { problem: input }
  }
  return { value: entered }
}

export interface Entered {
  values: Record<string, unknown>
  /** By key. Empty if all texts are right. */
  problems: Record<string, Problem>
}

const collect = (fields: readonly Field[], texts: Texts, include: (field: Field, text: string, value: unknown) => boolean): Entered => {
  const entered: Entered = { values: {}, problems: {} }
  for (const field of fields) {
    const text = texts[field.key] ?? ''
    const result = valueOf(field, text)
    if ('problem' in result) entered.problems[field.key] = result.problem
    else if (include(field, text, result.value)) entered.values[field.key] = result.value ?? null
  }
  return entered
}

/** Returns all values of a new object. Empty texts and defaults are left out. */
export const newValues = (fields: readonly Field[], texts: Texts): Entered =>
  collect(fields, texts, ({ fallback }, text, value) => value !== undefined && text !== fallback)

/** Returns the values whose texts differ from the stored ones, as a JSON Merge Patch: null removes a value. */
export const changedValues = (fields: readonly Field[], texts: Texts, stored: Texts): Entered =>
  collect(fields, texts, ({ key }, text) => text !== (stored[key] ?? ''))

/**
 * Returns the messages of an error response that belong to the fields of an object, by key, and those that belong to the object itself.
 * @param prefix path of the object in the request, for example `config`
 */
export const messagesOf = (
  details: readonly { path: string; message: string }[],
  prefix: string,
  fields: readonly Field[],
): { byKey: Record<string, string>; general: string[] } => {
  const byKey: Record<string, string> = {}
  const general: string[] = []
  for (const { path, message } of details) {
    if (path !== prefix && !path.startsWith(`${prefix}.`)) continue
    const key = path.slice(prefix.length + 1).split('.')[0]!
    if (fields.some((field) => field.key === key)) byKey[key] ??= message
    else general.push(key === '' ? message : `${key}: ${message}`)
  }
  return { byKey, general }
}
