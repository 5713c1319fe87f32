import { getDocumentProxy } from 'unpdf'
import { isOutOfMemory, messageOf } from '../base/errors.ts'
import { plainText } from '../base/text.ts'
import { threadTask } from '../base/thread-task.ts'
import { readXml, startsAsXml, type EInvoice } from './e-invoice-xml.ts'

type PDFDocument = Awaited<ReturnType<typeof getDocumentProxy>>

// The names that the standards give to the invoice in a PDF, in lower case.
const invoiceNames = new Set(['factur-x.xml', 'zugferd-invoice.xml', 'xrechnung.xml'])
// More files of XML are not looked at: the PDF is a collection.
const attachmentsMax = 20
// Pages whose annotations are looked at. A scan of thousands would take too long.
const pagesMax = 200
// The type of annotations that are files, in PDF.js.
const fileAttachment = 17

interface Attachment {
  /** The key of the content. */
  key: string
  filename: string
}

const withoutPath = (filename: string) =>
  plainText(filename)
    .toLowerCase()
    .replace(/^.*[/\\]/, '')
    .replaceAll('\uFFFD', '')

const isNamed = ({ filename }: Attachment): boolean => invoiceNames.has(withoutPath(filename))

/** Returns the files of a PDF: those of the document, and those that are pinned to a page. */
const attachmentsOf = async (document: PDFDocument): Promise<Attachment[]> => {
  const ofDocument = [...((await document.getAttachments()) ?? [])].map(([key, { filename }]): Attachment => ({ key, filename }))
  if (ofDocument.some(isNamed)) return ofDocument
  const skipped = new Set(Array.from({ length: Math.max(0, document.numPages - pagesMax) }, (_, index) => pagesMax + index))
  const annotations = (await document.getAnnotationsByType(new Set([fileAttachment]), skipped)) as {
    fileId?: string
    file?: { filename: string }
  }[]
  return [...ofDocument, ...annotations.flatMap(({ fileId, file }) => (fileId && file ? [{ key: fileId, filename: file.filename }] : []))]
}

/** Returns the invoice among the files of a PDF: the first with a name of the standards, or else the only one. */
const readAttachments = async (document: PDFDocument): Promise<EInvoice> => {
  const candidates = (await attachmentsOf(document))
    .filter(({ filename }) => withoutPath(filename).endsWith('.xml'))
    .toSorted((one, other) => Number(isNamed(other)) - Number(isNamed(one)))
    .slice(0, attachmentsMax)
  const others: EInvoice[] = []
  let problem: EInvoice = {}
  for (const each of candidates) {
    const content: unknown = await document.getAttachmentContent(each.key)
    const found: EInvoice = content instanceof Uint8Array ? readXml(content) : { problem: 'the invoice in the PDF is empty' }
    if (Object.keys(found).length === 0) continue
    if (found.problem === undefined && isNamed(each)) return found
    if (found.problem === undefined) others.push(found)
    else if (isNamed(each)) problem = found
  }
  if (others.length > 1) return { problem: 'the PDF contains several invoices' }
  return others[0] ?? problem
}

const readPdf = async (data: Uint8Array): Promise<EInvoice> => {
  const document = await getDocumentProxy(data, { verbosity: 0, stopAtErrors: true })
  try {
    return await readAttachments(document)
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
    return startsAsXml(data) ? readXml(data) : {}
  } catch (thrown) {
    if (isOutOfMemory(thrown)) throw thrown
    const isEncrypted = thrown instanceof Error && thrown.name === 'PasswordException'
    return { problem: isEncrypted ? 'the PDF is encrypted' : `the PDF cannot be read: ${plainText(messageOf(thrown), 200)}` }
  }
}

export const readEInvoiceTask = threadTask(import.meta.url, readEInvoice)
