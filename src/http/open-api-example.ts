import { propertiesOf, type JsonSchema } from './wire-schema.ts'

type Schemas = Record<string, JsonSchema>

const resolve = (schema: JsonSchema, schemas: Schemas): JsonSchema =>
  schema.$ref === undefined ? schema : (schemas[schema.$ref.split('/').at(-1)!] ?? {})

const objectExample = (schema: JsonSchema, schemas: Schemas) => {
  const properties = propertiesOf(schema)
  const names = Object.keys(properties)
  const isNeeded = (name: string) => schema.required?.includes(name) === true
  // of credentials all are shown, as which of them belong together no schema tells; of a change, where nothing is needed, all, too
  const isShowingAll = names.some((name) => properties[name]!['writeOnly'] === true) || !names.some(isNeeded)
  return Object.fromEntries(
    names.filter((name) => isShowingAll || isNeeded(name)).map((name) => [name, exampleOf(properties[name]!, schemas)]),
  )
}

/** What a request may look like: the needed attributes, with `...` for text of one's own. A page would otherwise show noise that fits the patterns. */
const exampleOf = (given: JsonSchema, schemas: Schemas): unknown => {
  const schema = resolve(given, schemas)
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type
  if (schema.const !== undefined) return schema.const
  if (schema.default !== undefined && schema.default !== null) return schema.default
  if (schema.enum) return schema.enum[0]
  if (schema.anyOf) return exampleOf(schema.anyOf[0] as JsonSchema, schemas)
  if (type === 'object') return objectExample(schema, schemas)
  if (type === 'array') return [exampleOf(schema.items as JsonSchema, schemas)]
  if (type === 'integer' || type === 'number') return schema.minimum ?? 1
  if (type === 'boolean') return true
  if (schema.format === 'date-time') return '2026-11-21T09:00:00.000Z'
  return schema.format === 'uri' ? 'https://example.com/' : '...'
}

export interface Examples {
  example?: unknown
  examples?: Record<string, { value: unknown }>
}

/** The same for a body that has one of several shapes: an example of each, by its title. */
export const bodyExamples = (body: JsonSchema, schemas: Schemas): Examples =>
  body.oneOf
    ? { examples: Object.fromEntries(body.oneOf.map((shape) => [shape.title, { value: exampleOf(shape, schemas) }])) }
    : { example: exampleOf(body, schemas) }
