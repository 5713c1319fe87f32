import { Readable } from 'node:stream'
import { request } from 'undici'
import { newId } from '../../base/ids.ts'
import { hopsHeader } from '../../domain/headers.ts'
import { DeliveryError, type AttemptContext, type Connector, type Payload, type Target, type TargetAnswer } from '../connector.ts'
import { withDeliveryErrors } from '../shared/errors.ts'
import { readResponse } from '../shared/http.ts'
import { openPayload, trackConsumption } from '../shared/payload-stream.ts'
import { maskedUrl } from '../target.ts'
import { bodyOf, payloadHeaders, signatureHeaders } from './body.ts'
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
    id: payload.deliveryId,
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
