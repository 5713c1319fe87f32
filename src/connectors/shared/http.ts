import { pipeline, type Readable } from 'node:stream'
import { createBrotliDecompress, createInflate, createGunzip } from 'node:zlib'
import { withoutSecrets } from '../../base/secrets.ts'
import { decodeHeader } from '../../content-server/encoding.ts'
import { decodeText } from '../../domain/decoded-text.ts'
import type { Payload } from '../connector.ts'

// Reading up to this many further bytes keeps the connection alive. Beyond that, a new connection is cheaper.
const discardMaxBytes = 64 * 1024

/**
 * Reads the beginning of a response body as text. Never throws: a body that breaks off, or drips for longer than
 * `timeoutMs`, is cut, since its status is already known.
 * @param encoding the content encoding of the response. Some servers compress unasked
 * @param secrets are redacted, since a target may echo them
 * @param contentType of the response, if its text may be in another encoding than UTF-8: then the bytes are decoded as it or the XML declares
 * @param onBroken is called with the reason if the response did not come whole
 */
export const readResponse = async (
  body: Readable,
  {
    maxBytes,
    timeoutMs,
    secrets,
    encoding,
    contentType,
    onBroken,
  }: {
    maxBytes: number
    timeoutMs: number
    secrets: string[]
    onBroken?: (thrown: unknown) => void
    encoding?: string | string[] | undefined
    contentType?: string
  },
): Promise<string> => {
  const timer = setTimeout(() => body.destroy(), timeoutMs)
  const kept: Buffer[] = []
  let [keptBytes, allBytes] = [0, 0]
  let isComplete = false
  try {
    for await (const chunk of decoded(body, encoding) as AsyncIterable<Buffer>) {
      const head = chunk.subarray(0, maxBytes - keptBytes)
      kept.push(head)
      keptBytes += head.length
      allBytes += chunk.length
      if (allBytes > maxBytes + discardMaxBytes) break
    }
    isComplete = keptBytes === allBytes
  } catch (thrown) {
    // Keep the bytes that have arrived.
    onBroken?.(thrown)
  } finally {
    clearTimeout(timer)
  }
  const bytes = Buffer.concat(kept)
  const text = contentType === undefined ? bytes.toString('utf8') : decodeText(bytes, contentType).text
  return withoutSecrets(text.replaceAll('\0', '\uFFFD'), secrets, { isCut: !isComplete })
}

const decoders: Record<string, () => NodeJS.ReadWriteStream> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

/** Returns the body without its encoding, empty if the encoding is not known: its bytes are no text. */
const decoded = (body: Readable, encoding: string | string[] = ''): AsyncIterable<unknown> => {
  const names = [encoding]
    .flat()
    .join()
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
  const applied = names.filter((name) => name !== '' && name !== 'identity')
  if (applied.length === 0) return body
  const decoder = applied.length === 1 ? decoders[applied[0]!]?.() : undefined
  if (decoder) return pipeline(body, decoder, () => {})
  body.on('error', () => {}).destroy()
  return (async function* () {})()
}

// Leading and trailing blanks would be lost in transit, and a literal percent sign would be decoded.
const unsafeInHeader = /[^\x20-\x7e]+|%|^ +| +$/g

/**
 * Percent-encodes everything that is not printable ASCII, so that the receiver can restore the text with
 * decodeURIComponent.
 */
export const percentEncoded = (text: string) => text.toWellFormed().replace(unsafeInHeader, encodeURIComponent)

// A line of a mail has at most 998 characters with its name, and such a value cannot be folded (RFC 5322, 2.1.1).
const valueMaxCharacters = 900
// Tomcat accepts 8 KiB for all headers of a request. This leaves half of it to credentials, signatures and gateways.
const totalMaxCharacters = 4_096

/**
 * Returns what is known of a document as headers, by which a receiver can route without reading the body. Percent-encoded. A value that is
 * too long is left out, because a part of it would be another value; so is one for which all of them leave no room.
 */
export const documentHeaders = (payload: Payload, fileName: string): Record<string, string> => {
  const values: [name: string, value: string | number | null][] = [
    ['x-relay-event-type', 'document'],
    ['x-relay-workspace', payload.workspace],
    ['x-relay-connection-id', payload.connectionId],
    ['x-relay-delivery-id', payload.deliveryId],
    ['x-relay-attempt', payload.attempt],
    ['x-relay-again', payload.again === 0 ? null : payload.again],
    ['x-relay-document-id', payload.documentId],
    ['x-relay-sha256', payload.sha256],
    ['x-relay-repo-id', payload.repoId],
    ['x-relay-doc-id', payload.docId],
    ['x-relay-comp-id', payload.compId],
    ['x-relay-path', payload.path],
    ['x-relay-object-type', payload.erpObjectType],
    ['x-relay-object-id', payload.erpObjectId],
    ['x-relay-ar-object', payload.arObject],
    ['x-relay-file-name', fileName],
    ['x-relay-description', payload.description],
    ['x-relay-content-type', decodeHeader(payload.contentType)],
    ...Object.entries(payload.fields).map(([name, value]): [string, string] => [`x-relay-field-${name.replaceAll('_', '-')}`, value]),
  ]
  const headers: Record<string, string> = {}
  let characters = 0
  for (const [name, value] of values) {
    const encoded = percentEncoded(String(value ?? ''))
    const added = `${name}: ${encoded}\r\n`.length
    if (encoded === '' || encoded.length > valueMaxCharacters || characters + added > totalMaxCharacters) continue
    characters += added
    headers[name] = encoded
  }
  return headers
}
