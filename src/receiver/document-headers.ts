import { randomBytes } from 'node:crypto'
import { encodeHeader } from '../content-server/encoding.ts'
import type { DescribedComponent, DescribedDocument } from './upstream.ts'

/** The protocol has dates and times of day in UTC, as separate values. */
export const dateOf = (time: Date) => time.toISOString().slice(0, 10)
export const timeOf = (time: Date) => time.toISOString().slice(11, 19)

/** Returns the headers of a component, in the order of the interface's own examples. */
export const componentHeaders = (component: DescribedComponent, pVersion: string) => ({
  'X-compId': encodeHeader(component.compId),
  'X-Content-Length': component.sizeBytes,
  'X-compDateC': dateOf(component.createdAt),
  'X-compTimeC': timeOf(component.createdAt),
  'X-compDateM': dateOf(component.modifiedAt),
  'X-compTimeM': timeOf(component.modifiedAt),
  'X-compStatus': component.content ? 'online' : 'offline',
  'X-pVersion': pVersion,
})

/** Returns the headers of a document. The interface's own pages give two of them two names each, and clients read either. */
export const documentHeaders = (document: DescribedDocument, repoId: string, components: DescribedComponent[], pVersion: string) => ({
  'X-dateC': dateOf(document.createdAt),
  'X-timeC': timeOf(document.createdAt),
  'X-dateM': dateOf(document.modifiedAt),
  'X-timeM': timeOf(document.modifiedAt),
  'X-numberComps': components.length,
  'X-numComps': components.length,
  'X-contentRep': encodeHeader(repoId),
  'X-contRep': encodeHeader(repoId),
  'X-docId': document.docId,
  'X-docStatus': 'online',
  'X-pVersion': pVersion,
})

/** Formats the components of a document as parts of a multipart answer, with their bytes (docGet) or without them (info). */
export const createDocumentParts = (pVersion: string) => {
  const boundary = `relay${randomBytes(12).toString('hex')}`
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,

    /** Returns everything before the bytes of a component. @param lengthBytes number of bytes that follow */
    head: (component: DescribedComponent, lengthBytes: number): Buffer => {
      const headers = { 'Content-Type': component.contentType, 'Content-Length': lengthBytes, ...componentHeaders(component, pVersion) }
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
      // Header values hold one character per byte.
      return Buffer.from(`--${boundary}\r\n${lines.join('')}\r\n`, 'latin1')
    },

    /** Everything after the bytes of a component. */
    foot: Buffer.from('\r\n'),

    /** Returns the end of the answer. A document without components still has a first boundary. */
    end: (parts: number): Buffer => Buffer.from(`${parts === 0 ? `--${boundary}\r\n` : ''}--${boundary}--\r\n`),
  }
}
