import { XMLParser } from 'fast-xml-parser'
import { getDocumentProxy } from 'unpdf'
import { isOutOfMemory, messageOf } from '../base/errors.ts'
import { cutText, plainText } from '../base/text.ts'
import { threadTask } from '../base/thread-task.ts'

/** What an electronic invoice says, by the names of fields. A document that is no invoice has nothing, or says why it cannot be read. */
type EInvoice = Partial<Record<'invoice_number' | 'seller' | 'total' | 'currency' | 'profile' | 'problem', string>>

// Limit of the XML. The largest invoices contain their attachments.
const xmlMaxBytes = 15_000_000
// The names under which PDFs of ZUGFeRD, Factur-X and XRechnung contain their invoice, in lower case.
const invoiceNames = new Set(['factur-x.xml', 'zugferd-invoice.xml', 'xrechnung.xml'])

// Limit of a value. A field has less: what is cut off here is refused there as too long.
const valueMaxCharacters = 1_000

type Element = string | Element[] | { [name: string]: Element }

const parser = new XMLParser({
  removeNSPrefix: true,
  ignoreAttributes: true,
  parseTagValue: false,
  // Texts around a comment or CDATA are one text.
  trimValues: false,
  // Decodes numeric references. Entities of a document type are not read: there is none, see below.
  htmlEntities: true,
})

/** Returns the text of the first element at a path. */
const textAt = (root: Element | undefined, ...path: string[]): string | undefined => {
  let element = root
  for (const name of ['', ...path]) {
    if (name !== '') element = typeof element === 'object' && !Array.isArray(element) ? element[name] : undefined
    if (Array.isArray(element)) element = element[0]
  }
  return typeof element === 'string' && element.trim() !== '' ? element.trim() : undefined
}

/** An invoice or credit note in the Universal Business Language. */
const readUbl = (invoice: Element) => {
  const seller = ['AccountingSupplierParty', 'Party']
  return {
    invoice_number: textAt(invoice, 'ID'),
    seller: textAt(invoice, ...seller, 'PartyLegalEntity', 'RegistrationName') ?? textAt(invoice, ...seller, 'PartyName', 'Name'),
    total: textAt(invoice, 'LegalMonetaryTotal', 'TaxInclusiveAmount'),
    currency: textAt(invoice, 'DocumentCurrencyCode'),
    profile: textAt(invoice, 'CustomizationID'),
  }
}

/** A Cross Industry Invoice of UN/CEFACT. */
const readCii = (invoice: Element) => {
  const header = 'SupplyChainTradeTransaction'
  const settlement = [header, 'ApplicableHeaderTradeSettlement']
  return {
    invoice_number: textAt(invoice, 'ExchangedDocument', 'ID'),
    seller: textAt(invoice, header, 'ApplicableHeaderTradeAgreement', 'SellerTradeParty', 'Name'),
    total: textAt(invoice, ...settlement, 'SpecifiedTradeSettlementHeaderMonetarySummation', 'GrandTotalAmount'),
    currency: textAt(invoice, ...settlement, 'InvoiceCurrencyCode'),
    profile: textAt(invoice, 'ExchangedDocumentContext', 'GuidelineSpecifiedDocumentContextParameter', 'ID'),
  }
}

const readers: Record<string, (invoice: Element) => Record<string, string | undefined>> = {
  Invoice: readUbl,
  CreditNote: readUbl,
  CrossIndustryInvoice: readCii,
}

/** Returns the encoding by the byte order mark. */
const encodingOf = ([first, second]: Uint8Array): string => {
  if (first === 0xff && second === 0xfe) return 'utf-16le'
  return first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8'
}

const readXml = (data: Uint8Array): EInvoice => {
  if (data.byteLength > xmlMaxBytes) return { problem: `the XML has more than ${xmlMaxBytes} bytes` }
  const text = new TextDecoder(encodingOf(data)).decode(data)
  // It could define entities that expand to huge texts. No format of invoices has one.
  if (/<!DOCTYPE/i.test(text)) return { problem: 'the XML has a document type declaration' }
  let root: { [name: string]: Element }
  try {
    root = parser.parse(text) as typeof root
  } catch {
    // Among others, elements that are nested too deeply for the stack.
    return { problem: 'the XML cannot be read' }
  }
  for (const [name, read] of Object.entries(readers)) {
    const invoice = Object.hasOwn(root, name) ? root[name]! : undefined
    if (typeof invoice !== 'object' || Array.isArray(invoice)) continue
    return Object.fromEntries(
      Object.entries(read(invoice)).flatMap(([field, value]) => (value === undefined ? [] : [[field, cutText(value, valueMaxCharacters)]])),
    )
  }
  return Object.hasOwn(root, 'CrossIndustryDocument') ? { problem: 'the invoice is one of ZUGFeRD 1.0, which is not read' } : {}
}

const readPdf = async (data: Uint8Array): Promise<EInvoice> => {
  const document = await getDocumentProxy(data, { verbosity: 0, stopAtErrors: true })
  try {
    const attachments = await document.getAttachments()
    const key = [...(attachments?.entries() ?? [])].find(([, { filename }]) => invoiceNames.has(filename.toLowerCase()))?.[0]
    if (key === undefined) return {}
    const content: unknown = await document.getAttachmentContent(key)
    return content instanceof Uint8Array ? readXml(content) : { problem: 'the invoice in the PDF is empty' }
  } finally {
    await document.loadingTask.destroy()
  }
}

const contains = (data: Uint8Array, text: string): boolean => Buffer.from(data.buffer, data.byteOffset, data.byteLength).includes(text)

/**
 * Reads what an electronic invoice says: XRechnung as UBL or CII, and the invoice in a PDF of ZUGFeRD or Factur-X. It is not validated. Runs
 * in a process of its own, which ends if it takes too long or too much memory.
 */
export const readEInvoice = async ({ data }: { data: Uint8Array }): Promise<EInvoice> => {
  try {
    if (contains(data.subarray(0, 1_024), '%PDF-')) return await readPdf(data)
    const beginning = new TextDecoder(encodingOf(data)).decode(data.subarray(0, 64)).trimStart()
    return beginning.startsWith('<') ? readXml(data) : {}
  } catch (thrown) {
    if (isOutOfMemory(thrown)) throw thrown
    const isEncrypted = thrown instanceof Error && thrown.name === 'PasswordException'
    return { problem: isEncrypted ? 'the PDF is encrypted' : `the PDF cannot be read: ${plainText(messageOf(thrown), 200)}` }
  }
}

export const readEInvoiceTask = threadTask(import.meta.url, readEInvoice)
