import { randomBytes } from 'node:crypto'
import type { ArchivedComponent } from '../db/archive-documents.ts'
import { componentHeaders } from './archived.ts'

/** How a document's components stand in a multipart answer, around bytes that are sent (docGet) or left out (info). */
export const createDocumentParts = (pVersion: string) => {
  const boundary = `relay${randomBytes(12).toString('hex')}`
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,

    /** What precedes the bytes of a component, of which there follow `lengthBytes`. */
    head: (component: ArchivedComponent, lengthBytes: number): Buffer => {
      const headers = { 'Content-Type': component.contentType, 'Content-Length': lengthBytes, ...componentHeaders(component, pVersion) }
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
      // header values hold one character a byte
      return Buffer.from(`--${boundary}\r\n${lines.join('')}\r\n`, 'latin1')
    },

    /** What follows them. */
    foot: Buffer.from('\r\n'),

    /** The end of so many parts: a document without components still has a first boundary. */
    end: (count: number): Buffer => Buffer.from(`${count === 0 ? `--${boundary}\r\n` : ''}--${boundary}--\r\n`),
  }
}
