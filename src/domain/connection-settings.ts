import { z } from 'zod'
import { placeholders, unknownPlaceholder } from './template.ts'
import { inward, type InsideOf } from './wire.ts'

// Placeholders are the names in braces that users write into a path template, `{doc_id}`; each document fills them in.
// Without both of these two components of one document, or two documents, would overwrite each other at the destination.
const neededPlaceholders = ['doc_id', 'comp_id'] as const

const templateMaxCharacters = 500
const filterMaxItems = 256
const itemMaxCharacters = 255

const controlOrBackslash = /[\p{Cc}\\]/u

/** What speaks against a path template, in words; undefined where nothing does. */
const templateFault = (template: string): string | undefined => {
  const named = [...template.matchAll(/\{([^{}]*)\}/g)].map((match) => match[1]!)
  const unknown = unknownPlaceholder(named, placeholders)
  if (unknown) return unknown
  if (/[{}]/.test(template.replaceAll(/\{[^{}]*\}/g, ''))) return 'has a brace without its counterpart'
  const missing = neededPlaceholders.find((name) => !named.includes(name))
  if (missing) return `must contain {${missing}}: without it two components would overwrite each other`
  if (controlOrBackslash.test(template)) return 'must not contain backslashes or control characters'
  if (template.split('/').some((segment) => segment === '' || segment === '.' || segment === '..')) {
    return 'must be relative, without empty, "." or ".." segments'
  }
  return undefined
}

const pathTemplate = z
  .string()
  .max(templateMaxCharacters)
  .superRefine((template, context) => {
    const message = templateFault(template)
    if (message) context.addIssue({ code: 'custom', message })
  })

const filter = z
  .strictObject({
    content_types: z
      .array(
        z
          .string()
          .max(itemMaxCharacters)
          .regex(/^[^\s/;]+\/[^\s/;]+$/, 'must be a media type without parameters, like application/pdf'),
      )
      .min(1)
      .max(filterMaxItems)
      .optional(),
    comp_ids: z.array(z.string().min(1).max(itemMaxCharacters)).min(1).max(filterMaxItems).optional(),
    min_bytes: z.int().min(0).optional(),
    max_bytes: z.int().min(0).optional(),
  })
  .refine(({ min_bytes, max_bytes }) => min_bytes === undefined || max_bytes === undefined || min_bytes <= max_bytes, {
    path: ['min_bytes'],
    message: 'must not be above max_bytes',
  })

/** The `settings` of a connection. A document must pass every given part of `filter`. */
export const connectionSettingsFields = z.strictObject({
  on_resume: z.enum(['forward', 'skip']).default('forward').describe('What becomes of documents held while the connection was inactive'),
  path_template: pathTemplate
    .default('{repo_id}/{doc_id}/{comp_id}')
    .describe(`Where a document lies below the destination's own prefix. Placeholders: ${placeholders.join(', ')}`),
  filter: filter.default({}).describe('Which documents the connection forwards'),
})

export type ConnectionSettings = InsideOf<typeof connectionSettingsFields>

/** The settings in force, from what the column `connections.settings` holds. */
export const connectionSettings = (stored: unknown): ConnectionSettings =>
  inward(connectionSettingsFields, connectionSettingsFields.parse(stored))
