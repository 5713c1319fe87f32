// What people type to find a document, read as the keys under which documents are stored. They type, or copy from a screen, the name of a
// business object in any of its forms: `4711`, `BKPF 100019000047112026`, `1900004711/2026`, `Invoice 1900004711, company 1000, 2026`.
import { objectTypeOf, objectTypes, type KeyField, type ObjectType } from './business-object-types.ts'
import { isYear, shownOrder } from './business-object.ts'

/** What one key, or the type of the business object, must be. One of the ways suffices. */
export interface KeyTerm {
  /** A key begins with this text, in any case. */
  prefix?: string
  /** A key that is a number ends with the prefix. */
  isEnd?: true
  /** A key is this text, in any case. */
  key?: string
  /** The business object has one of these types, in any case. */
  types?: string[]
}

/** Words beyond these are not looked at one by one. A text of an object has ten at most. */
const wordsMax = 12
const typeWordsMax = 3
// People remember the last digits of a number. Fewer digits would find too much.
const endDigitsMin = 3

const between = /[\s,;:/|·()"']+/
/** The title of a document whose object is not known. */
const documentWord = /^(document|dokument)$/i
const typeName = /^[A-Za-z][A-Za-z0-9_/]{1,29}$/

/** Returns the words of a text. In digits, everything else separates: `1000-1900004711-2026`. */
export const queryWords = (text: string): string[] => {
  const separator = /^[\d\s.,;:/|·_-]+$/.test(text) ? /[^\d]+/ : between
  return text.split(separator).filter((word) => word !== '')
}

const labelWords = new Map<string, string[]>()
for (const [name, { label, fields }] of Object.entries<ObjectType>(objectTypes)) {
  const labels = [label, ...fields.flatMap((field) => field.label ?? [])]
  for (const word of new Set(labels.flatMap(({ en, de }) => [en, de]).flatMap((text) => text.toLowerCase().split(' ')))) {
    labelWords.set(word, [...(labelWords.get(word) ?? []), name])
  }
}

/** Returns the types whose text has a word that begins or ends with this one: `rechnung` also names an `Eingangsrechnung`. */
const labelledTypes = (word: string): string[] => {
  const text = word.toLowerCase()
  if (text.length < 3 || /[0-9]/.test(text)) return []
  const found = [...labelWords].filter(([label]) => label === text || (text.length > 3 && (label.startsWith(text) || label.endsWith(text))))
  return [...new Set(found.flatMap(([, names]) => names))]
}

const isDigits = (text: string): boolean => /^[0-9]+$/.test(text)

const termOf = (word: string): KeyTerm => {
  const isNumber = isDigits(word)
  const short = isNumber ? word.replace(/^0+(?=[0-9])/, '') : word
  const types = [...labelledTypes(word), ...(typeName.test(word) ? [word.toUpperCase()] : [])]
  return {
    prefix: word,
    ...(isNumber && word.length >= endDigitsMin && { isEnd: true as const }),
    ...(short !== word && { key: short }),
    ...(types.length > 0 && { types: [...new Set(types)] }),
  }
}

const fits = ({ kind, length }: KeyField, value: string): boolean =>
  value.length <= length && (kind === 'code' || isDigits(value)) && (kind !== 'year' || isYear(value))

/** Returns the key that has these values in some of its fields, or its beginning, or undefined if they do not fit. */
const keyOf = ({ fields }: ObjectType, values: ReadonlyMap<number, string>): KeyTerm | undefined => {
  let key = ''
  for (const [index, field] of fields.entries()) {
    if (field.kind === 'rest') return { prefix: key }
    const value = values.get(index)
    if (value === undefined ? !field.mayBeEmpty : !fits(field, value)) return undefined
    key += field.kind === 'code' ? (value ?? '').padEnd(field.length) : (value ?? '').padStart(field.length, '0')
  }
  return { key: key.trimEnd() }
}

/** Returns the keys that have these values in their fields, in the order of the text or in that of the key. */
const keysOf = (type: ObjectType, values: readonly string[]): KeyTerm[] => {
  const inText = shownOrder(type)
  if (values.length > inText.length) return []
  return [inText, inText.toSorted((one, other) => one - other)].flatMap(
    (order) => keyOf(type, new Map(values.map((value, index) => [order[index]!, value]))) ?? [],
  )
}

const composedKeys = (words: readonly string[]): KeyTerm[] => {
  const named = words.flatMap((word) => objectTypeOf(word) ?? [])
  const values = words.filter((word) => !objectTypeOf(word) && (/[0-9]/.test(word) || labelledTypes(word).length === 0))
  if (values.length < 2) return []
  const types = named.length > 0 ? named : Object.values<ObjectType>(objectTypes)
  return types.filter(({ fields }) => fields.length > 1).flatMap((type) => keysOf(type, values))
}

/** Returns the ways to read a text as the name of a type, which may contain blanks, and a key. */
const typesAndKeys = (words: readonly string[]): KeyTerm[][] =>
  Array.from({ length: Math.min(typeWordsMax, words.length - 1) }, (_, index) => [
    { types: [words.slice(0, index + 1).join(' ')] },
    { prefix: words.slice(index + 1).join(' ') },
  ])

/**
 * Reads the text of a search.
 * @returns alternatives, each a list of terms that a document must all meet
 */
export const readQuery = (query: string): KeyTerm[][] => {
  const text = query.trim().replaceAll(/\s+/g, ' ')
  const words = queryWords(text)
  const [first = '', ...others] = text.split(' ')
  const digits = words.filter(isDigits)
  const segments = text.split('/')
  const alternatives: KeyTerm[][] = [
    [termOf(text === '' ? query : text)],
    ...typesAndKeys([first, ...others]),
    ...(documentWord.test(first) ? [[termOf(others.join(' '))]] : []),
    // The repository, the document and the component, as mails and previews name a document.
    ...(segments.length === 3 ? [[{ key: segments[1]! }]] : []),
    ...(words.length > 0 && words.length <= wordsMax ? [words.map(termOf)] : []),
    // A number in groups: `1900 004 711`.
    ...(digits.length > 1 && digits.length === words.length ? [[termOf(digits.join(''))]] : []),
    ...(words.length <= wordsMax ? composedKeys(words).map((term) => [term]) : []),
  ]
  return [...new Map(alternatives.map((terms) => [JSON.stringify(terms), terms])).values()]
}
