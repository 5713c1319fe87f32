import { z } from 'zod'

// The wire and the jsonb columns speak snake_case, TypeScript camelCase. A schema written in the wire's names is the only
// definition of both: the types follow from it, and so does the renaming. What a schema leaves open (a connector's config, a
// record) keeps the keys it came with, which is why the schema, and not the value, is walked.

type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<CamelCase<Tail>>}` : Name

/** The same value with camelCase keys. Open records stay as they are. */
export type Inside<T> = T extends Date
  ? T
  : T extends readonly (infer Item)[]
    ? Inside<Item>[]
    : T extends object
      ? { [Key in keyof T as Key extends string ? (string extends Key ? Key : CamelCase<Key>) : Key]: Inside<T[Key]> }
      : T

/** What `inward` makes of a schema's output. */
export type InsideOf<Schema extends z.ZodType> = Inside<z.output<Schema>>

const camelCase = (name: string) => name.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())

const rename = (schema: unknown, value: unknown, names: (wireName: string) => { from: string; to: string }): unknown => {
  if (value === null || value === undefined) return value
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault) {
    return rename(schema.unwrap(), value, names)
  }
  if (schema instanceof z.ZodArray) return (value as unknown[]).map((item) => rename(schema.element, item, names))
  if (!(schema instanceof z.ZodObject)) return value
  const renamed: Record<string, unknown> = {}
  for (const [wireName, inner] of Object.entries(schema.shape)) {
    const { from, to } = names(wireName)
    const item = rename(inner, (value as Record<string, unknown>)[from], names)
    if (item !== undefined) renamed[to] = item
  }
  return renamed
}

/** From the wire's names to ours. `value` is what the schema's parsing gave. */
export const inward = <Schema extends z.ZodType>(schema: Schema, value: z.output<Schema>): InsideOf<Schema> =>
  rename(schema, value, (wireName) => ({ from: wireName, to: camelCase(wireName) })) as InsideOf<Schema>

/** From our names to the wire's. Only what the schema names goes out: an attribute it does not know cannot leak. */
export const outward = <Schema extends z.ZodType>(schema: Schema, value: InsideOf<Schema>): unknown =>
  rename(schema, value, (wireName) => ({ from: camelCase(wireName), to: wireName }))
