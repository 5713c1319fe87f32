import { XMLBuilder, XMLParser } from 'fast-xml-parser'

/** A value as JSON brings it: a scalar, a structure, or the rows of a table. */
export type RfcValue = string | number | boolean | null | RfcValue[] | { [field: string]: RfcValue }

export interface RfcCall {
  functionName: string
  /** Importing and changing parameters. */
  imports: Record<string, RfcValue>
  /** By name; the system answers with no table that the call does not name, be it empty. */
  tables: Record<string, RfcValue[]>
}

/** What the system answered. `exception` is the function's own no, `fault` means that it could not be called. */
export type RfcAnswer =
  | { kind: 'result'; exports: Record<string, RfcValue>; tables: Record<string, RfcValue[]> }
  | { kind: 'exception'; name: string; message: string }
  | { kind: 'fault'; message: string }

const functionsNamespace = 'urn:sap-com:document:sap:rfc:functions'

/** `/NSP/NAME` cannot stand in XML. */
const elementName = (name: string) => name.toUpperCase().replace(/^\/(\w+)\//, '_-$1_-')
const ownName = (element: string) => element.replace(/^_-(\w+?)_-/, '/$1/')

const builder = new XMLBuilder({ suppressEmptyNode: true })

const toXml = (value: RfcValue): unknown => {
  if (Array.isArray(value)) return value.length > 0 ? { item: value.map(toXml) } : ''
  if (value !== null && typeof value === 'object') return fieldsToXml(value)
  // ABAP's own truth
  if (typeof value === 'boolean') return value ? 'X' : ''
  return value === null ? '' : String(value)
}

const fieldsToXml = (fields: Record<string, RfcValue>) =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [elementName(name), toXml(value)]))

/** The SOAP envelope of a call. Parameters bear no namespace; a boolean is `X` or empty, null is empty: the initial value. */
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
  // the prefix is the system's choice
  removeNSPrefix: true,
  parseTagValue: false,
  trimValues: false,
  // among them the parser counts the references that every XML has: &#13; for the end of a line
  htmlEntities: true,
  isArray: (name) => name === 'item',
})

const isParent = (element: Element | undefined): element is { [name: string]: Element } =>
  typeof element === 'object' && !Array.isArray(element)

/** White space between elements is nobody's value. */
const childrenOf = (element: { [name: string]: Element }) => Object.entries(element).filter(([name]) => name !== '#text')

const fromXml = (element: Element): RfcValue => {
  if (!isParent(element)) return Array.isArray(element) ? element.map(fromXml) : element
  const children = childrenOf(element)
  const [first] = children
  if (first && children.length === 1 && first[0] === 'item') return fromXml(first[1])
  return Object.fromEntries(children.map(([name, child]) => [ownName(name), fromXml(child)]))
}

/** @param text the body of any answer, as it came */
export const readRfcAnswer = (text: string, call: Pick<RfcCall, 'tables'>): RfcAnswer => {
  const body = bodyOf(text)
  if (!body) return { kind: 'fault', message: 'the system did not answer in SOAP' }
  for (const [name, element] of childrenOf(body)) {
    if (name === 'Fault') return readFault(element)
    if (name.endsWith('.Exception')) return readException(element) ?? { kind: 'fault', message: textOf(element) }
    if (name.endsWith('.Response')) return readResult(element, call)
  }
  return { kind: 'fault', message: 'the answer holds neither a result nor a fault' }
}

const bodyOf = (text: string): { [name: string]: Element } | undefined => {
  // no system of ours declares entities: whoever does wants them expanded
  if (text.includes('<!DOCTYPE')) return undefined
  try {
    const { Envelope } = parser.parse(text) as { Envelope?: Element }
    const body = isParent(Envelope) ? Envelope['Body'] : undefined
    return isParent(body) ? body : undefined
  } catch {
    return undefined
  }
}

const readResult = (element: Element, { tables: declared }: Pick<RfcCall, 'tables'>): RfcAnswer => {
  const names = new Set(Object.keys(declared).map((name) => name.toUpperCase()))
  const exports: Record<string, RfcValue> = {}
  const tables: Record<string, RfcValue[]> = {}
  for (const [element_, child] of isParent(element) ? childrenOf(element) : []) {
    const [name, value] = [ownName(element_), fromXml(child)]
    // an empty table has no rows to tell it by
    const rows = value === '' ? [] : value
    if (names.has(name) && Array.isArray(rows)) tables[name] = rows
    else exports[name] = value
  }
  return bapiError(tables['RETURN'] ?? exports['RETURN']) ?? { kind: 'result', exports, tables }
}

/** A BAPI says no by a message of type E or A, in an answer that is otherwise one. */
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

// what ABAP calls an exception
const exceptionName = /^[A-Z][A-Z0-9_]{2,}$/

const readFault = (element: Element): RfcAnswer => {
  const message = textOf(element)
  if (!isParent(element)) return { kind: 'fault', message }
  const name = [...textsOf(element['detail'] ?? ''), ...textsOf(element['faultstring'] ?? '')].find((text) => exceptionName.test(text))
  const said = [element['detail'], element['faultstring']].map((part) => textOf(part ?? '')).filter(Boolean)
  return name === undefined ? { kind: 'fault', message: said.join(': ') || message } : { kind: 'exception', name, message: said.join(': ') }
}

const readException = (element: Element): RfcAnswer | undefined => {
  const name = isParent(element) ? element['Name'] : undefined
  return typeof name === 'string' ? { kind: 'exception', name: name.trim(), message: textOf(element) } : undefined
}

const textsOf = (element: Element): string[] => {
  if (typeof element === 'string') return element.trim() ? [element.trim()] : []
  return (Array.isArray(element) ? element : Object.values(element)).flatMap(textsOf)
}

const textOf = (element: Element) => textsOf(element).join(' ')
