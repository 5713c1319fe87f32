import { valueIn } from './field-template.ts'
import { extensionOf, fileNameOf, readableName } from './file-name.ts'

// A placeholder is the name of a document's property in braces, `{doc_id}`, in a path template or a mail template.

/** Placeholders that every template may contain. */
export const placeholders = [
  'repo_id',
  'doc_id',
  'comp_id',
  'yyyy',
  'mm',
  'dd',
  'erp_object_type',
  'erp_object_id',
  'ar_object',
  'ext',
  'file_name',
  'description',
] as const

/** A field of an enrichment: `meta.vendor_name`. */
const fieldPlaceholder = /^meta\.[a-z][a-z0-9_]{0,39}$/

/** Text for a placeholder without a value. */
const unknownValue = 'unknown'

/** Returns a message about the first unknown placeholder, or undefined if all are known. */
export const unknownPlaceholder = (names: string[], known: readonly string[]): string | undefined => {
  const unknown = names.find((name) => !known.includes(name) && !fieldPlaceholder.test(name))
  return unknown === undefined
    ? undefined
    : `unknown placeholder {${unknown}}; the known placeholders are ${[...known, 'meta.NAME'].map((name) => `{${name}}`).join(', ')}`
}

/** Business object of the source system that a document belongs to. Fields are null until they are known. */
export interface BusinessMetadata {
  erpObjectType: string | null
  erpObjectId: string | null
  arObject: string | null
}

/** What the source system tells about a document besides its bytes. Fields are null until they are known. */
export interface DocumentMetadata extends BusinessMetadata {
  /** The name of the file, without folders. */
  fileName: string | null
  description: string | null
}

export const noMetadata: DocumentMetadata = { erpObjectType: null, erpObjectId: null, arObject: null, fileName: null, description: null }

/** Maximum length of a value of the metadata. */
export const metadataMaxCharacters = 255

/** Attributes of a document that templates use. */
export interface TemplateDocument extends DocumentMetadata {
  repoId: string
  docId: string
  compId: string
  contentType: string
  /** Business data, by the names of the fields. */
  fields: Readonly<Record<string, string>>
  receivedAt: Date
}

/** Returns the value of each placeholder for a document. Dates are those of the receipt, in UTC. */
export const placeholderValues = (document: TemplateDocument): Record<string, string> => {
  const [yyyy, mm, dd] = document.receivedAt.toISOString().slice(0, 10).split('-') as [string, string, string]
  const values: Record<(typeof placeholders)[number], string> = {
    repo_id: document.repoId,
    doc_id: document.docId,
    comp_id: readableName(document.compId),
    file_name: fileNameOf(document),
    description: document.description ?? unknownValue,
    yyyy,
    mm,
    dd,
    erp_object_type: document.erpObjectType ?? unknownValue,
    erp_object_id: document.erpObjectId ?? unknownValue,
    ar_object: document.arObject ?? unknownValue,
    ext: extensionOf(document),
  }
  return { ...values, ...Object.fromEntries(Object.entries(document.fields).map(([name, value]) => [`meta.${name}`, value])) }
}

const optional: Record<string, keyof DocumentMetadata> = {
  erp_object_type: 'erpObjectType',
  erp_object_id: 'erpObjectId',
  ar_object: 'arObject',
  description: 'description',
}

/** Returns true if the value of a placeholder is known by now. */
const isKnown = (name: string, document: TemplateDocument): boolean => {
  if (fieldPlaceholder.test(name)) return valueIn(document.fields, name.slice('meta.'.length)) !== undefined
  const attribute = valueIn(optional, name)
  return attribute === undefined || document[attribute] !== null
}

const inBraces = /\{([\w.]+)\}/g

export const placeholdersIn = (template: string): string[] => [...template.matchAll(inBraces)].map((match) => match[1]!)

/**
 * Replaces each placeholder of a template by its value.
 * @param encode encodes a value for its place in the text
 */
export const fillTemplate = (template: string, values: Record<string, string>, encode = (value: string) => value): string =>
  template.replaceAll(inBraces, (_, name: string) => encode(valueIn(values, name) ?? (fieldPlaceholder.test(name) ? unknownValue : '')))

/** Replaces each placeholder of a template by its value. @returns undefined if one is not known yet */
export const fillKnown = (template: string, document: TemplateDocument): string | undefined =>
  placeholdersIn(template).every((name) => isKnown(name, document)) ? fillTemplate(template, placeholderValues(document)) : undefined
