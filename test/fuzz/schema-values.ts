import { sample, stringMatching } from 'fast-check'
import type { OpenApi } from '../../src/api/open-api/document.ts'
import { hostileTexts } from './hostile-values.ts'
import type { Random } from './random.ts'

export interface Schema {
  $ref?: string
  allOf?: Schema[]
  oneOf?: Schema[]
  anyOf?: Schema[]
  const?: unknown
  enum?: unknown[]
  example?: unknown
  examples?: unknown[]
  default?: unknown
  type?: string | string[]
  format?: string
  pattern?: string
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
  items?: Schema
}

/** @param override returns the value of a property with this name, or undefined to generate it by its schema */
export type Override = (name: string) => unknown

/** Returns a text that a pattern allows. */
const matching = (random: Random, pattern: string): string =>
  sample(stringMatching(new RegExp(pattern)), { seed: random.below(2 ** 31), numRuns: 1 })[0]!

/** Returns a function that generates values which a schema of openapi.json mostly allows. */
export const createSchemaValues = (document: OpenApi) => {
  const resolve = ({ $ref }: Schema): Schema =>
    $ref!
      .split('/')
      .slice(1)
      .reduce<unknown>((inner, part) => (inner as Record<string, unknown>)[part], document) as Schema

  const generate = (random: Random, schema: Schema, override: Override): unknown => {
    if (schema.$ref !== undefined) return generate(random, resolve(schema), override)
    if (schema.const !== undefined) return schema.const
    const choices = schema.oneOf ?? schema.anyOf
    if (choices) return generate(random, random.pick(choices), override)
    if (schema.allOf) return Object.assign({}, ...schema.allOf.map((part) => generate(random, part, override))) as unknown
    if (schema.enum) return random.pick(schema.enum)
    const known = [...(schema.examples ?? []), schema.example, schema.default].filter((value) => value !== undefined)
    if (known.length > 0 && random.chance(0.6)) return random.pick(known)
    return byType(random, schema, override)
  }

  const byType = (random: Random, schema: Schema, override: Override): unknown => {
    const type = Array.isArray(schema.type) ? random.pick(schema.type) : (schema.type ?? (schema.properties ? 'object' : 'string'))
    switch (type) {
      case 'null':
        return null
      case 'boolean':
        return random.chance(0.5)
      case 'integer':
      case 'number': {
        const [low, high] = [schema.minimum ?? 0, schema.maximum ?? 1_000_000]
        return random.chance(0.1)
          ? random.pick([low - 1, high + 1, 0.5])
          : random.pick([low, high, low + random.below(Math.min(high - low, 1_000) + 1)])
      }
      case 'array':
        return Array.from({ length: random.below(4) }, () => generate(random, schema.items ?? {}, override))
      case 'object':
        return objectOf(random, schema, override)
      default:
        return textOf(random, schema)
    }
  }

  const objectOf = (random: Random, { properties = {}, required = [], additionalProperties }: Schema, override: Override) => {
    const named = Object.entries(properties)
      .filter(([name]) => (required.includes(name) ? !random.chance(0.01) : random.chance(0.3)))
      .map(([name, inner]) => [name, override(name) ?? generate(random, inner, override)])
    const free = typeof additionalProperties === 'object' ? random.several(['x-one', 'Two', 'three'], 2) : []
    return Object.fromEntries([...named, ...free.map((name) => [name, generate(random, additionalProperties as Schema, override)])])
  }

  const textOf = (random: Random, { format, pattern, minLength = 0, maxLength = 60 }: Schema): string => {
    // fast-check does not know word boundaries.
    if (pattern !== undefined && !pattern.includes('\\b') && random.chance(0.9)) return matching(random, pattern)
    if (format === 'date-time')
      return random.pick(['2026-11-22T10:00:00Z', '2031-01-01T00:00:00.000Z', '2099-12-31T23:59:59Z', '1969-12-31T23:59:59Z'])
    if (format === 'uri') return 'https://127.0.0.1/hook'
    if (random.chance(0.05)) return random.pick(hostileTexts)
    return random.text('abcXYZ019-_ ./@é', minLength + random.below(Math.min(maxLength, 60) - Math.min(minLength, 59) + 1))
  }

  return generate
}
