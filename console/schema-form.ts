// Makes the fields of a form of a JSON schema. Pure, so that it can be tested without a browser.
import { fieldAt, textOf, type Field, type InputKind, type Texts } from './form.ts'

/** A schema of `GET /connector-types` and `request-schemas.ts`: JSON Schema 2020-12. */
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
  minItems?: number
  /** The ways to sign in, of which credentials have one. */
  'x-sign-in'?: SignIn[]
  /** The value may be any random one. */
  'x-generated'?: boolean
  /** Finds the value in an address that contains it. */
  'x-taken-from'?: string
}

/** A way to sign in, with the keys of the credentials that it has. */
interface SignIn {
  name: string
  required: string[]
  optional: string[]
}

export interface SchemaField extends Field {
  /** Name of the value in its object. */
  key: string
  title: string | undefined
  description: string | undefined
  isGenerated: boolean
}

/** Path of the choice of the way to sign in. It is no part of the request. */
export const signInPath = 'sign_in'

/** A longer text may have lines of its own: a certificate, a private key. */
const oneLineMax = 10_000

const typeOf = ({ type }: JsonSchema): string | undefined => (Array.isArray(type) ? type.find((each) => each !== 'null') : type)

const isList = (schema: JsonSchema): boolean => typeOf(schema) === 'array'
const allowsNull = ({ type, anyOf = [] }: JsonSchema): boolean =>
  type === 'null' || (Array.isArray(type) && type.includes('null')) || anyOf.some(allowsNull)

const listInputOf = ({ enum: choices, type, anyOf = [] }: JsonSchema): InputKind => {
  if (choices) return 'checks'
  return type === 'string' || anyOf.some((each) => each.type === 'string') ? 'list' : 'json'
}

const inputOf = (schema: JsonSchema): InputKind => {
  if (schema.enum) return 'choice'
  const type = typeOf(schema)
  if (type === 'boolean') return 'switch'
  if (type === 'integer' || type === 'number') return 'number'
  if (type === 'array') return listInputOf(schema.items ?? {})
  if (schema.anyOf?.some(isList)) return 'list'
  if (schema.format === 'date-time') return 'date'
  if (type === 'string') return (schema.maxLength ?? 0) > oneLineMax ? 'lines' : 'text'
  return typeof schema.additionalProperties === 'object' ? 'pairs' : 'json'
}

/** Returns the object with properties that a value is, unless it is null. */
const objectIn = (schema: JsonSchema): JsonSchema | undefined => {
  if (schema.writeOnly) return undefined
  return [schema, ...(schema.anyOf ?? [])].find(({ properties }) => properties !== undefined)
}

const separatorOf = ({ additionalProperties }: JsonSchema): RegExp | undefined =>
  typeof additionalProperties === 'object' && additionalProperties.anyOf?.some(isList) ? /,/ : undefined

/** Returns the field that chooses the way to sign in, or undefined if there is only one. */
export const signInField = ({ 'x-sign-in': signIns = [] }: JsonSchema): Field | undefined => {
  const choices = signIns.map(({ name }) => name)
  return choices.length > 1 ? fieldAt(signInPath, 'choice', { isRequired: true, choices, fallback: choices[0]! }) : undefined
}

type When = (texts: Texts) => boolean

const both =
  (one: When = () => true, other: When = () => true): When =>
  (texts) =>
    one(texts) && other(texts)

/**
 * Returns the fields of an object schema and of the objects in it, in its order.
 * @param place path of the object in the request; the body itself has none. In an object in it, null stands for the default
 * @param when whether the object is a part of the request
 */
export const fieldsOf = (
  { properties = {}, required = [], 'x-sign-in': signIns = [] }: JsonSchema,
  place = '',
  when?: Field['when'],
): SchemaField[] =>
  Object.entries(properties).flatMap(([key, schema]) => {
    const path = place === '' ? key : `${place}.${key}`
    const object = objectIn(schema)
    const isSwitched = object !== undefined && allowsNull(schema)
    const inner = object ? fieldsOf(object, path, isSwitched ? both(when, (texts) => texts[path] === 'true') : when) : []
    if (object && !isSwitched) return inner
    const input = object ? 'object' : inputOf(schema)
    const having = signIns.filter((signIn) => [...signIn.required, ...signIn.optional].includes(key))
    const mayBeEmptied = place !== '' || allowsNull(schema)
    const mayHaveNoItem = !mayBeEmptied && isList(schema) && !schema.minItems
    const field: SchemaField = {
      ...fieldAt(path, input, {
        isRequired:
          (required.includes(key) && !mayHaveNoItem) ||
          (input === 'number' && !mayBeEmptied) ||
          (having.length > 0 && having.every((signIn) => signIn.required.includes(key))),
        isSecret: schema.writeOnly === true || schema.format === 'password',
        fallback: input === 'switch' ? String(schema.default === true) : textOf({ input }, schema.default),
        ...(mayHaveNoItem && { empty: [] }),
        choices: (schema.enum ?? schema.items?.enum ?? []).map(String),
        separator: separatorOf(schema),
        isInteger: typeOf(schema) === 'integer',
        minimum: schema.minimum,
        maximum: schema.maximum,
        maxLength: schema.maxLength,
        takenFrom: schema['x-taken-from'] === undefined ? undefined : new RegExp(schema['x-taken-from']),
        when: having.length === 0 ? when : both(when, (texts) => having.some(({ name }) => name === texts[signInPath])),
      }),
      key,
      title: schema.title,
      description: schema.description,
      isGenerated: schema['x-generated'] === true,
    }
    return [field, ...inner]
  })

/** Returns fields with other rules, by their paths. */
export const changed = <Kind extends Field>(fields: readonly Kind[], rules: Readonly<Record<string, Partial<Field>>>): Kind[] =>
  fields.map((field) => ({ ...field, ...rules[field.path] }))
