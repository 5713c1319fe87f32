import { createHash, createHmac } from 'node:crypto'
import { Readable } from 'node:stream'
import { decodeHeader } from '../../content-server/encoding.ts'
import { sendableContentType } from '../../domain/content-type.ts'
import { fileNameOf } from '../../domain/file-name.ts'
import type { AttemptContext, DeliveredCopy, NoticeMessage, Payload } from '../connector.ts'
import { documentHeaders } from '../shared/http.ts'
import { openPayload } from '../shared/payload-stream.ts'
import { chatBody, type NoticeFormat } from './chat.ts'
import type { WebhookConfig } from './schema.ts'

/** What is sent as one request. */
export interface Message {
  id: string
  /** What is sent, for the operator: the path of a document, or the type of another message. */
  name: string
  contentType: string
  sizeBytes: number
  /** SHA-256 of the body, if it is known before the body is read. */
  digest?: Buffer | undefined
  headers: Record<string, string>
  /** Only for a message whose receiver takes one method, whatever `method` says. */
  method?: 'POST'
  signatures: WebhookConfig['signatures']
  /** Opens the body at its beginning: to send it, and before that to sign it, if a signature covers what is not known of it. */
  open(onProgress?: AttemptContext['onProgress']): Readable
}

interface Small {
  /** What is sent, as `x-relay-event-type` says. */
  type: string
  workspace?: string | undefined
}

/** Returns a small object as a message: it lies in memory, so both forms of signatures cost nothing. */
const smallMessage = (id: string, value: object, { type, workspace }: Small): Message => {
  const body = Buffer.from(JSON.stringify(value))
  return {
    id,
    name: type,
    contentType: 'application/json',
    sizeBytes: body.length,
    digest: createHash('sha256').update(body).digest(),
    headers: { 'x-relay-event-type': type, ...(workspace !== undefined && { 'x-relay-workspace': workspace }) },
    signatures: 'both',
    open: () => Readable.from([body], { objectMode: false }),
  }
}

/** Returns a notice or an event, in the form that the receiver takes. */
export const noticeMessage = (notice: NoticeMessage, format: NoticeFormat): Message => {
  const { id, workspace, event } = notice
  if (format === 'standard_webhooks') return smallMessage(id, event, { type: event.type, workspace })
  return { ...smallMessage(id, chatBody(format, notice), { type: event.type, workspace }), method: 'POST' }
}

const pingText = 'Document Relay tests this address. No incident has begun.'

/** Returns the message of a test of the destination, in the form that its receiver takes. */
export const pingMessage = (id: string, format: NoticeFormat): Message => {
  const event = { type: 'ping' }
  if (format === 'standard_webhooks') return smallMessage(id, event, event)
  const notice = { subject: pingText, text: pingText, event: { ...event, timestamp: new Date().toISOString(), data: {} } }
  return { ...smallMessage(id, chatBody(format, notice), event), method: 'POST' }
}

/** Returns a message about business data of a document that was sent before. */
export const metadataMessage = (copy: DeliveredCopy): Message => ({
  ...smallMessage(copy.messageId, eventOf(copy), { type: metadataType, workspace: copy.workspace }),
  name: `the business data of ${copy.path}`,
})

const metadataType = 'document.metadata'

const eventOf = (copy: DeliveredCopy) => ({
  type: metadataType,
  timestamp: copy.foundAt.toISOString(),
  data: { ...idsOf(copy), path: copy.path, received_at: copy.receivedAt.toISOString() },
})

export const documentMessage = (payload: Payload, { format, signatures }: WebhookConfig, { signal }: AttemptContext): Message => {
  const body = bodyOf(payload, format)
  return {
    ...body,
    id: payload.messageId,
    name: payload.path,
    headers: documentHeaders(payload, sentName(payload)),
    signatures,
    open: (onProgress) => {
      const document = openPayload(payload, { signal, onProgress })
      return format === 'raw' ? document : Readable.from(body.wrap(document), { objectMode: false, signal })
    },
  }
}

/** A request body whose exact length is known before the first byte is sent. */
interface Body {
  contentType: string
  sizeBytes: number
  digest?: Buffer
  /** Returns the bytes of the body, given those of the document. Identical each time. */
  wrap(document: Readable): AsyncIterable<Uint8Array>
}

const bodyOf = (payload: Payload, format: 'raw' | 'multipart' | 'json'): Body => {
  if (format === 'multipart') return multipart(payload)
  return format === 'json' ? json(payload) : raw(payload)
}

const raw = ({ contentType, sizeBytes, sha256 }: Payload): Body => ({
  contentType: sendableContentType(contentType),
  sizeBytes,
  digest: Buffer.from(sha256, 'hex'),
  wrap: (document) => document,
})

const json = (payload: Payload): Body => {
  const head = Buffer.from(`{"type":"document","document":${JSON.stringify(metadataOf(payload))},"content":"`)
  const foot = Buffer.from('"}')
  return {
    contentType: 'application/json',
    sizeBytes: head.length + Math.ceil(payload.sizeBytes / 3) * 4 + foot.length,
    wrap: async function* (document) {
      yield head
      let rest: Buffer = Buffer.alloc(0)
      for await (const chunk of document as AsyncIterable<Buffer>) {
        const bytes = rest.length ? Buffer.concat([rest, chunk]) : chunk
        // Base64 encodes three bytes at a time. The remainder is encoded with the next chunk.
        const encodable = bytes.length - (bytes.length % 3)
        rest = bytes.subarray(encodable)
        if (encodable) yield Buffer.from(bytes.toString('base64', 0, encodable), 'latin1')
      }
      yield Buffer.from(rest.toString('base64'), 'latin1')
      yield foot
    },
  }
}

const multipart = (payload: Payload): Body => {
  // Derived from delivery and digest: a sender cannot put the boundary into a document on purpose, and both readings of the
  // body have the same one.
  const boundary = `relay-${createHmac('sha256', payload.deliveryId).update(payload.sha256).digest('hex').slice(0, 40)}`
  const head = Buffer.from(
    [
      `--${boundary}`,
      'content-disposition: form-data; name="metadata"',
      'content-type: application/json',
      '',
      JSON.stringify(metadataOf(payload)),
      `--${boundary}`,
      `content-disposition: form-data; name="file"; filename="${sentName(payload).replace(/["\r\n]/g, encodeURIComponent)}"`,
      `content-type: ${sendableContentType(payload.contentType)}`,
      '',
      '',
    ].join('\r\n'),
  )
  const foot = Buffer.from(`\r\n--${boundary}--\r\n`)
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    sizeBytes: head.length + payload.sizeBytes + foot.length,
    wrap: async function* (document) {
      yield head
      yield* document as AsyncIterable<Buffer>
      yield foot
    },
  }
}

const sentName = (payload: Payload) => fileNameOf(payload, payload.path.slice(payload.path.lastIndexOf('/') + 1))

const idsOf = (copy: Omit<DeliveredCopy, 'messageId' | 'foundAt' | 'location'>) => ({
  delivery_id: copy.deliveryId,
  document_id: copy.documentId,
  repo_id: copy.repoId,
  doc_id: copy.docId,
  comp_id: copy.compId,
  erp_object_type: copy.erpObjectType,
  erp_object_id: copy.erpObjectId,
  ar_object: copy.arObject,
  file_name: copy.fileName,
  description: copy.description,
  fields: copy.fields,
})

const metadataOf = (payload: Payload) => ({
  ...idsOf(payload),
  path: payload.path,
  content_type: decodeHeader(payload.contentType),
  size_bytes: payload.sizeBytes,
  sha256: payload.sha256,
  received_at: payload.receivedAt.toISOString(),
  ...(payload.again > 0 && { again: payload.again }),
})

interface SignedRequest {
  method: string
  /** Each adds one signature of every kind. */
  secrets: string[]
  nowMs: number
}

/**
 * Returns the headers of a message, with its signatures. Reads the body only if a signature covers its bytes (Standard Webhooks), or its
 * digest, if that is not known.
 */
export const signedHeaders = async (message: Message, { method, secrets, nowMs }: SignedRequest): Promise<Record<string, string>> => {
  const seconds = String(Math.floor(nowMs / 1_000))
  const { signatures } = message
  const keys = secrets.map(signingKey)
  const overBytes = signatures === 'http_message' ? [] : keys.map((key) => createHmac('sha256', key).update(`${message.id}.${seconds}.`))
  const overDigest = signatures === 'standard_webhooks' ? [] : keys
  const hash = overDigest.length > 0 && message.digest === undefined ? createHash('sha256') : undefined
  const readers = hash ? [...overBytes, hash] : overBytes
  if (readers.length > 0) for await (const chunk of message.open()) for (const reader of readers) reader.update(chunk as Uint8Array)

  const digest = message.digest ?? hash?.digest()
  const covered = {
    'content-type': message.contentType,
    ...(digest && { 'content-digest': `sha-256=:${digest.toString('base64')}:` }),
    'webhook-id': message.id,
    ...message.headers,
  }
  return {
    ...covered,
    'content-length': String(message.sizeBytes),
    'webhook-timestamp': seconds,
    ...(overBytes.length > 0 && { 'webhook-signature': overBytes.map((hmac) => `v1,${hmac.digest('base64')}`).join(' ') }),
    ...(overDigest.length > 0 && httpSignatures(method, covered, overDigest, seconds)),
  }
}

const signingKey = (secret: string) =>
  secret.startsWith('whsec_') ? Buffer.from(secret.slice('whsec_'.length), 'base64') : Buffer.from(secret)

/**
 * Computes the headers of HTTP Message Signatures (RFC 9421). The address is not covered: a gateway before the receiver may change it, and
 * Standard Webhooks does not cover it either.
 */
const httpSignatures = (method: string, covered: Record<string, string>, keys: Buffer[], created: string) => {
  const components = [['@method', method], ...Object.entries(covered)]
  const lines = components.map(([name, value]) => `"${name}": ${value!.trim()}`)
  const names = components.map(([name]) => `"${name}"`).join(' ')
  const signed = keys.map((key, index) => {
    const parameters = `(${names});created=${created};keyid="${keyIdOf(key)}";alg="hmac-sha256"`
    const base = [...lines, `"@signature-params": ${parameters}`].join('\n')
    return { label: labels[index], parameters, signature: createHmac('sha256', key).update(base).digest('base64') }
  })
  return {
    'signature-input': signed.map(({ label, parameters }) => `${label}=${parameters}`).join(', '),
    signature: signed.map(({ label, signature }) => `${label}=:${signature}:`).join(', '),
  }
}

// Labels of the signatures with `secret` and `previous_secret`.
const labels = ['relay', 'relay_previous']

const keyIdCharacters = 16

/** Tells a receiver which of its keys to use while the secret is changed. */
const keyIdOf = (key: Buffer) => createHash('sha256').update(key).digest('hex').slice(0, keyIdCharacters)
