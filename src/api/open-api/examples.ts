import { propertiesOf, type JsonSchema } from '../../base/json-schema.ts'
import { snakeCase } from '../../domain/casing.ts'
import { exampleObjects } from './example-objects.ts'
import { exampleIds } from './example-story.ts'
import { exampleValues } from './example-values.ts'
import { resourceTypeOf } from './operation-names.ts'

type Schemas = Record<string, JsonSchema>

const resolve = (schema: JsonSchema, schemas: Schemas): JsonSchema =>
  schema.$ref === undefined ? schema : (schemas[schema.$ref.split('/').at(-1)!] ?? {})

const idOf = (type: unknown): string | undefined => exampleIds[type as keyof typeof exampleIds]

/** Returns the values of a schema that has its own, or of the resource that it shows, creates or changes. */
const ownValues = (name: string) =>
  exampleObjects[name] ?? exampleObjects[name.replace(/^Single/, '')] ?? exampleObjects[name.replace(/(Input|Change)$/, 'Attributes')]

const objectExample = (reference: JsonSchema, schemas: Schemas, isResponse: boolean) => {
  const schema = resolve(reference, schemas)
  const properties = propertiesOf(schema)
  const own: Record<string, unknown> = { id: idOf(properties['type']?.const), ...ownValues(reference.$ref?.split('/').at(-1) ?? '') }
  const names = Object.keys(properties)
  const isRequired = (name: string) => schema.required?.includes(name) === true
  // A response shows all attributes. So does a PATCH body, which has no required ones.
  const showsAll = isResponse || !names.some(isRequired)
  return Object.fromEntries(
    names
      .filter((name) => showsAll || isRequired(name))
      .map((name) => [name, own[name] === undefined ? exampleOf(name, properties[name]!, schemas, isResponse) : own[name]]),
  )
}

// `repository_ids` and `destinationId` are named after `repository_id` and `destination_id`.
const valueFor = (name: string): unknown => exampleValues[snakeCase(name)]

/** Returns an example value of an attribute. Without examples Swagger UI shows random text that matches the patterns. */
const exampleOf = (name: string, reference: JsonSchema, schemas: Schemas, isResponse: boolean): unknown => {
  const schema = resolve(reference, schemas)
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type
  if (reference.examples) return reference.examples[0]
  if (schema.examples) return schema.examples[0]
  if (schema.const !== undefined) return schema.const
  const values = schema.enum ?? (schema['x-extensible-enum'] as unknown[] | undefined)
  if (values) return schema.default ?? values[0]
  if (type === 'object' && schema.properties) return objectExample(reference, schemas, isResponse)
  const [first] = schema.anyOf ?? []
  if (first && resolve(first, schemas).properties) return exampleOf(name, first, schemas, isResponse)
  const value = valueFor(name)
  if (value !== undefined) return value
  if (schema.anyOf) return exampleOf(name, schema.anyOf[0] as JsonSchema, schemas, isResponse)
  if (schema.default !== undefined && schema.default !== null) return schema.default
  if (type === 'object') return {}
  if (type === 'array') return [exampleOf(name.replace(/ies$/, 'y').replace(/s$/, ''), schema.items as JsonSchema, schemas, isResponse)]
  if (type === 'integer' || type === 'number') return schema.minimum ?? 1
  if (type === 'boolean') return true
  // A test refuses a description with such a value.
  return schema.format === 'date-time' ? '2026-11-21T09:00:00.000Z' : `no example for ${name}`
}

export interface Examples {
  example?: unknown
  examples?: Record<string, { value: unknown }>
}

/** Returns the example of a request body, or one example for each variant, named by the value that tells the variants apart. */
export const bodyExamples = (body: JsonSchema, schemas: Schemas): Examples => {
  const discriminator = resolve(body, schemas)['discriminator'] as { mapping: Record<string, string> } | undefined
  if (!discriminator) return { example: exampleOf('body', body, schemas, false) }
  const variants = Object.entries(discriminator.mapping).map(([value, $ref]) => [
    value,
    { value: exampleOf('body', { $ref }, schemas, false) },
  ])
  return { examples: Object.fromEntries(variants) as Record<string, { value: unknown }> }
}

/** Returns the example of a response: all its attributes. */
export const responseExample = (response: JsonSchema, schemas: Schemas): unknown => exampleOf('response', response, schemas, true)

/** Returns an example value of a parameter of an operation, in its path or in its query. */
export const parameterExample = (path: string, name: string, schema: JsonSchema, schemas: Schemas): unknown =>
  (name === 'id' ? idOf(resourceTypeOf(path)) : undefined) ?? exampleOf(name, schema, schemas, false)
