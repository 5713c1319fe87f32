import { XMLBuilder, XMLParser } from 'fast-xml-parser'
import { storable } from '../base/text.ts'

/** JSON value of a parameter: a scalar, a structure, or the rows of a table. */
export type RfcValue = string | number | boolean | null | RfcValue[] | { [field: string]: RfcValue }

export interface RfcCall {
  functionName: string
  /** Importing and changing parameters. */
  imports: Record<string, RfcValue>
  /**
   * Rows by table name. The system returns only tables that the call names, so a table to be returned is passed empty.
   */
  tables: Record<string, RfcValue[]>
}

/**
 * Answer of the system. `exception`: the function raised an exception. `fault`: the function was not called. `unauthorized`: the user may not call
 * it.
 */
export type RfcAnswer =
  | { kind: 'result'; exports: Record<string, RfcValue>; tables: Record<string, RfcValue[]> }
  | { kind: 'exception'; name: string; message: string }
  | { kind: 'fault'; message: string }
  | { kind: 'unauthorized'; message: string }

const functionsNamespace = 'urn:sap-com:document:sap:rfc:functions'

/** Encodes a name as an XML element name: `/NSP/NAME`, which XML does not allow, becomes `_-NSP_-NAME`. */
const elementName = (name: string) => name.toUpperCase().replace(/^\/(\w+)\//, '_-$1_-')
const parameterName = (element: string) => storable(element).replace(/^_-(\w+?)_-/, '/$1/')

const builder = new XMLBuilder({ suppressEmptyNode: true })

const toXml = (value: RfcValue): unknown => {
  if (Array.isArray(value)) return value.length > 0 ? { item: value.map(toXml) } : ''
  if (value !== null && typeof value === 'object') return fieldsToXml(value)
  // ABAP has no boolean type and uses these characters.
  if (typeof value === 'boolean') return value ? 'X' : ''
  return value === null ? '' : String(value)
}

const fieldsToXml = (fields: Record<string, RfcValue>) =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [elementName(name), toXml(value)]))

/**
 * Builds the SOAP envelope of a call. Parameters have no namespace. `true` becomes `X`; `false` and `null` become the
 * initial value.
 */
export const rfcEnvelope = ({ functionName, imports, tables }: RfcCall): string => {
  const call = builder.build({ [`urn:${elementName(functionName)}`]: { ...fieldsToXml(imports), ...fieldsToXml(tables) } })
  return (
    '<?xml version="1.0" encoding="UTF-8"?>' +
    `<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:urn="${functionsNamespace}">` +
    `<soapenv:Header/><soapenv:Body>${call}</soapenv:Body></soapenv:Envelope>`
  )
}

type Element = string | Element[] | { [name: string]: Element }

const parser = new XMLParser({
  // Systems use different prefixes.
  removeNSPrefix: true,
  parseTagValue: false,
  trimValues: false,
  // Needed for numeric references such as &#13;, which the parser decodes only with this option.
  htmlEntities: true,
  isArray: (name) => name === 'item',
})

const isParent = (element: Element | undefined): element is { [name: string]: Element } =>
  typeof element === 'object' && !Array.isArray(element)

/** Returns the child elements. White space between them is not a value. */
const childrenOf = (element: { [name: string]: Element }) => Object.entries(element).filter(([name]) => name !== '#text')

const fromXml = (element: Element): RfcValue => {
  // A reference such as &#xD83D; is half a character, which no JSON of a strict client may contain.
  if (!isParent(element)) return Array.isArray(element) ? element.map(fromXml) : storable(element)
  const children = childrenOf(element)
  const [first] = children
  if (first && children.length === 1 && first[0] === 'item') return fromXml(first[1])
  return Object.fromEntries(children.map(([name, child]) => [parameterName(name), fromXml(child)]))
}

/**
 * Reads an answer of the system.
 * @param text the body of the HTTP response, which may not be SOAP
 * @param tables names of the tables that the call named
 */
export const readRfcAnswer = (text: string, tables: string[]): RfcAnswer => {
  const body = bodyOf(text)
  if (!body) return { kind: 'fault', message: 'the system did not answer in SOAP' }
  for (const [name, element] of childrenOf(body)) {
    if (name === 'Fault') return unlessUnauthorized(readFault(element))
    if (name.endsWith('.Exception')) return unlessUnauthorized(readException(element))
    if (name.endsWith('.Response')) return readResult(element, tables)
  }
  return { kind: 'fault', message: 'the answer contains neither a result nor a fault' }
}

const bodyOf = (text: string): { [name: string]: Element } | undefined => {
  // SOAP does not allow a document type declaration. It could define entities that expand to huge texts.
  if (text.includes('<!DOCTYPE')) return undefined
  try {
    const { Envelope } = parser.parse(text) as { Envelope?: Element }
    const body = isParent(Envelope) ? Envelope['Body'] : undefined
    return isParent(body) ? body : undefined
  } catch {
    return undefined
  }
}

const readResult = (element: Element, declared: string[]): RfcAnswer => {
  const names = new Set(declared.map((name) => name.toUpperCase()))
  const exports: Record<string, RfcValue> = {}
  const tables: Record<string, RfcValue[]> = {}
  for (const [childName, child] of isParent(element) ? childrenOf(element) : []) {
    const [name, value] = [parameterName(childName), fromXml(child)]
    // An empty table has no rows and is parsed as an empty text.
    const rows = value === '' ? [] : value
    if (names.has(name) && Array.isArray(rows)) tables[name] = rows
    else exports[name] = value
  }
  return bapiError(tables['RETURN'] ?? exports['RETURN']) ?? { kind: 'result', exports, tables }
}

/** Finds the error of a BAPI, which reports it as a message of type E or A in an otherwise normal result. */
const bapiError = (messages: RfcValue | undefined): RfcAnswer | undefined => {
  for (const row of Array.isArray(messages) ? messages : [messages ?? null]) {
    if (row === null || typeof row !== 'object' || Array.isArray(row)) continue
    const field = (name: string) => (typeof row[name] === 'string' ? row[name] : '')
    if (field('TYPE') === 'E' || field('TYPE') === 'A') {
      return { kind: 'exception', name: `${field('ID')}-${field('NUMBER')}`, message: field('MESSAGE') }
    }
  }
  return undefined
}

// Form of the name of an ABAP exception.
const exceptionName = /^[A-Z][A-Z0-9_]{2,}$/

// The exception of the gateway, and what it says in English and German. An exception of the function itself, such as NO_AUTHORITY, is another thing.
const rfcUnauthorized =
  /RFC_NO_AUTHORITY|no RFC[- ]authori[sz]ation|not authori[sz]ed to (?:call|execute|use)[^.]*\b(?:function|RFC)|keine[^.]{0,10} RFC[- ]?Berechtigung/i

const unlessUnauthorized = (answer: RfcAnswer): RfcAnswer => {
  if (answer.kind !== 'exception' && answer.kind !== 'fault') return answer
  const text = answer.kind === 'exception' && !answer.message.includes(answer.name) ? `${answer.name}: ${answer.message}` : answer.message
  return rfcUnauthorized.test(text) ? { kind: 'unauthorized', message: text } : answer
}

const readFault = (element: Element): RfcAnswer => {
  if (!isParent(element)) return { kind: 'fault', message: textOf(element) }
  const texts = [...textsOf(element['detail'] ?? ''), ...textsOf(element['faultstring'] ?? '')]
  const name = texts.find((text) => exceptionName.test(text))
  const message = inFewWords(texts) || textOf(element)
  return name === undefined ? { kind: 'fault', message } : { kind: 'exception', name, message }
}

/** Joins the texts of a fault, without those that another one contains: systems repeat the name and the text of an exception. */
const inFewWords = (texts: string[]): string => {
  const distinct = [...new Set(texts)]
  return distinct.filter((text) => !distinct.some((other) => other !== text && other.includes(text))).join(': ')
}

/** Some systems write the name of an exception as an element, others as the only text. */
const readException = (element: Element): RfcAnswer => {
  const message = textOf(element)
  const named = isParent(element) ? element['Name'] : element
  const name = typeof named === 'string' ? named.trim() : ''
  return name === '' || (!isParent(element) && !exceptionName.test(name))
    ? { kind: 'fault', message }
    : { kind: 'exception', name, message }
}

const textsOf = (element: Element): string[] => {
  if (typeof element === 'string') return element.trim() ? [element.trim()] : []
  return (Array.isArray(element) ? element : Object.values(element)).flatMap(textsOf)
}

const textOf = (element: Element) => textsOf(element).join(' ')
