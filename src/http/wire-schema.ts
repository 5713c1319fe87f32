import { z } from 'zod'

export type JsonSchema = z.core.JSONSchema.BaseSchema

/** Those of an object, by name. */
export const propertiesOf = ({ properties }: JsonSchema) => (properties ?? {}) as Record<string, JsonSchema>

type Direction = 'request' | 'response'

// zod knows more formats than JSON Schema: of those it knows alone, the pattern says all
const formats = new Set(['date-time', 'date', 'uri', 'email', 'ipv4', 'ipv6', 'password'])

const patternsOf = ({ _zod: { def: schema } }: z.core.$ZodType): RegExp[] =>
  (schema.checks ?? []).flatMap(({ _zod: { def } }) => ('pattern' in def && def.pattern instanceof RegExp ? [def.pattern] : []))

const tidyString = (schema: z.core.$ZodType, json: JsonSchema) => {
  // JSON Schema has no flags: such a pattern would refuse what we take
  if (patternsOf(schema).some(({ ignoreCase }) => ignoreCase)) {
    delete json.pattern
    delete json.allOf
  }
  // zod's own pattern of a time is half a page, and says what the format says
  if (json.format === 'date-time' || json.format === 'date') delete json.pattern
  if (json.format !== undefined && !formats.has(json.format)) delete json.format
}

const tidyNumber = (json: JsonSchema) => {
  if (json.maximum === Number.MAX_SAFE_INTEGER) delete json.maximum
  if (json.minimum === Number.MIN_SAFE_INTEGER) delete json.minimum
}

const tidyObject = (json: JsonSchema, direction: Direction) => {
  if (json.propertyNames && Object.keys(json.propertyNames).join('') === 'type') delete json.propertyNames
  const { additionalProperties } = json
  if (typeof additionalProperties === 'object' && Object.keys(additionalProperties).length === 0) json.additionalProperties = true
  // an attribute that is new tomorrow must not break a client that validates; what we promise is only that these are there
  if (additionalProperties === false && direction === 'response') delete json.additionalProperties
}

const options = (direction: Direction): z.core.ToJSONSchemaParams => ({
  target: 'draft-2020-12',
  io: direction === 'request' ? 'input' : 'output',
  unrepresentable: 'any',
  override: ({ zodSchema: schema, jsonSchema: json }) => {
    // what goes over the wire is the text, in either direction
    if (schema instanceof z.ZodCodec) Object.assign(json, bare(z.toJSONSchema(schema.def.in, options(direction))))
    if (json.type === 'string') tidyString(schema, json)
    if (json.type === 'integer' || json.type === 'number') tidyNumber(json)
    if (json.type === 'object') tidyObject(json, direction)
    if (json['secret'] === true) {
      delete json['secret']
      Object.assign(json, { writeOnly: true, format: 'password' })
    }
  },
})

const bare = (schema: JsonSchema): JsonSchema => {
  const { $schema: _, $defs: __, ...rest } = schema
  return rest
}

/** `type: [x, null]` where zod writes two alternatives. */
const asNullable = (json: JsonSchema): JsonSchema => {
  const { anyOf, ...rest } = json
  const [given, other, ...more] = anyOf ?? []
  if (typeof given?.type !== 'string' || given.enum || other?.type !== 'null' || more.length > 0) return json
  return { ...given, ...rest, type: [given.type, 'null'] }
}

const toComponents = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(toComponents)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, inner]) => [
    key,
    key === '$ref' && typeof inner === 'string' ? inner.replace('#/$defs/', '#/components/schemas/') : toComponents(inner),
  ])
  return asNullable(Object.fromEntries(entries) as JsonSchema)
}

/** A wire schema as JSON Schema, and the parts of it that have a name of their own (`.meta({ id })`), which it refers to. */
export const wireSchema = (schema: z.ZodType, direction: Direction): { schema: JsonSchema; named: Record<string, JsonSchema> } => {
  const json = z.toJSONSchema(schema, options(direction))
  const named = Object.entries(json.$defs ?? {}).map(([name, definition]) => {
    const { id: _, ...rest } = definition
    return [name, toComponents(rest)] as const
  })
  return { schema: toComponents(bare(json)) as JsonSchema, named: Object.fromEntries(named) as Record<string, JsonSchema> }
}
