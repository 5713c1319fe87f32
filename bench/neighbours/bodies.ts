import { deflateSync } from 'node:zlib'

/** A body that a noisy workspace sends: a small document, one that is hostile to its reader, or the JSON of a request. */
export type Body = 'document' | 'pdf bomb' | 'xml bomb' | { json: object }

const documentBytes = 10 * 1024
const bombMiB = 1_024

/** Returns a PDF of one page with an invoice as its attachment. */
const pdfWith = (filters: string, attachment: Buffer): Buffer => {
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R /Names << /EmbeddedFiles << /Names [(factur-x.xml) 4 0 R] >> >> >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 10 10] >>',
    '<< /Type /Filespec /F (factur-x.xml) /UF (factur-x.xml) /EF << /F 5 0 R >> >>',
    `<< /Type /EmbeddedFile /Filter [${filters}] /Length ${attachment.length} >>\nstream\n${attachment.toString('latin1')}\nendstream`,
  ]
  let text = '%PDF-1.7\n'
  const offsets = objects.map((object, index) => {
    const offset = text.length
    text += `${index + 1} 0 obj\n${object}\nendobj\n`
    return offset
  })
  const lines = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`)
  text += `xref\n0 6\n0000000000 65535 f \n${lines.join('')}trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n${text.length}\n%%EOF\n`
  return Buffer.from(text, 'latin1')
}

// Deflated twice: some 12 KiB.
const pdfBomb = (): Buffer => {
  const zeros = deflateSync(Buffer.alloc(bombMiB * 2 ** 20), { level: 1 })
  return pdfWith('/FlateDecode /FlateDecode', deflateSync(zeros, { level: 9 }))
}

// Some 14 MB. Each entity is allowed, and to resolve all of them takes seconds.
const entities = 2_400_000
const xmlBomb = (): Buffer => Buffer.from(`<Invoice><ID>${'&#x41;'.repeat(entities)}</ID></Invoice>`)

/** Creates a function that returns the bytes of a body. Bombs are made once, when they are first needed. */
export const createBodies = () => {
  const made = new Map<string, Buffer>()
  const once = (name: string, make: () => Buffer): Buffer => {
    const found = made.get(name) ?? make()
    made.set(name, found)
    return found
  }
  return (body: Body | undefined): Buffer | undefined => {
    if (body === undefined) return undefined
    if (typeof body === 'object') return Buffer.from(JSON.stringify(body.json))
    if (body === 'pdf bomb') return once(body, pdfBomb)
    if (body === 'xml bomb') return once(body, xmlBomb)
    return once(body, () => Buffer.alloc(documentBytes, 'x'))
  }
}
