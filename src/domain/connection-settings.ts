import { z } from 'zod'
import { toCamelCase, type CamelCasedOutput } from './casing.ts'
import { placeholders, unknownPlaceholder } from './template.ts'

// Without both placeholders, two components of one document or two documents would overwrite each other at the destination.
const requiredPlaceholders = ['doc_id', 'comp_id'] as const

const templateMaxCharacters = 500
const filterMaxItems = 256
const itemMaxCharacters = 255
const filterMaxFields = 10

const controlOrBackslash = /[\p{Cc}\\]/u

/** Returns why a path template is invalid, or undefined if it is valid. */
const templateIssue = (template: string): string | undefined => {
  const named = [...template.matchAll(/\{([^{}]*)\}/g)].map((match) => match[1]!)
  const unknown = unknownPlaceholder(named, placeholders)
  if (unknown) return unknown
  if (/[{}]/.test(template.replaceAll(/\{[^{}]*\}/g, ''))) return 'must not contain an unmatched brace'
  const missing = requiredPlaceholders.find((name) => !named.includes(name))
  if (missing) return `must contain {${missing}}; otherwise documents would overwrite each other`
  if (controlOrBackslash.test(template)) return 'must not contain backslashes or control characters'
  if (template.split('/').some((segment) => segment === '' || segment === '.' || segment === '..')) {
    return 'must be a relative path without empty, "." or ".." segments'
  }
  return undefined
}

const pathTemplate = z
  .string()
  .max(templateMaxCharacters)
  .superRefine((template, context) => {
    const message = templateIssue(template)
    if (message) context.addIssue({ code: 'custom', message })
  })

const fieldValue = z.string().min(1).max(itemMaxCharacters)

const filter = z
  .strictObject({
    content_types: z
      .array(
        z
          .string()
          .max(itemMaxCharacters)
          .regex(/^[^\s/;]+\/[^\s/;]+$/, 'must be a media type without parameters, for example application/pdf'),
      )
      .min(1)
      .max(filterMaxItems)
      .optional(),
    comp_ids: z.array(z.string().min(1).max(itemMaxCharacters)).min(1).max(filterMaxItems).optional(),
    min_bytes: z.int().min(0).optional(),
    max_bytes: z.int().min(0).optional(),
    fields: z
      .record(
        z.string().regex(/^[a-z][a-z0-9_]{0,39}$/),
        z.union([
          fieldValue.meta({ title: 'one value' }),
          z.array(fieldValue).min(1).max(filterMaxItems).meta({ title: 'several values' }),
        ]),
      )
      .refine((fields) => Object.keys(fields).length <= filterMaxFields, `must have at most ${filterMaxFields} fields`)
      .optional()
      .describe('Values of business data, by the names of the fields: a text, or several of which one has to fit'),
  })
  .refine(({ min_bytes, max_bytes }) => min_bytes === undefined || max_bytes === undefined || min_bytes <= max_bytes, {
    path: ['min_bytes'],
    message: 'must not be greater than max_bytes',
  })

const propertiesMaxCount = 10
const propertyNameMaxCharacters = 128

/** Returns why the value of a property is invalid, or undefined if it is valid. */
const valueIssue = (value: string): string | undefined => {
  const unknown = unknownPlaceholder(
    [...value.matchAll(/\{([^{}]*)\}/g)].map((match) => match[1]!),
    placeholders,
  )
  if (unknown) return unknown
  if (/[{}]/.test(value.replaceAll(/\{[^{}]*\}/g, ''))) return 'must not contain an unmatched brace'
  return /\p{Cc}/u.test(value) ? 'must not contain control characters' : undefined
}

// A form has one `name: value` on each line.
const propertyName = /^[^\s\p{Cc}:](?:[^\p{Cc}:]*[^\s\p{Cc}:])?$/u

const propertyValue = z
  .string()
  .min(1)
  .max(templateMaxCharacters)
  .superRefine((value, context) => {
    const message = valueIssue(value)
    if (message) context.addIssue({ code: 'custom', message })
  })

const properties = z.record(z.string().max(propertyNameMaxCharacters), propertyValue).superRefine((record, context) => {
  const names = Object.keys(record)
  if (names.length > propertiesMaxCount) {
    context.addIssue({ code: 'custom', message: `must have at most ${propertiesMaxCount} properties, the number of tags of an object` })
  }
  for (const name of names.filter((each) => !propertyName.test(each))) {
    context.addIssue({ code: 'custom', path: [name], message: 'has a name with a blank at its ends, a colon or a control character' })
  }
  // Targets do not distinguish upper and lower case, or not all of them.
  const folded = names.map((name) => name.toLowerCase())
  const repeated = names.find((_, index) => folded.indexOf(folded[index]!) < index)
  if (repeated !== undefined)
    context.addIssue({ code: 'custom', path: [repeated], message: 'differs from another name only in upper and lower case' })
})

/** Schema of a connection's `settings`. A document must meet every condition of `filter`. */
export const connectionSettingsFields = z.strictObject({
  on_resume: z
    .enum(['forward', 'skip'])
    .meta({ id: 'OnResume' })
    .default('forward')
    .describe('Deliveries held while the connection was inactive: `forward` releases them when it is activated, `skip` keeps them held'),
  path_template: pathTemplate
    .default('{repo_id}/{doc_id}/{comp_id}')
    .describe(
      `Path of a document below the prefix of the destination. Placeholders: ${placeholders.map((name) => `{${name}}`).join(', ')}, and {meta.NAME} for a field of an enrichment`,
    ),
  properties: properties
    .default({})
    .describe(
      'What is written beside each document at its destination, by name: object tags, columns, properties or a file. A value has the placeholders of a path template. A property is left out until all of them are known',
    ),
  filter: filter
    .meta({ id: 'ConnectionFilter', requestId: 'ConnectionFilterInput' })
    .default({})
    .describe('Forward only documents that meet these conditions'),
})

/** The settings as they are stored and shown: only those that were given. */
export const givenConnectionSettings = z.object({
  on_resume: connectionSettingsFields.shape.on_resume.unwrap().optional(),
  path_template: connectionSettingsFields.shape.path_template.unwrap().optional(),
  properties: connectionSettingsFields.shape.properties.unwrap().optional(),
  filter: connectionSettingsFields.shape.filter.unwrap().optional(),
})

export type ConnectionSettings = CamelCasedOutput<typeof connectionSettingsFields>

/** Returns the effective settings, with defaults, from the column `connections.settings`. */
export const connectionSettings = (stored: unknown): ConnectionSettings =>
  toCamelCase(connectionSettingsFields, connectionSettingsFields.parse(stored))
