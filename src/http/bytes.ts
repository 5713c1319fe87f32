import { once } from 'node:events'
import type { Readable } from 'node:stream'
import type Koa from 'koa'

/** What an endpoint answers whose response is `bytes`. */
export interface Download {
  contentType: string
  fileName: string
  sizeBytes: number
  open: () => Readable
}

const printable = /^[\x20-\x7e]+$/

/** Sends what is stored as a file to be saved. */
export const answerBytes = async (context: Koa.Context, { contentType, fileName, sizeBytes, open }: Download) => {
  // Koa sends no body to a HEAD, and would leave the stream open
  if (context.method !== 'HEAD') {
    const stream = open()
    // a store that is away shall be answered as such, and not by an answer that breaks off
    await once(stream, 'readable')
    context.body = stream
  }
  // never shown by a browser as a page of ours, whatever the source system sent
  context.attachment(fileName)
  context.set('content-type', printable.test(contentType) ? contentType : 'application/octet-stream')
  context.set('x-content-type-options', 'nosniff')
  context.length = sizeBytes
}
