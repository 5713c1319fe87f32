// Makes the fields of a form of a JSON schema. Pure, so that it can be tested without a browser.
import { fieldAt, textOf, type Field, type InputKind } from './form.ts'

/** As `GET /connector-types` has it: JSON Schema 2020-12. */
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

const inputOf = (schema: JsonSchema): InputKind => {
  if (schema.enum) return 'choice'
  const type = typeOf(schema)
  if (type === 'boolean') return 'switch'
  if (type === 'integer' || type === 'number') return 'number'
  if (type === 'array' || schema.anyOf?.some((each) => typeOf(each) === 'array')) return 'list'
  if (type === 'string') return (schema.maxLength ?? 0) > oneLineMax ? 'lines' : 'text'
  return typeof schema.additionalProperties === 'object' ? 'pairs' : 'json'
}

/** Returns the field that chooses the way to sign in, or undefined if there is only one. */
export const signInField = ({ 'x-sign-in': signIns = [] }: JsonSchema): Field | undefined => {
  const choices = signIns.map(({ name }) => name)
  return choices.length > 1 ? fieldAt(signInPath, 'choice', { isRequired: true, choices, fallback: choices[0]! }) : undefined
}

/** Returns the fields of an object schema, in its order. @param place path of the object in the request */
export const fieldsOf = ({ properties = {}, required = [], 'x-sign-in': signIns = [] }: JsonSchema, place: string): SchemaField[] =>
  Object.entries(properties).map(([key, schema]) => {
    const input = inputOf(schema)
    const having = signIns.filter((signIn) => [...signIn.required, ...signIn.optional].includes(key))
    return {
      ...fieldAt(`${place}.${key}`, input, {
        isRequired: required.includes(key) || (having.length > 0 && having.every((signIn) => signIn.required.includes(key))),
        isSecret: schema.writeOnly === true || schema.format === 'password',
        fallback: input === 'switch' ? String(schema.default === true) : textOf({ input }, schema.default),
        choices: (schema.enum ?? []).map(String),
        isInteger: typeOf(schema) === 'integer',
        minimum: schema.minimum,
        maximum: schema.maximum,
        maxLength: schema.maxLength,
        takenFrom: schema['x-taken-from'] === undefined ? undefined : new RegExp(schema['x-taken-from']),
        when: having.length === 0 ? undefined : (texts) => having.some(({ name }) => name === texts[signInPath]),
      }),
      key,
      title: schema.title,
      description: schema.description,
      isGenerated: schema['x-generated'] === true,
    }
  })
