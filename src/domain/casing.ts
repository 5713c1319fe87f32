import { z } from 'zod'

// The API and the jsonb columns use snake_case, TypeScript uses camelCase. A zod schema written in snake_case defines both: the types
// and the renaming follow from the schema. Open parts of a schema (the config of a connector, a record) keep their keys, so the
// functions below walk the schema and not the value.

type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<CamelCase<Tail>>}` : Name

/** The same value with camelCase keys. Open records keep their keys. */
export type CamelCased<T> = T extends Date
  ? T
  : T extends readonly (infer Item)[]
    ? CamelCased<Item>[]
    : T extends object
      ? { [Key in keyof T as Key extends string ? (string extends Key ? Key : CamelCase<Key>) : Key]: CamelCased<T[Key]> }
      : T

type SnakeCase<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : Name

/** The same value with snake_case keys, and with times as text. */
export type SnakeCased<T> = T extends Date
  ? string
  : T extends readonly (infer Item)[]
    ? SnakeCased<Item>[]
    : T extends object
      ? { [Key in keyof T as Key extends string ? SnakeCase<Key> : Key]: SnakeCased<T[Key]> }
      : T

/** The output of a schema after `toCamelCase`. */
export type CamelCasedOutput<Schema extends z.ZodType> = CamelCased<z.output<Schema>>

/** Returns a name of TypeScript as the API and columns have it. */
export const snakeCase = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** Returns a name of the API or of a column as TypeScript has it. */
export const camelCase = (name: string) => name.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())

/** Returns columns, separated by commas, each with the name that TypeScript has for it: `doc_id` is read as `docId`. */
export const columnsAs = (names: string): string[] =>
  names.split(/,\s*/).map((name) => `${name} as ${camelCase(name.replace(/^.*\./, ''))}`)

/** Returns values by the names of their columns. What a value contains stays as it is. */
export const asColumns = (values: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [snakeCase(name), value]))

/** Renames all keys of a value from camelCase to snake_case, without a schema: for JSON that the command line prints. */
export const snakeCased = <T>(value: T): SnakeCased<T> => {
  const renamed = (part: unknown): unknown => {
    if (part instanceof Date) return part.toISOString()
    if (Array.isArray(part)) return part.map(renamed)
    if (typeof part !== 'object' || part === null) return part
    return Object.fromEntries(Object.entries(part).map(([name, inner]) => [snakeCase(name), renamed(inner)]))
  }
  return renamed(value) as SnakeCased<T>
}

const rename = (schema: unknown, value: unknown, names: (snakeCaseName: string) => { from: string; to: string }): unknown => {
  if (value === null || value === undefined) return value
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault) {
    return rename(schema.unwrap(), value, names)
  }
  if (schema instanceof z.ZodArray) return (value as unknown[]).map((item) => rename(schema.element, item, names))
  // Half a character makes JSON that strict clients refuse as a whole.
  if (typeof value === 'string') return value.toWellFormed()
  if (!(schema instanceof z.ZodObject)) return value
  const renamed: Record<string, unknown> = {}
  for (const [snakeCaseName, inner] of Object.entries(schema.shape)) {
    const { from, to } = names(snakeCaseName)
    const item = rename(inner, (value as Record<string, unknown>)[from], names)
    if (item !== undefined) renamed[to] = item
  }
  return renamed
}

/** Renames the keys of a parsed value from snake_case to camelCase. */
export const toCamelCase = <Schema extends z.ZodType>(schema: Schema, value: z.output<Schema>): CamelCasedOutput<Schema> =>
  rename(schema, value, (name) => ({ from: name, to: camelCase(name) })) as CamelCasedOutput<Schema>

/** Renames the keys of a value from camelCase to snake_case, and drops every key that the schema does not name. */
export const toSnakeCase = <Schema extends z.ZodType>(schema: Schema, value: CamelCasedOutput<Schema>): unknown =>
  rename(schema, value, (name) => ({ from: camelCase(name), to: name }))
