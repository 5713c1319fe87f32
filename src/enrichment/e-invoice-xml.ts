import { XMLParser } from 'fast-xml-parser'
import { cutText, plainText } from '../base/text.ts'
import { decodeText } from '../domain/decoded-text.ts'
import { documentValueMaxCharacters } from '../domain/field-values.ts'

type InvoiceField = 'invoice_number' | 'seller' | 'total' | 'currency' | 'profile'

/**
 * What an electronic invoice says, by the names of fields. `lost`: why a field that it has was not read. A document that is no invoice, or
 * that cannot be read, has the problem only.
 */
export type EInvoice = Partial<Record<InvoiceField | 'problem', string>> & { lost?: Partial<Record<InvoiceField, string>> }

/** What XML is. `other`: no invoice of a known format. */
export type XmlReading = { kind: 'invoice'; invoice: EInvoice } | { kind: 'other' | 'unreadable'; problem: string }

// Limit of the XML. The largest invoices contain their attachments.
const xmlMaxBytes = 15_000_000
const encodingMaxCharacters = 40
const nameMaxCharacters = 100

/** An element, a text or a processing instruction: one key that is its name, and the declarations of its namespaces. */
type Node = { [name: string]: Node[] | string } & { ':@'?: Record<string, string> }

const parser = new XMLParser({
  preserveOrder: true,
  // The prefixes of an element are declared by attributes. No other one is read.
  ignoreAttributes: (name) => !/^xmlns(:|$)/.test(name),
  parseTagValue: false,
  parseAttributeValue: false,
  // Texts around a comment, CDATA or an element are one text.
  trimValues: false,
  // Decodes numeric references. Entities of a document type are not read: there is none, see below.
  htmlEntities: true,
})

interface Element {
  name: string
  /** Undefined if its prefix is not declared. */
  namespace: string | undefined
  children: Node[]
  /** Namespaces by their prefixes. */
  scope: Map<string, string>
}

/** Returns the elements of a list, which may be the children of one. */
const elementsOf = (nodes: Node[], outer: Map<string, string>): Element[] =>
  nodes.flatMap((node) => {
    const tag = Object.keys(node).find((key) => key !== ':@')
    const children = tag === undefined ? undefined : node[tag]
    if (tag === undefined || tag.startsWith('?') || !Array.isArray(children)) return []
    const declared = Object.entries(node[':@'] ?? {}).map(([key, value]): [string, string] => [key.replace(/^@_xmlns:?/, ''), value.trim()])
    const scope = declared.length === 0 ? outer : new Map([...outer, ...declared])
    const colon = tag.indexOf(':')
    const namespace = colon === -1 ? (scope.get('') ?? '') : scope.get(tag.slice(0, colon))
    return [{ name: tag.slice(colon + 1), namespace, children, scope }]
  })

/** Returns all text of a list of nodes, as an element has it that is not meant to have others within. */
const textOf = (nodes: Node[]): string =>
  nodes
    .flatMap((node) => Object.entries(node))
    .map(([key, value]): string => {
      if (key === ':@' || key.startsWith('?')) return ''
      if (Array.isArray(value)) return textOf(value)
      return typeof value === 'string' ? value : ''
    })
    .join('')

/** Returns the text of the first element at a path, with single blanks, as a token of XML Schema has them. */
const textAt = (root: Element, ...path: string[]): string | undefined => {
  let found = [root]
  for (const name of path) found = found.flatMap(({ children, scope }) => elementsOf(children, scope).filter((each) => each.name === name))
  const text = textOf(found[0]?.children ?? [])
    .replaceAll(/[\t\n\r ]+/g, ' ')
    .trim()
  return text === '' ? undefined : text
}

type Values = Record<InvoiceField, string | undefined>

/** An invoice or credit note in the Universal Business Language. */
const readUbl = (invoice: Element): Values => {
  const seller = ['AccountingSupplierParty', 'Party']
  return {
    invoice_number: textAt(invoice, 'ID'),
    seller: textAt(invoice, ...seller, 'PartyLegalEntity', 'RegistrationName') ?? textAt(invoice, ...seller, 'PartyName', 'Name'),
    total: textAt(invoice, 'LegalMonetaryTotal', 'TaxInclusiveAmount'),
    currency: textAt(invoice, 'DocumentCurrencyCode'),
    profile: textAt(invoice, 'CustomizationID'),
  }
}

/** The names of elements in which the versions of the Cross Industry Invoice differ. */
interface CiiNames {
  context: string
  document: string
  transaction: string
  agreement: string
  settlement: string
  summation: string
}

const readCii =
  ({ context, document, transaction, agreement, settlement, summation }: CiiNames) =>
  (invoice: Element): Values => ({
    invoice_number: textAt(invoice, document, 'ID'),
    seller: textAt(invoice, transaction, agreement, 'SellerTradeParty', 'Name'),
    total: textAt(invoice, transaction, settlement, summation, 'GrandTotalAmount'),
    currency: textAt(invoice, transaction, settlement, 'InvoiceCurrencyCode'),
    profile: textAt(invoice, context, 'GuidelineSpecifiedDocumentContextParameter', 'ID'),
  })

const readZugferd1 = readCii({
  context: 'SpecifiedExchangedDocumentContext',
  document: 'HeaderExchangedDocument',
  transaction: 'SpecifiedSupplyChainTradeTransaction',
  agreement: 'ApplicableSupplyChainTradeAgreement',
  settlement: 'ApplicableSupplyChainTradeSettlement',
  summation: 'SpecifiedTradeSettlementMonetarySummation',
})

interface Vocabulary {
  name: string
  /** How its namespace begins. It is also recognised where its prefix is not declared. */
  namespace: string
  /** Whether the name alone says what it is. */
  isUnique: boolean
  read: (invoice: Element) => Values
}

const vocabularies: Vocabulary[] = [
  { name: 'Invoice', namespace: 'urn:oasis:names:specification:ubl:schema:xsd:Invoice-2', isUnique: false, read: readUbl },
  { name: 'CreditNote', namespace: 'urn:oasis:names:specification:ubl:schema:xsd:CreditNote-2', isUnique: false, read: readUbl },
  {
    name: 'CrossIndustryInvoice',
    namespace: 'urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:',
    isUnique: true,
    read: readCii({
      context: 'ExchangedDocumentContext',
      document: 'ExchangedDocument',
      transaction: 'SupplyChainTradeTransaction',
      agreement: 'ApplicableHeaderTradeAgreement',
      settlement: 'ApplicableHeaderTradeSettlement',
      summation: 'SpecifiedTradeSettlementHeaderMonetarySummation',
    }),
  },
  { name: 'CrossIndustryDocument', namespace: 'urn:ferd:', isUnique: true, read: readZugferd1 },
  // The release candidate of ZUGFeRD 1.0.
  { name: 'Invoice', namespace: 'urn:un:unece:uncefact:data:standard:CBFBUY:', isUnique: false, read: readZugferd1 },
]

// What carries a document from one system to another: the header of UN/CEFACT and its successor of OASIS, SOAP, and the container of UBL.
const envelopes = new Set(['StandardBusinessDocument', 'XHE', 'Envelope', 'AttachedDocument'])
// An invoice in SOAP, in the header of UN/CEFACT, in an element of a service.
const envelopeMaxDepth = 8

const vocabularyOf = ({ name, namespace }: Element): Vocabulary | undefined =>
  vocabularies.find(
    (each) =>
      each.name === name && (namespace === undefined || namespace.startsWith(each.namespace) || (namespace === '' && each.isUnique)),
  )

const base64 = /^[A-Za-z0-9+/\s]{20,}=*\s*$/

const unreadable = (problem: string): XmlReading => ({ kind: 'unreadable', problem })

/** Reads the content of an envelope that is not XML in XML: a document as text or in base64. */
const readEnclosed = (nodes: Node[], damaged: string | undefined): XmlReading | undefined => {
  const text = textOf(nodes).trim()
  if (text.startsWith('<')) return readXmlText(text, { damaged, mayBeEnvelope: false })
  if (!base64.test(text)) return undefined
  const bytes = Buffer.from(text, 'base64')
  return startsAsXml(bytes) ? readXml(bytes, false) : undefined
}

/**
 * Returns the first invoice among elements and, in an envelope, among those within, or else why one of them cannot be read.
 * @param damaged the encoding, if the bytes have others
 */
const findInvoice = (elements: Element[], damaged: string | undefined, depth: number): XmlReading | undefined => {
  for (const element of elements) {
    const vocabulary = vocabularyOf(element)
    if (vocabulary) return { kind: 'invoice', invoice: toInvoice(vocabulary.read(element), damaged) }
    if (depth === 0) continue
    const inner = elementsOf(element.children, element.scope)
    const found = inner.length === 0 ? readEnclosed(element.children, damaged) : findInvoice(inner, damaged, depth - 1)
    if (found && found.kind !== 'other') return found
  }
  return undefined
}

const toInvoice = (values: Values, damaged: string | undefined): EInvoice => {
  const invoice: EInvoice = {}
  for (const [key, value] of Object.entries(values)) {
    const field = key as InvoiceField
    if (value === undefined) continue
    if (damaged !== undefined && value.includes('\uFFFD')) (invoice.lost ??= {})[field] = `is not in ${damaged.toUpperCase()}`
    else invoice[field] = field === 'seller' ? cutText(value, documentValueMaxCharacters) : value
  }
  return invoice
}

/** Whether XML has a document type outside of comments and CDATA. It could define entities that expand to huge texts; no format of invoices has one. */
const hasDocumentType = (text: string): boolean => {
  const special = /<!--|<!\[CDATA\[|<\?|<!DOCTYPE/gi
  const ends: Record<string, string> = { '<!--': '-->', '<![CDATA[': ']]>', '<?': '?>' }
  for (let match = special.exec(text); match; match = special.exec(text)) {
    const end = ends[match[0]]
    if (end === undefined) return true
    const at = text.indexOf(end, special.lastIndex)
    if (at === -1) return false
    special.lastIndex = at
  }
  return false
}

/** Returns why elements are no invoice, with the root as people would look it up. */
const otherThanInvoice = (roots: Element[], isEnvelope: boolean): XmlReading => {
  const [root] = roots
  if (!root) return unreadable('the XML has no element')
  const namespace = root.namespace === undefined || root.namespace === '' ? '' : ` of ${plainText(root.namespace, nameMaxCharacters)}`
  const what = `its root is the element ${plainText(root.name, nameMaxCharacters)}${namespace}`
  return { kind: 'other', problem: `the XML ${isEnvelope ? 'contains' : 'is'} no invoice of a known format: ${what}` }
}

const readXmlText = (text: string, { damaged, mayBeEnvelope }: { damaged: string | undefined; mayBeEnvelope: boolean }): XmlReading => {
  if (hasDocumentType(text)) return unreadable('the XML has a document type declaration')
  try {
    const roots = elementsOf(parser.parse(text) as Node[], new Map())
    const isEnvelope = mayBeEnvelope && roots.some(({ name }) => envelopes.has(name))
    return findInvoice(roots, damaged, isEnvelope ? envelopeMaxDepth : 0) ?? otherThanInvoice(roots, isEnvelope)
  } catch {
    // Among others, elements that are nested too deeply for the stack.
    return unreadable('the XML cannot be read')
  }
}

const beginning = (data: Uint8Array): string => decodeText(Buffer.from(data.subarray(0, 256))).text.trimStart()

/** Whether data may be XML. */
export const startsAsXml = (data: Uint8Array): boolean => beginning(data).startsWith('<')

/** Reads the invoice that XML is or, if it may be an envelope, that it contains. */
export const readXml = (data: Uint8Array, mayBeEnvelope = true): XmlReading => {
  if (data.byteLength > xmlMaxBytes) return unreadable(`the XML has more than ${xmlMaxBytes} bytes`)
  const { text, damaged, unknownEncoding } = decodeText(Buffer.from(data.buffer, data.byteOffset, data.byteLength))
  if (unknownEncoding !== undefined) {
    return unreadable(`the XML is in the encoding ${plainText(unknownEncoding, encodingMaxCharacters)}, which is not known`)
  }
  return readXmlText(text, { damaged, mayBeEnvelope })
}
