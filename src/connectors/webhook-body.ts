import { createHmac, type Hmac } from 'node:crypto'
import type { Readable } from 'node:stream'
import type { Parcel } from './connector.ts'
import { contentTypeHeader, percentEncoded } from './percent-encoded.ts'

/** What is sent, known to the byte before the first one goes out. */
export interface Body {
  contentType: string
  sizeBytes: number
  headers: Record<string, string>
  /** The bytes around those of the document; the same each time. */
  wrap(document: Readable): AsyncIterable<Uint8Array>
}

export const bodyOf = (parcel: Parcel, format: 'raw' | 'multipart' | 'json'): Body => {
  if (format === 'multipart') return multipart(parcel)
  return format === 'json' ? json(parcel) : raw(parcel)
}

const raw = ({ contentType, sizeBytes, sha256 }: Parcel): Body => ({
  contentType: contentTypeHeader(contentType),
  sizeBytes,
  headers: { 'content-digest': `sha-256=:${Buffer.from(sha256, 'hex').toString('base64')}:` },
  wrap: (document) => document,
})

const json = (parcel: Parcel): Body => {
  const head = Buffer.from(`{"type":"document","document":${JSON.stringify(metadataOf(parcel))},"content":"`)
  const foot = Buffer.from('"}')
  return {
    contentType: 'application/json',
    sizeBytes: head.length + Math.ceil(parcel.sizeBytes / 3) * 4 + foot.length,
    headers: {},
    wrap: async function* (document) {
      yield head
      let rest: Buffer = Buffer.alloc(0)
      for await (const chunk of document as AsyncIterable<Buffer>) {
        const bytes = rest.length ? Buffer.concat([rest, chunk]) : chunk
        // base64 takes three bytes at a time: what is left over waits for the next chunk
        const whole = bytes.length - (bytes.length % 3)
        rest = bytes.subarray(whole)
        if (whole) yield Buffer.from(bytes.toString('base64', 0, whole), 'latin1')
      }
      yield Buffer.from(rest.toString('base64'), 'latin1')
      yield foot
    },
  }
}

const multipart = (parcel: Parcel): Body => {
  // from the delivery and the digest: it cannot lie inside the document by anyone's intent, and is the same when read twice
  const boundary = `relay-${createHmac('sha256', parcel.deliveryId).update(parcel.sha256).digest('hex').slice(0, 40)}`
  const fileName = parcel.path.slice(parcel.path.lastIndexOf('/') + 1)
  const head = Buffer.from(
    [
      `--${boundary}`,
      'content-disposition: form-data; name="metadata"',
      'content-type: application/json',
      '',
      JSON.stringify(metadataOf(parcel)),
      `--${boundary}`,
      `content-disposition: form-data; name="file"; filename="${fileName.replace(/["\r\n]/g, encodeURIComponent)}"`,
      `content-type: ${contentTypeHeader(parcel.contentType)}`,
      '',
      '',
    ].join('\r\n'),
  )
  const foot = Buffer.from(`\r\n--${boundary}--\r\n`)
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    sizeBytes: head.length + parcel.sizeBytes + foot.length,
    headers: {},
    wrap: async function* (document) {
      yield head
      yield* document as AsyncIterable<Buffer>
      yield foot
    },
  }
}

const metadataOf = (parcel: Parcel) => ({
  delivery_id: parcel.deliveryId,
  document_id: parcel.documentId,
  repo_id: parcel.repoId,
  doc_id: parcel.docId,
  comp_id: parcel.compId,
  path: parcel.path,
  content_type: parcel.contentType,
  size_bytes: parcel.sizeBytes,
  sha256: parcel.sha256,
  received_at: parcel.receivedAt.toISOString(),
})

export const parcelHeaders = (parcel: Parcel): Record<string, string> => ({
  'x-relay-repo-id': percentEncoded(parcel.repoId),
  'x-relay-doc-id': percentEncoded(parcel.docId),
  'x-relay-comp-id': percentEncoded(parcel.compId),
  'x-relay-document-id': percentEncoded(parcel.documentId),
  'x-relay-path': percentEncoded(parcel.path),
})

/**
 * The Standard Webhooks headers. The signature covers `id.timestamp.` and the bytes of the body as sent.
 * @param secrets the first signs, a second one signs beside it
 */
export const signatureHeaders = async (
  id: string,
  now: Date,
  secrets: string[],
  body: () => AsyncIterable<Uint8Array>,
): Promise<Record<string, string>> => {
  const timestamp = String(Math.floor(now.getTime() / 1_000))
  const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp }
  if (secrets.length === 0) return headers

  const signers = secrets.map((secret): Hmac => createHmac('sha256', keyOf(secret)).update(`${id}.${timestamp}.`))
  for await (const chunk of body()) for (const signer of signers) signer.update(chunk)
  return { ...headers, 'webhook-signature': signers.map((signer) => `v1,${signer.digest('base64')}`).join(' ') }
}

const keyOf = (secret: string) => (secret.startsWith('whsec_') ? Buffer.from(secret.slice('whsec_'.length), 'base64') : Buffer.from(secret))
