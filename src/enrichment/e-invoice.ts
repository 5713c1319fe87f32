import { isOutOfMemory, messageOf } from '../base/errors.ts'
import { plainText } from '../base/text.ts'
import { readXml, startsAsXml, type EInvoice, type XmlReading } from './e-invoice-xml.ts'
import { EncryptedPdfError, listPdfFiles, type PdfFile, type PdfFiles } from './pdf-files.ts'

// The names that the standards give to the invoice in a PDF, in lower case.
const invoiceNames = new Set(['factur-x.xml', 'zugferd-invoice.xml', 'xrechnung.xml'])
// More files of XML are not looked at: the PDF is a collection.
const candidatesMax = 20
// The end of a name is what it is known by.
const fileNameMaxCharacters = 500
const nameMaxCharacters = 100
const causeMaxCharacters = 200

const withoutPath = (name: string) =>
  plainText(name.slice(-fileNameMaxCharacters))
    .toLowerCase()
    .replace(/^.*[/\\]/, '')
    .replaceAll('\uFFFD', '')

const isNamed = ({ name }: PdfFile): boolean => invoiceNames.has(withoutPath(name))
const mayBeXml = ({ name, isXml }: PdfFile): boolean => isXml || name === '' || withoutPath(name).endsWith('.xml')

const causeOf = (thrown: unknown): string => {
  if (isOutOfMemory(thrown)) throw thrown
  return plainText(messageOf(thrown), causeMaxCharacters)
}

const readFile = (file: PdfFile): XmlReading => {
  try {
    const data = file.read()
    return data.byteLength === 0 ? { kind: 'unreadable', problem: 'it is empty' } : readXml(data)
  } catch (thrown) {
    return { kind: 'unreadable', problem: `it cannot be decoded: ${causeOf(thrown)}` }
  }
}

/** Returns the invoice among the files of a PDF: the first with a name of the standards, or else the only one. */
const readFiles = ({ files, isRepaired }: PdfFiles): EInvoice => {
  const candidates = files
    .filter(mayBeXml)
    .toSorted((one, other) => Number(isNamed(other)) - Number(isNamed(one)))
    .slice(0, candidatesMax)
  const invoices: EInvoice[] = []
  const problems: string[] = []
  for (const file of candidates) {
    const reading = readFile(file)
    if (reading.kind === 'invoice' && isNamed(file)) return reading.invoice
    if (reading.kind === 'invoice') invoices.push(reading.invoice)
    // What should be the invoice says more than other files do.
    else if (isNamed(file) || reading.kind === 'unreadable')
      problems.push(`the file ${plainText(file.name, nameMaxCharacters)} in the PDF is not read: ${reading.problem}`)
  }
  if (invoices.length > 1) return { problem: 'the PDF contains several invoices' }
  return invoices[0] ?? { problem: problems[0] ?? `the PDF ${isRepaired ? 'is damaged, and ' : ''}contains no electronic invoice` }
}

const readPdf = async (data: Uint8Array): Promise<EInvoice> => {
  try {
    return readFiles(await listPdfFiles(data))
  } catch (thrown) {
    return { problem: thrown instanceof EncryptedPdfError ? thrown.message : `the PDF cannot be read: ${causeOf(thrown)}` }
  }
}

const readAsXml = (data: Uint8Array): EInvoice => {
  const reading = readXml(data)
  return reading.kind === 'invoice' ? reading.invoice : { problem: reading.problem }
}

const contains = (data: Uint8Array, text: string): boolean => Buffer.from(data.buffer, data.byteOffset, data.byteLength).includes(text)

/**
 * Reads what an electronic invoice says: XRechnung as UBL or CII, and the invoice in a PDF of ZUGFeRD or Factur-X. It is not validated. Runs
 * in a process of its own, which ends if it takes too long or too much memory.
 */
export const readEInvoice = async ({ data }: { data: Uint8Array }): Promise<EInvoice> => {
  if (contains(data.subarray(0, 1_024), '%PDF-')) return readPdf(data)
  return startsAsXml(data) ? readAsXml(data) : { problem: 'the document is neither XML nor a PDF' }
}
