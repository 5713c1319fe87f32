import { z } from 'zod'

export type JsonSchema = z.core.JSONSchema.BaseSchema

/** Returns the properties of an object schema by name. */
export const propertiesOf = ({ properties }: JsonSchema) => (properties ?? {}) as Record<string, JsonSchema>

export type Direction = 'request' | 'response'

// Formats of JSON Schema or OpenAPI that mean what zod checks. For others the pattern is enough: zod's e-mail addresses, for example, may
// have labels of more than 63 characters.
const formats = new Set(['date-time', 'date', 'uri', 'ipv4', 'ipv6', 'password'])

const patternsOf = ({ _zod: { def: schema } }: z.core.$ZodType): RegExp[] =>
  (schema.checks ?? []).flatMap(({ _zod: { def } }) => ('pattern' in def && def.pattern instanceof RegExp ? [def.pattern] : []))

const simplifyString = (schema: z.core.$ZodType, json: JsonSchema) => {
  // JSON Schema patterns have no flags: a case-insensitive pattern would reject values that the API accepts.
  if (patternsOf(schema).some(({ ignoreCase }) => ignoreCase)) {
    delete json.pattern
    delete json.allOf
  }
  // zod's pattern of a timestamp has 288 characters and repeats the format.
  if (json.format === 'date-time' || json.format === 'date') delete json.pattern
  if (json.format !== undefined && !formats.has(json.format)) delete json.format
}

const int32Max = 2_147_483_647

const simplifyNumber = (json: JsonSchema) => {
  // Without a format, Java and C# read an integer into 32 bits, and a document of 3 GB has a negative size.
  if (json.type === 'integer' && (json.maximum === undefined || json.maximum > int32Max)) json.format = 'int64'
  if (json.maximum === Number.MAX_SAFE_INTEGER) delete json.maximum
  if (json.minimum === Number.MIN_SAFE_INTEGER) delete json.minimum
}

/**
 * Leaves the values of an answer open: generated clients for Python and Java fail at a value that they do not know, and with it at the whole
 * list that contains it. Of the ways to write that, only this one gives a plain string in every generator.
 */
const openEnum = ({ enum: values, ...rest }: JsonSchema): JsonSchema => (values ? { ...rest, 'x-extensible-enum': values } : rest)

const simplifyObject = (json: JsonSchema, direction: Direction) => {
  if (json.propertyNames && Object.keys(json.propertyNames).join('') === 'type') delete json.propertyNames
  const { additionalProperties } = json
  if (typeof additionalProperties === 'object' && Object.keys(additionalProperties).length === 0) json.additionalProperties = true
  // A new response attribute must not break a client that validates responses.
  if (additionalProperties === false && direction === 'response') delete json.additionalProperties
}

const options = (direction: Direction): z.core.ToJSONSchemaParams => ({
  target: 'draft-2020-12',
  io: direction === 'request' ? 'input' : 'output',
  unrepresentable: 'any',
  override: ({ zodSchema: schema, jsonSchema: json }) => {
    // A codec is encoded as its input type in both directions.
    if (schema instanceof z.ZodCodec) Object.assign(json, withoutDefinitions(z.toJSONSchema(schema.def.in, options(direction))))
    if (json.type === 'string') simplifyString(schema, json)
    if (json.type === 'integer' || json.type === 'number') simplifyNumber(json)
    if (json.type === 'object') simplifyObject(json, direction)
    // An answer has the value. The generator of Java clients makes invalid code of the default of an open text.
    if (direction === 'response') delete json.default
    delete json['masked']
    if (json['secret'] === true) {
      delete json['secret']
      Object.assign(json, { writeOnly: true, format: 'password' })
    }
  },
})

const withoutDefinitions = (schema: JsonSchema): JsonSchema => {
  const { $schema: _, $defs: __, ...rest } = schema
  return rest
}

/** Rewrites `anyOf: [x, null]`, which zod emits for a nullable value, as `type: [x, null]`. */
const simplifyNullable = (json: JsonSchema): JsonSchema => {
  const { anyOf, ...rest } = json
  const [value, other, ...more] = anyOf ?? []
  if (typeof value?.type !== 'string' || value.enum || other?.type !== 'null' || more.length > 0) return json
  return { ...value, ...rest, type: [value.type, 'null'] }
}

/**
 * Rewrites the class of control characters, which Python and Go cannot parse. Everything else in the patterns has to be
 * in the syntax that the regular expressions of all languages share; a test checks it.
 */
const portablePattern = (pattern: string) =>
  pattern.replaceAll('\\P{Cc}', '[^\\x00-\\x1f\\x7f-\\x9f]').replaceAll('\\p{Cc}', '\\x00-\\x1f\\x7f-\\x9f')

interface Conversion {
  direction: Direction
  /** The names of components, by those of zod's definitions. */
  names: ReadonlyMap<string, string>
}

const toComponents = (value: unknown, conversion: Conversion): unknown => {
  if (Array.isArray(value)) return value.map((inner) => toComponents(inner, conversion))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, inner]) => {
    if (key === '$ref' && typeof inner === 'string') {
      const name = inner.replace('#/$defs/', '')
      return [key, `#/components/schemas/${conversion.names.get(name) ?? name}`]
    }
    if (key === 'pattern' && typeof inner === 'string') return [key, portablePattern(inner)]
    return [key, toComponents(inner, conversion)]
  })
  const schema = Object.fromEntries(entries) as JsonSchema
  // The generator of Go clients writes no valid value for it, and it says no more than that the value is optional.
  if (typeof schema.default === 'object' && schema.default !== null && !Array.isArray(schema.default)) delete schema.default
  return simplifyNullable(schema.type === 'string' && conversion.direction === 'response' ? openEnum(schema) : schema)
}

const requestNameOf = (name: string, { requestId, enum: values }: JsonSchema): string => {
  if (typeof requestId === 'string') return requestId
  return values ? `${name}Input` : name
}

/**
 * Converts a zod schema to JSON Schema.
 * @returns the schema, and the parts that it refers to by name (`.meta({ id })`). In a request, a part that differs there has the name
 *   `requestId`, and a list of values, which is closed there, the name with `Input`.
 */
export const toJsonSchema = (schema: z.ZodType, direction: Direction): { schema: JsonSchema; named: Record<string, JsonSchema> } => {
  const json = z.toJSONSchema(schema, options(direction))
  const definitions = Object.entries(json.$defs ?? {})
  const names = new Map(definitions.map(([name, definition]) => [name, direction === 'request' ? requestNameOf(name, definition) : name]))
  const conversion = { direction, names }
  const named = definitions.map(([name, definition]) => {
    const { id: _, requestId: __, ...rest } = definition
    return [names.get(name)!, toComponents(rest, conversion)] as const
  })
  const whole = toComponents(withoutDefinitions(json), conversion) as JsonSchema
  return { schema: whole, named: Object.fromEntries(named) as Record<string, JsonSchema> }
}
