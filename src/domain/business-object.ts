// A business object as people read it: `Invoice 1900004711, company 1000, 2026` for the key 100019000047112026 of the type BKPF.
import { objectTypeOf, type KeyField, type ObjectType, type Words } from './business-object-types.ts'

export type ReadingLanguage = keyof Words

/** A business object as the source system names it. */
export interface BusinessKey {
  type: string | null
  key: string | null
}

/** Part of the text of a business object. */
export interface Piece {
  text: string
  /** Index in the key of the first character of the text. Undefined for words that the key does not have. */
  start?: number
}

/** Returns true for the years that a business object can have. */
export const isYear = (text: string): boolean => /^(19|20)[0-9]{2}$/.test(text)

/** A value of a field, and the index in the key at which it begins. */
interface Value {
  text: string
  start: number
}

/** Returns the values of the fields, or undefined if the text is no key of these fields. A field that is empty may be missing at the end. */
const fieldsOf = (fields: readonly KeyField[], key: string): Value[] | undefined => {
  const values: Value[] = []
  let start = 0
  for (const { length, kind, mayBeEmpty } of fields) {
    if (kind === 'rest') return values
    const text = key.slice(start, start + length)
    if (text.trim() === '' && !mayBeEmpty) return undefined
    values.push({ text, start })
    start += length
  }
  return key.length <= start ? values : undefined
}

/** Returns the values of a key whose parts are separated by something: `1000-1900004711-2026`. */
const separatedOf = (fields: readonly KeyField[], key: string): Value[] | undefined => {
  const parts = [...key.matchAll(/[\p{L}\p{N}]+/gu)].map(({ 0: text, index }) => ({ text, start: index }))
  const shown = fields.filter(({ kind }) => kind !== 'rest')
  return parts.length === fields.length && shown.every(({ length }, index) => parts[index]!.text.length <= length) ? parts : undefined
}

const valuesOf = ({ fields }: ObjectType, key: string): Value[] | undefined => {
  const isOne = fields.length === 1
  const values = isOne ? [{ text: key, start: 0 }] : (separatedOf(fields, key) ?? fieldsOf(fields, key))
  return values?.every(({ text }, index) => fields[index]!.kind !== 'year' || isYear(text)) ? values : undefined
}

/** Returns a value without blanks around it and, in a number, without leading zeros. */
const shownOf = ({ kind }: KeyField, { text, start }: Value) => {
  const isNumber = kind === 'number' && /^ *[0-9]+ *$/.test(text)
  const kept = isNumber ? text.replace(/^ *0*(?=[0-9])/, '') : text.trimStart()
  return { text: kept.trimEnd(), start: start + text.length - kept.length }
}

const isEmpty = (text: string): boolean => /^[0 ]*$/.test(text)

/** Returns the indexes of the fields in the order in which they are shown. */
export const shownOrder = ({ fields, main }: ObjectType): number[] => [
  main,
  ...fields.flatMap(({ kind }, index) => (index === main || kind === 'rest' ? [] : [index])),
]

/**
 * Returns the text of a business object in pieces, or undefined while it is not known. An object of a type that is not in the table, or whose
 * key is not made as the table says, is shown by the name of the type and the key as it is.
 */
export const readBusinessObject = ({ type, key }: BusinessKey, language: ReadingLanguage): Piece[] | undefined => {
  if (key === null) return type === null ? undefined : [{ text: type }]
  const known = objectTypeOf(type)
  const values = known && valuesOf(known, key)
  if (!values) {
    const label = known?.label[language] ?? type
    return [...(label === null ? [] : [{ text: `${label} ` }]), { text: key, start: 0 }]
  }
  const pieces: Piece[] = [{ text: `${known.label[language]} ` }]
  for (const index of shownOrder(known)) {
    const field = known.fields[index]!
    const value = values[index]!
    if (field.mayBeEmpty && isEmpty(value.text)) continue
    const label = field.label && index !== known.main ? `${field.label[language]} ` : ''
    if (pieces.length > 1) pieces.push({ text: `, ${label}` })
    pieces.push(shownOf(field, value))
  }
  return pieces
}

/** Returns the text of a business object, or undefined while it is not known. */
export const businessObjectText = (object: BusinessKey, language: ReadingLanguage): string | undefined =>
  readBusinessObject(object, language)
    ?.map(({ text }) => text)
    .join('')
