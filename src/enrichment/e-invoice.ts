import { getDocumentProxy } from 'unpdf'
import { isOutOfMemory, messageOf } from '../base/errors.ts'
import { plainText } from '../base/text.ts'
import { threadTask } from '../base/thread-task.ts'
import { readXml, startsAsXml, type EInvoice } from './e-invoice-xml.ts'

// The names under which PDFs of ZUGFeRD, Factur-X and XRechnung contain their invoice, in lower case.
const invoiceNames = new Set(['factur-x.xml', 'zugferd-invoice.xml', 'xrechnung.xml'])

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
    return startsAsXml(data) ? readXml(data) : {}
  } catch (thrown) {
    if (isOutOfMemory(thrown)) throw thrown
    const isEncrypted = thrown instanceof Error && thrown.name === 'PasswordException'
    return { problem: isEncrypted ? 'the PDF is encrypted' : `the PDF cannot be read: ${plainText(messageOf(thrown), 200)}` }
  }
}

export const readEInvoiceTask = threadTask(import.meta.url, readEInvoice)
