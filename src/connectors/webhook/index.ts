import { createHmac, type Hmac } from 'node:crypto'
import { Readable } from 'node:stream'
import { request } from 'undici'
import { newId } from '../../base/ids.ts'
import { hopsHeader } from '../../domain/headers.ts'
import { DeliveryError, type AttemptContext, type Connector, type Payload, type Target, type TargetAnswer } from '../connector.ts'
import { withDeliveryErrors } from '../shared/errors.ts'
import { contentTypeHeader, percentEncoded, readResponse } from '../shared/http.ts'
import { openPayload, trackConsumption } from '../shared/payload-stream.ts'
import { maskedUrl } from '../target.ts'
import { webhookError } from './errors.ts'
import {
  authorization,
  secretsOf,
  webhookConfig,
  webhookCredentials,
  webhookExample,
  type WebhookConfig,
  type WebhookCredentials,
} from './schema.ts'

type WebhookTarget = Target<WebhookConfig, WebhookCredentials>

interface Message {
  id: string
  contentType: string
  sizeBytes: number
  headers: Record<string, string>
  /** Opens the body at its beginning: once to sign it and once to send it. */
  open(onProgress?: AttemptContext['onProgress']): Readable
}

/**
 * Sends the document as one HTTP request. Every attempt of a delivery has the same `webhook-id`, which identifies a
 * repetition.
 */
export const webhook: Connector<WebhookConfig, WebhookCredentials> = {
  kind: 'webhook',
  isMessage: true,
  config: webhookConfig,
  credentials: webhookCredentials,
  boundKeys: ['url', 'ca_certificate'],
  // The secrets of the signature stay here.
  sendsCredentials: (credentials) => Object.keys(authorization(credentials)).length > 0,
  example: webhookExample,

  deliver: async (payload, target, context) => {
    const answer = await send(messageOf(payload, target, context), target, context)
    return { path: maskedUrl(target.config.url), bytesSent: payload.sizeBytes, answer }
  },

  probe: async (target, context) => {
    const { status } = await send(jsonMessage(`ping_${newId()}`, { type: 'ping' }), target, context)
    return `The target answered ${status} to a ping, a ${target.config.method} request with {"type":"ping"}, which was delivered to it. No document was sent.`
  },

  sendNotice: async ({ id, event }, target, context) => void (await send(jsonMessage(id, event), target, context)),
}

const jsonMessage = (id: string, value: unknown): Message => {
  const body = Buffer.from(JSON.stringify(value))
  return {
    id,
    contentType: 'application/json',
    sizeBytes: body.length,
    headers: {},
    open: () => Readable.from([body], { objectMode: false }),
  }
}

const messageOf = (payload: Payload, { config }: WebhookTarget, { signal }: AttemptContext): Message => {
  const body = bodyOf(payload, config.format)
  return {
    ...body,
    id: payload.messageId,
    headers: { ...payloadHeaders(payload), ...body.headers },
    open: (onProgress) => {
      const document = openPayload(payload, { signal, onProgress })
      return config.format === 'raw' ? document : Readable.from(body.wrap(document), { objectMode: false, signal })
    },
  }
}

const send = (message: Message, target: WebhookTarget, context: AttemptContext): Promise<TargetAnswer> => {
  const { config, credentials } = target
  const secrets = secretsOf(target)
  return withDeliveryErrors(context, secrets, async () => {
    const signingSecrets = [credentials.secret, credentials.previous_secret].filter((secret) => secret !== undefined)
    const signature = await signatureHeaders(message.id, new Date(), signingSecrets, () => message.open())

    const { body, isConsumed } = trackConsumption(message.open(context.onProgress), message.sizeBytes)
    const response = await request(config.url, {
      method: config.method,
      headers: {
        'user-agent': 'document-relay',
        [hopsHeader]: context.installationId,
        ...config.headers,
        ...(config.send_traceparent && context.traceparent !== undefined && { traceparent: context.traceparent }),
        ...authorization(credentials),
        ...message.headers,
        ...signature,
        'content-type': message.contentType,
        'content-length': String(message.sizeBytes),
      },
      body,
      signal: context.signal,
      dispatcher: context.outbound.dispatcher({ connectTimeoutMs: context.connectTimeoutMs, caCertificate: config.ca_certificate }),
      headersTimeout: context.idleTimeoutMs,
      bodyTimeout: context.idleTimeoutMs,
    })
    const answeredEarly = !isConsumed()
    const text = await readResponse(response.body, { maxBytes: context.answerMaxBytes, timeoutMs: context.idleTimeoutMs, secrets })
    const answer = { status: response.statusCode, body: text }
    if (response.statusCode < 200 || response.statusCode > 299) throw webhookError(response, answer)
    if (answeredEarly) throw new DeliveryError('answered_early', 'the target answered before it had read the whole document', { answer })
    return answer
  })
}

/** A request body whose exact length is known before the first byte is sent. */
interface Body {
  contentType: string
  sizeBytes: number
  headers: Record<string, string>
  /** Returns the bytes of the body, given those of the document. Identical each time. */
  wrap(document: Readable): AsyncIterable<Uint8Array>
}

const bodyOf = (payload: Payload, format: 'raw' | 'multipart' | 'json'): Body => {
  if (format === 'multipart') return multipart(payload)
  return format === 'json' ? json(payload) : raw(payload)
}

const raw = ({ contentType, sizeBytes, sha256 }: Payload): Body => ({
  contentType: contentTypeHeader(contentType),
  sizeBytes,
  headers: { 'content-digest': `sha-256=:${Buffer.from(sha256, 'hex').toString('base64')}:` },
  wrap: (document) => document,
})

const json = (payload: Payload): Body => {
  const head = Buffer.from(`{"type":"document","document":${JSON.stringify(metadataOf(payload))},"content":"`)
  const foot = Buffer.from('"}')
  return {
    contentType: 'application/json',
    sizeBytes: head.length + Math.ceil(payload.sizeBytes / 3) * 4 + foot.length,
    headers: {},
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
  const fileName = payload.path.slice(payload.path.lastIndexOf('/') + 1)
  const head = Buffer.from(
    [
      `--${boundary}`,
      'content-disposition: form-data; name="metadata"',
      'content-type: application/json',
      '',
      JSON.stringify(metadataOf(payload)),
      `--${boundary}`,
      `content-disposition: form-data; name="file"; filename="${fileName.replace(/["\r\n]/g, encodeURIComponent)}"`,
      `content-type: ${contentTypeHeader(payload.contentType)}`,
      '',
      '',
    ].join('\r\n'),
  )
  const foot = Buffer.from(`\r\n--${boundary}--\r\n`)
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    sizeBytes: head.length + payload.sizeBytes + foot.length,
    headers: {},
    wrap: async function* (document) {
      yield head
      yield* document as AsyncIterable<Buffer>
      yield foot
    },
  }
}

const metadataOf = (payload: Payload) => ({
  delivery_id: payload.deliveryId,
  document_id: payload.documentId,
  repo_id: payload.repoId,
  doc_id: payload.docId,
  comp_id: payload.compId,
  path: payload.path,
  content_type: payload.contentType,
  size_bytes: payload.sizeBytes,
  sha256: payload.sha256,
  received_at: payload.receivedAt.toISOString(),
})

const payloadHeaders = (payload: Payload): Record<string, string> => ({
  'x-relay-repo-id': percentEncoded(payload.repoId),
  'x-relay-doc-id': percentEncoded(payload.docId),
  'x-relay-comp-id': percentEncoded(payload.compId),
  'x-relay-document-id': percentEncoded(payload.documentId),
  'x-relay-path': percentEncoded(payload.path),
})

/**
 * Computes the Standard Webhooks headers. The signature covers `id.timestamp.` and the bytes of the body as they are
 * sent.
 * @param secrets each add one signature
 */
const signatureHeaders = async (
  id: string,
  now: Date,
  secrets: string[],
  openBody: () => AsyncIterable<Uint8Array>,
): Promise<Record<string, string>> => {
  const timestamp = String(Math.floor(now.getTime() / 1_000))
  const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp }
  if (secrets.length === 0) return headers

  const signers = secrets.map((secret): Hmac => createHmac('sha256', signingKey(secret)).update(`${id}.${timestamp}.`))
  for await (const chunk of openBody()) for (const signer of signers) signer.update(chunk)
  return { ...headers, 'webhook-signature': signers.map((signer) => `v1,${signer.digest('base64')}`).join(' ') }
}

const signingKey = (secret: string) =>
  secret.startsWith('whsec_') ? Buffer.from(secret.slice('whsec_'.length), 'base64') : Buffer.from(secret)
