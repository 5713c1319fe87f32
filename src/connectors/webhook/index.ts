import type { IncomingHttpHeaders } from 'node:http'
import { request } from 'undici'
import { messageOf } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import { withoutSecrets } from '../../base/secrets.ts'
import { plainText } from '../../base/text.ts'
import { hopsHeader } from '../../domain/headers.ts'
import { DeliveryError, type AttemptContext, type Connector, type Target, type TargetAnswer } from '../connector.ts'
import { createTokenCache } from '../shared/access-tokens.ts'
import { certificateExpiresAt } from '../shared/client-certificate.ts'
import { clientPrincipalOf, createClientTokens, type ClientTokens } from '../shared/client-credentials.ts'
import { toDeliveryError, withDeliveryErrors } from '../shared/errors.ts'
import { clientCertificateOf, signsIn, withSignIn } from '../shared/http-sign-in.ts'
import { readResponse } from '../shared/http.ts'
import { during } from '../shared/operation.ts'
import { trackConsumption } from '../shared/payload-stream.ts'
import { webhookError } from './errors.ts'
import { documentMessage, metadataMessage, noticeMessage, pingMessage, signedHeaders, type Message } from './message.ts'
import {
  secretsOf,
  signingSecretsOf,
  webhookConfig,
  webhookCredentials,
  webhookExample,
  type WebhookConfig,
  type WebhookCredentials,
} from './schema.ts'

type WebhookTarget = Target<WebhookConfig, WebhookCredentials>

/**
 * Sends the document as one HTTP request. Every attempt of a delivery has the same `webhook-id`, which identifies a
 * repetition.
 */
export const createWebhook = (tokenCache = createTokenCache()): Connector<WebhookConfig, WebhookCredentials> => {
  const tokens = createClientTokens(tokenCache)
  return {
    kind: 'webhook',
    isMessage: true,
    config: webhookConfig,
    credentials: webhookCredentials,
    boundKeys: ['url', 'ca_certificate'],
    // The secrets of the signature stay here.
    sendsCredentials: signsIn,
    credentialsExpireAt: certificateExpiresAt,
    example: webhookExample,

    deliver: async (payload, target, context) => {
      const answer = await send(documentMessage(payload, target.config, context), target, context, tokens)
      return { path: payload.path, bytesSent: payload.sizeBytes, answer }
    },

    updateMetadata: async (copy, target, context) => void (await send(metadataMessage(copy), target, context, tokens)),

    probe: async (target, context) => {
      const principal = clientPrincipalOf(target.credentials)
      // Test the credentials instead of a token that was issued for them earlier.
      if (principal) tokens.invalidate(principal)
      const { notice_format: form } = target.config
      const message = pingMessage(`ping_${newId()}`, form)
      const { status } = await send(message, target, context, tokens)
      if (form !== 'standard_webhooks')
        return `The target answered ${status} to a message that says that it is a test. Look into the chat if it is there.`
      return `The target answered ${status} to a ping, a ${target.config.method} request with {"type":"ping"}, which was delivered to it. No document was sent: that it takes documents in the form ${target.config.format}, and of their size, was not tried.`
    },

    sendNotice: async (notice, target, context) =>
      void (await send(noticeMessage(notice, target.config.notice_format), target, context, tokens)),
  }
}

const send = (message: Message, target: WebhookTarget, context: AttemptContext, tokens: ClientTokens): Promise<TargetAnswer> => {
  const { credentials } = target
  const secrets = secretsOf(target)
  const attempt = () =>
    withSignIn(tokens, credentials, { context, secrets }, (authorized) => {
      const { method = target.config.method } = message
      const { url } = target.config
      // The rest of the address may contain a key.
      const operation = `${method} of ${message.name} to ${new URL(url).origin}`
      return during(operation, () => sendOnce(message, target, context, { authorized, secrets }))
    })
  return withDeliveryErrors(context, secrets, attempt, (thrown) => networkError(thrown, credentials))
}

/** Adds what a server that demands a certificate need not say: some close the connection, and in TLS 1.3 that may overtake the reason. */
const networkError = (thrown: unknown, credentials: WebhookCredentials): DeliveryError => {
  const error = toDeliveryError(thrown, 'request_failed')
  if (error.code !== 'connection_lost' || !clientCertificateOf(credentials)) return error
  return error.reworded(thrown, (message) => `${message}; it may have refused the client certificate`)
}

const sendOnce = async (
  message: Message,
  { config, credentials }: WebhookTarget,
  context: AttemptContext,
  { authorized, secrets }: { authorized: Record<string, string>; secrets: string[] },
): Promise<TargetAnswer> => {
  const clientCertificate = clientCertificateOf(credentials)
  if (clientCertificate && new URL(config.url).protocol !== 'https:') {
    throw new DeliveryError('config_invalid', 'client_certificate needs an https url; correct url, or save the credentials without it')
  }
  const { method = config.method } = message
  const nowMs = Date.now()
  const signed = await signedHeaders(message, { method, secrets: signingSecretsOf(credentials, nowMs), nowMs })

  const { body, isConsumed } = trackConsumption(message.open(context.onProgress), message.sizeBytes)
  const { connectTimeoutMs, idleTimeoutMs } = context
  const response = await request(config.url, {
    method,
    headers: {
      'user-agent': 'document-relay',
      [hopsHeader]: context.installationId,
      ...config.headers,
      ...authorized,
      ...signed,
    },
    body,
    signal: context.signal,
    dispatcher: context.outbound.dispatcher({ connectTimeoutMs, caCertificate: config.ca_certificate, clientCertificate }),
    headersTimeout: idleTimeoutMs,
    bodyTimeout: idleTimeoutMs,
  })
  const answeredEarly = !isConsumed()
  let note: string | undefined
  const onBroken = (thrown: unknown) => {
    note = `the answer broke off after its status (${messageOf(thrown)})`
  }
  const text = await readResponse(response.body, {
    maxBytes: context.answerMaxBytes,
    timeoutMs: idleTimeoutMs,
    secrets,
    encoding: response.headers['content-encoding'],
    onBroken,
  })
  const answer = {
    status: response.statusCode,
    ...namesIn(response.headers, text, secrets),
    body: text,
    ...(note !== undefined && { note }),
  }
  if (response.statusCode < 200 || response.statusCode > 299) throw webhookError(response, answer)
  if (answeredEarly) throw new DeliveryError('answered_early', 'the target answered before it had read the whole document', { answer })
  return answer
}

const nameMaxCharacters = 200
const namingHeaders = ['location', 'etag', 'x-request-id']

/** Returns what the receiver calls what it has taken: headers of its answer, and `id` of an answer that is a JSON object. */
const namesIn = (headers: IncomingHttpHeaders, text: string, secrets: string[]): Record<string, string> => {
  const names: Record<string, unknown> = Object.fromEntries(
    namingHeaders.map((name) => [name.replace(/^x-/, '').replace('-', '_'), headers[name]]),
  )
  names['id'] = idIn(text)
  return Object.fromEntries(
    Object.entries(names).flatMap(([name, value]) =>
      typeof value === 'string' || typeof value === 'number'
        ? [[name, plainText(withoutSecrets(String(value), secrets), nameMaxCharacters)]]
        : [],
    ),
  )
}

const idIn = (text: string): unknown => {
  try {
    return (JSON.parse(text) as { id?: unknown } | null)?.id
  } catch {
    return undefined
  }
}
