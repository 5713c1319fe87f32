import { STATUS_CODES } from 'node:http'
import { Readable } from 'node:stream'
import { request } from 'undici'
import { newId } from '../ids.ts'
import { DeliveryError, type AttemptContext, type Connector, type Parcel, type Target, type TargetAnswer } from './connector.ts'
import { counted } from './counted.ts'
import { isPermanentStatus, readAnswer, retryAfterMs } from './http-answer.ts'
import { metered } from './metered.ts'
import { reporting } from './reporting.ts'
import { bodyOf, parcelHeaders, signatureHeaders } from './webhook-body.ts'
import {
  authorization,
  secretsOf,
  webhookConfig,
  webhookCredentials,
  type WebhookConfig,
  type WebhookCredentials,
} from './webhook-target.ts'

type WebhookTarget = Target<WebhookConfig, WebhookCredentials>

interface Message {
  id: string
  contentType: string
  sizeBytes: number
  headers: Record<string, string>
  /** Reads the body from its beginning, once to sign it and once to send it. */
  open(onBytes?: (bytes: number) => void): Readable
}

/** Sends the document as one HTTP request. The receiver recognises a repetition by `webhook-id`, which every attempt of a delivery carries. */
export const webhook: Connector<WebhookConfig, WebhookCredentials> = {
  kind: 'webhook',
  isMessage: true,
  config: webhookConfig,
  credentials: webhookCredentials,

  deliver: async (parcel, target, context) => {
    const answer = await send(messageOf(parcel, target, context), target, context)
    return { path: shown(target.config.url), bytesSent: parcel.sizeBytes, answer }
  },

  probe: async (target, context) => {
    const ping = Buffer.from('{"type":"ping"}')
    const message: Message = {
      id: `ping_${newId()}`,
      contentType: 'application/json',
      sizeBytes: ping.length,
      headers: {},
      open: () => Readable.from([ping], { objectMode: false }),
    }
    await send(message, target, context)
  },
}

const messageOf = (parcel: Parcel, { config }: WebhookTarget, { signal }: AttemptContext): Message => {
  const body = bodyOf(parcel, config.format)
  return {
    ...body,
    id: parcel.deliveryId,
    headers: { ...parcelHeaders(parcel), ...body.headers },
    open: (onBytes) => {
      const document = metered(parcel.open(), { sizeBytes: parcel.sizeBytes, signal, ...(onBytes && { onBytes }) })
      return config.format === 'raw' ? document : Readable.from(body.wrap(document), { objectMode: false, signal })
    },
  }
}

const send = (message: Message, target: WebhookTarget, context: AttemptContext): Promise<TargetAnswer> => {
  const { config, credentials } = target
  const secrets = secretsOf(credentials)
  return reporting(context, secrets, async () => {
    const signingKeys = [credentials.secret, credentials.previous_secret].filter((secret) => secret !== undefined)
    const signature = await signatureHeaders(message.id, new Date(), signingKeys, () => message.open())

    const { body, isTaken } = counted(message.open(context.onProgress), message.sizeBytes)
    const response = await request(config.url, {
      method: config.method,
      headers: {
        'user-agent': 'document-relay',
        ...config.headers,
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
    const answeredEarly = !isTaken()
    const text = await readAnswer(response.body, { maxBytes: context.answerMaxBytes, timeoutMs: context.idleTimeoutMs, secrets })
    const answer = { status: response.statusCode, body: text }
    if (response.statusCode < 200 || response.statusCode > 299) throw refusal(response, answer)
    if (answeredEarly) throw new DeliveryError('answered_early', 'the target answered before it had taken the whole document', { answer })
    return answer
  })
}

const refusal = (
  { statusCode, headers }: { statusCode: number; headers: Record<string, string | string[] | undefined> },
  answer: TargetAnswer,
) => {
  const said = `the target answered ${statusCode} ${STATUS_CODES[statusCode] ?? ''}`.trimEnd()
  if (statusCode >= 300 && statusCode < 400) {
    const location = typeof headers.location === 'string' && URL.canParse(headers.location) ? ` to ${shown(headers.location)}` : ''
    return new DeliveryError(
      `http_${statusCode}`,
      `${said}, a redirect${location}, which is not followed: change the URL of the destination`,
      { answer },
    )
  }
  if (statusCode === 401) {
    return new DeliveryError('credentials_refused', `${said}: it does not take the credentials of the destination`, {
      permanent: true,
      answer,
    })
  }
  return new DeliveryError(`http_${statusCode}`, said, {
    permanent: isPermanentStatus(statusCode),
    retryAfterMs: retryAfterMs(headers['retry-after'], new Date()),
    answer,
  })
}

/** An address without its query, which may hold a key. */
const shown = (url: string) => {
  const { origin, pathname } = new URL(url)
  return origin + pathname
}
