import { Readable } from 'node:stream'
import {
  AnonymousCredential,
  ContainerClient,
  newPipeline,
  StorageSharedKeyCredential,
  type IHttpClient,
  type Pipeline,
} from '@azure/storage-blob'
import { request as send, type Dispatcher } from 'undici'
import { DeliveryError, type AttemptContext, type Target } from '../connector.ts'
import { entraPrincipalOf, type EntraPrincipal, type EntraTokens } from '../shared/entra-tokens.ts'
import { readResponse } from '../shared/http.ts'
import { during } from '../shared/operation.ts'
import { withoutEvidence } from './errors.ts'
import { operationOfRequest } from './operation.ts'
import { isRetained } from './retention.ts'
import type { BlobConfig, BlobCredentials } from './schema.ts'

type BlobTarget = Target<BlobConfig, BlobCredentials>

// A response of the service is a few hundred bytes of XML.
const responseMaxBytes = 64 * 1024

/**
 * Creates an SDK client for the container, for one attempt.
 * @param secrets are the strings that no message of this attempt may contain. Tokens are added to it.
 */
export const createContainerClient = (
  target: BlobTarget,
  tokens: EntraTokens,
  context: AttemptContext,
  secrets: string[],
): ContainerClient => {
  const { config, credentials } = target
  const url = new URL(config.account_url)
  const container = `${url.origin}${url.pathname.replace(/\/$/, '')}/${config.container}`
  const sas = credentials.sas_token === undefined ? '' : `?${credentials.sas_token.replace(/^\?/, '')}`
  const credential =
    credentials.account_key === undefined
      ? new AnonymousCredential()
      : new StorageSharedKeyCredential(accountNameOf(url), credentials.account_key)
  const pipeline = newPipeline(credential, {
    httpClient: createHttpClient(target, tokens, context, secrets),
    // Only the workflow retries.
    retryOptions: { maxTries: 1 },
  })
  pipeline.factories.unshift(oldestVersion(isRetained(config)))
  return new ContainerClient(container + sas, pipeline)
}

// The oldest versions of the service that have what is used: tokens of Entra, index tags, and the retention of a blob. The SDK names the newest one, which emulators, appliances
// and public Azure itself refuse until they know it.
const serviceVersion = '2017-11-09'
const versionWithTags = '2019-12-12'
const versionWithRetention = '2020-06-12'

/** Sets the version of the service before the request is signed. */
const oldestVersion = (retains: boolean): Pipeline['factories'][number] => ({
  create: (next) => ({
    sendRequest: (request) => {
      const usesTags = request.headers.contains('x-ms-tags') || new URL(request.url).searchParams.get('comp') === 'tags'
      request.headers.set('x-ms-version', retains ? versionWithRetention : usesTags ? versionWithTags : serviceVersion)
      return next.sendRequest(request)
    },
  }),
})

/** Returns the path, which emulators and appliances use for the account name, or the first label of the host. */
const accountNameOf = ({ hostname, pathname }: URL) => pathname.split('/')[1] || (hostname.split('.')[0] ?? '')

/**
 * Sends the SDK's requests through the outbound guard. The SDK's own client would open sockets itself, use the proxies
 * of the environment, and follow redirects with document and credentials.
 */
const createHttpClient = (target: BlobTarget, tokens: EntraTokens, context: AttemptContext, secrets: string[]): IHttpClient => ({
  sendRequest: async (request) => {
    const principal = principalOf(target, context)
    // For each request, since an upload may outlast a token.
    const token = principal && (await tokens.get(principal, context)).token
    if (token !== undefined) {
      if (!secrets.includes(token)) secrets.push(token)
      request.headers.set('authorization', `Bearer ${token}`)
    }
    const { response, ...body } = await during(operationOfRequest(request), () => exchange(request, target, context))
    if (principal && response.statusCode === 401) tokens.invalidate(principal, token)
    const headers = request.headers.clone()
    for (const name of headers.headerNames()) headers.remove(name)
    for (const [name, value] of Object.entries(response.headers)) headers.set(name, [value ?? ''].flat().join(', '))
    return { request, status: response.statusCode, headers, ...body }
  },
})

/** Sends a request and reads the answer. @throws DeliveryError for an answer that the service does not give */
const exchange = async (
  request: Parameters<IHttpClient['sendRequest']>[0],
  { config }: BlobTarget,
  { connectTimeoutMs, idleTimeoutMs, outbound, signal }: AttemptContext,
) => {
  const response = await send(request.url, {
    method: request.method as Dispatcher.HttpMethod,
    headers: request.headers.rawHeaders(),
    body: Buffer.isBuffer(request.body) ? streamOf(request.body) : (request.body as Dispatcher.DispatchOptions['body']),
    signal: (request.abortSignal as AbortSignal | undefined) ?? signal,
    dispatcher: outbound.dispatcher({ connectTimeoutMs, caCertificate: config.ca_certificate }),
    headersTimeout: idleTimeoutMs,
    bodyTimeout: idleTimeoutMs,
  })
  const { statusCode: status } = response
  const evidence = response.headers['x-ms-request-id']
  if (request.streamResponseStatusCodes?.has(status) && evidence !== undefined) return { response, readableStreamBody: response.body }
  const bodyAsText = await readResponse(response.body, { maxBytes: responseMaxBytes, timeoutMs: idleTimeoutMs, secrets: [] })
  if (status >= 300 && status < 400) {
    throw new DeliveryError(
      `http_${status}`,
      `the host of account_url answered with a redirect (${status}), which the relay does not follow; correct account_url`,
      { permanent: false, answer: { status } },
    )
  }
  // A proxy or a portal in between may answer with a page and any status. Every answer of the service has an id.
  if (status < 300 && evidence === undefined) throw withoutEvidence(config, { status, body: bodyAsText })
  return { response, bodyAsText }
}

/**
 * Returns a stream of the bytes. While undici sends a stream, each chunk starts `headersTimeout` again. A buffer would have to be sent and
 * answered within one such timeout.
 */
const streamOf = (bytes: Buffer) => Readable.from(slicesOf(bytes), { objectMode: false })

const sliceBytes = 256 * 1024

function* slicesOf(bytes: Buffer) {
  for (let at = 0; at < bytes.length; at += sliceBytes) yield bytes.subarray(at, at + sliceBytes)
}

/** Returns the application to sign in as, if the credentials are those of an application. */
export const principalOf = ({ config, credentials }: BlobTarget, context: AttemptContext): EntraPrincipal | undefined =>
  entraPrincipalOf(credentials, { authorityHost: authorityOf(config.account_url), scope: storageScope }, context)

const storageScope = 'https://storage.azure.com/.default'

/** Returns the sign-in host of the national cloud that the account belongs to. */
const authorityOf = (accountUrl: string): string => {
  const { hostname } = new URL(accountUrl)
  if (hostname.endsWith('.usgovcloudapi.net')) return 'https://login.microsoftonline.us'
  if (hostname.endsWith('.chinacloudapi.cn')) return 'https://login.chinacloudapi.cn'
  return 'https://login.microsoftonline.com'
}
