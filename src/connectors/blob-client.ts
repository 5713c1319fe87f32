import { AnonymousCredential, ContainerClient, newPipeline, StorageSharedKeyCredential, type IHttpClient } from '@azure/storage-blob'
import { request as send, type Dispatcher } from 'undici'
import { DeliveryError, type AttemptContext, type Target } from './connector.ts'
import type { BlobConfig, BlobCredentials } from './blob-target.ts'
import type { EntraPrincipal, EntraTokens } from './entra-token.ts'
import { readAnswer } from './http-answer.ts'

type BlobTarget = Target<BlobConfig, BlobCredentials>

// an answer is a few hundred bytes of XML, or no answer of this service
const answerMaxBytes = 64 * 1024

/**
 * @param secrets what must be found in no message of this attempt; tokens join it
 * @throws DeliveryError where a secret would go over a line that anybody can read
 */
export const containerOf = (target: BlobTarget, tokens: EntraTokens, context: AttemptContext, secrets: string[]): ContainerClient => {
  const { config, credentials } = target
  const url = new URL(config.account_url)
  if (credentials.account_key === undefined && url.protocol !== 'https:') {
    throw new DeliveryError('tls_required', 'sas_token and client_secret need an account_url that begins with https', { permanent: true })
  }
  const container = `${url.origin}${url.pathname.replace(/\/$/, '')}/${config.container}`
  const sas = credentials.sas_token === undefined ? '' : `?${credentials.sas_token.replace(/^\?/, '')}`
  const credential =
    credentials.account_key === undefined
      ? new AnonymousCredential()
      : new StorageSharedKeyCredential(accountOf(url), credentials.account_key)
  return new ContainerClient(
    container + sas,
    newPipeline(credential, {
      httpClient: guardedClient(target, tokens, context, secrets),
      // only the workflow tries again
      retryOptions: { maxTries: 1 },
    }),
  )
}

/** The first label of the host, or, as emulators and appliances have it, the path. */
const accountOf = ({ hostname, pathname }: URL) => pathname.split('/')[1] || (hostname.split('.')[0] ?? '')

/**
 * Carries the SDK's requests through the outbound guard. The SDK's own client would open sockets by itself, use the proxies of the
 * environment and follow a redirect with the document and the credentials.
 */
const guardedClient = (target: BlobTarget, tokens: EntraTokens, context: AttemptContext, secrets: string[]): IHttpClient => ({
  sendRequest: async (request) => {
    const { connectTimeoutMs, idleTimeoutMs, outbound, signal } = context
    const principal = principalOf(target)
    if (principal) {
      // asked for each time: an upload may outlast a token
      const { token } = await tokens.take(principal, context)
      if (!secrets.includes(token)) secrets.push(token)
      request.headers.set('authorization', `Bearer ${token}`)
    }
    const response = await send(request.url, {
      method: request.method as Dispatcher.HttpMethod,
      headers: request.headers.rawHeaders(),
      body: request.body as Dispatcher.DispatchOptions['body'],
      signal: (request.abortSignal as AbortSignal | undefined) ?? signal,
      dispatcher: outbound.dispatcher({ connectTimeoutMs, caCertificate: target.config.ca_certificate }),
      headersTimeout: idleTimeoutMs,
      bodyTimeout: idleTimeoutMs,
    })
    if (principal && response.statusCode === 401) tokens.forget(principal)
    const bodyAsText = await readAnswer(response.body, { maxBytes: answerMaxBytes, timeoutMs: idleTimeoutMs, secrets: [] })
    if (response.statusCode >= 300 && response.statusCode < 400) {
      throw new DeliveryError(
        `http_${response.statusCode}`,
        `the host of account_url answered ${response.statusCode}, a redirect, which is not followed: change account_url`,
        { answer: { status: response.statusCode } },
      )
    }
    const headers = request.headers.clone()
    for (const name of headers.headerNames()) headers.remove(name)
    for (const [name, value] of Object.entries(response.headers)) headers.set(name, [value ?? ''].flat().join(', '))
    return { request, status: response.statusCode, headers, bodyAsText }
  },
})

/** The application we sign in as, where that is the way. */
export const principalOf = ({ config, credentials }: BlobTarget): EntraPrincipal | undefined => {
  const { tenant_id: tenantId, client_id: clientId, client_secret: clientSecret } = credentials
  if (tenantId === undefined || clientId === undefined || clientSecret === undefined) return undefined
  return { tenantId, clientId, clientSecret, authorityHost: authorityOf(config.account_url), scope: storageScope }
}

const storageScope = 'https://storage.azure.com/.default'

/** Where the application signs in: each national cloud has its own place. */
const authorityOf = (accountUrl: string): string => {
  const { hostname } = new URL(accountUrl)
  if (hostname.endsWith('.usgovcloudapi.net')) return 'https://login.microsoftonline.us'
  if (hostname.endsWith('.chinacloudapi.cn')) return 'https://login.chinacloudapi.cn'
  return 'https://login.microsoftonline.com'
}
