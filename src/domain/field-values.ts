import { plainText } from '../base/text.ts'

/** Types of fields. Every value is stored as text in one form, so that it can be compared and searched. */
export const fieldTypes = ['string', 'number', 'date'] as const
export type FieldType = (typeof fieldTypes)[number]

/** Maximum length of a value. With its name, it has to fit into a key that documents are found by, of 255 characters. */
const fieldValueMaxCharacters = 200
/** Maximum length of a value of a document, such as the name of a seller. It is also a header of a webhook, percent-encoded. */
export const documentValueMaxCharacters = 500

const number = /^([+-]?)(?:(\d+)(?:\.(\d*))?|\.(\d+))(-?)$/

/** A decimal of XML Schema, or a number as the source system writes it, which may have its sign at the end: `100.50-`. */
const toNumber = (text: string): string | undefined => {
  const [, leading, whole = '0', decimals, onlyDecimals, trailing] = number.exec(text.trim()) ?? []
  if (leading === undefined || (leading !== '' && trailing !== '')) return undefined
  const fraction = decimals || onlyDecimals
  return `${leading === '-' || trailing === '-' ? '-' : ''}${whole}${fraction ? `.${fraction}` : ''}`
}

/** A date of ABAP, ISO 8601, XML Schema or OData version 2: `20260302`, `2026-03-02T00:00:00Z`, `2026-03-02+01:00`, `/Date(1772409600000)/`. */
const toDate = (text: string): string | undefined => {
  const [, milliseconds] = /^\/Date\((-?\d{1,15})(?:[+-]\d{1,4})?\)\/$/.exec(text) ?? []
  const [, year, month, day] = /^(\d{4})-?(\d{2})-?(\d{2})(?:T.*|Z|[+-]\d{2}:\d{2})?$/.exec(text.trim()) ?? []
  const date = new Date(milliseconds === undefined ? `${year}-${month}-${day}T00:00:00Z` : Number(milliseconds))
  if (Number.isNaN(date.getTime())) return undefined
  const iso = date.toISOString().slice(0, 10)
  // The 30th of February is another date.
  return milliseconds !== undefined || iso === `${year}-${month}-${day}` ? iso : undefined
}

/**
 * Returns a value of an answer as a field has it, or why it is not valid.
 * @param ofDocument the value was decoded here, so that U+FFFD is one of its characters, and may be longer: it is found by its beginning
 */
export const toFieldValue = (type: FieldType, found: unknown, ofDocument = false): { value: string } | { problem: string } => {
  if (typeof found !== 'string' && typeof found !== 'number' && typeof found !== 'boolean') {
    return { problem: 'is not a text, a number or a truth value' }
  }
  const text = String(found)
  if ((text.includes('\uFFFD') && !ofDocument) || !text.isWellFormed()) return { problem: 'is not in UTF-8' }
  const plain = plainText(text.replaceAll('\0', ' '), Number.POSITIVE_INFINITY)
  if (plain === '') return { problem: 'is empty' }
  const maxCharacters = ofDocument ? documentValueMaxCharacters : fieldValueMaxCharacters
  if (plain.length > maxCharacters) return { problem: `has more than ${maxCharacters} characters` }
  const value = type === 'number' ? toNumber(plain) : type === 'date' ? toDate(plain) : plain
  return value === undefined ? { problem: `is no ${type}` } : { value }
}
