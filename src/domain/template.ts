import { extensionOf } from './content-type.ts'

// A placeholder is the product's word, in its API and its messages, for what users write into a template: the name of a document's
// property in braces, `{doc_id}`. All of them are filled in below.

/** What every template may name of a document. */
export const placeholders = ['repo_id', 'doc_id', 'comp_id', 'yyyy', 'mm', 'dd', 'ar_object', 'ext'] as const

/** What speaks against the names that a template holds, in words; undefined where all are known. */
export const unknownPlaceholder = (names: string[], known: readonly string[]): string | undefined => {
  const unknown = names.find((name) => !known.includes(name))
  return unknown === undefined ? undefined : `unknown placeholder {${unknown}}; known are ${known.map((name) => `{${name}}`).join(', ')}`
}

interface Described {
  repoId: string
  docId: string
  compId: string
  contentType: string
  arObject: string | null
  receivedAt: Date
}

/** What stands for each of them. */
export const valuesOf = (document: Described): Record<(typeof placeholders)[number], string> => {
  const [yyyy, mm, dd] = document.receivedAt.toISOString().slice(0, 10).split('-') as [string, string, string]
  return {
    repo_id: document.repoId,
    doc_id: document.docId,
    comp_id: document.compId,
    yyyy,
    mm,
    dd,
    ar_object: document.arObject ?? 'unknown',
    ext: extensionOf(document),
  }
}

const inBraces = /\{(\w+)\}/g

/** The names in a template that has them filled in by `fillTemplate`. */
export const namesIn = (template: string): string[] => [...template.matchAll(inBraces)].map((match) => match[1]!)

/** @param safe makes a value fit for where the template's text goes */
export const fillTemplate = (template: string, values: Record<string, string>, safe = (value: string) => value): string =>
  template.replaceAll(inBraces, (_, name: string) => safe(values[name] ?? ''))
