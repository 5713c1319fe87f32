import { createHash } from 'node:crypto'
import { z } from 'zod'
import { redactAndCut } from '../../base/secrets.ts'
import { createTtlCache, type TtlCache } from '../../base/ttl-cache.ts'
import { unlessAborted } from '../../base/unless-aborted.ts'
import { DeliveryError } from '../connector.ts'
import { parseObject, sendCloudRequest, toTargetAnswer, type CloudRequest, type CloudResponse, type RequestContext } from './cloud-api.ts'
import { toDeliveryError } from './errors.ts'
import { isPermanentStatus } from './final-statuses.ts'
import { waitOf } from './retry-after.ts'

export interface AccessToken {
  token: string
  expiresAt: Date
}

export interface AccessTokens<Principal, Token extends AccessToken = AccessToken> {
  /**
   * Returns a token that is valid for the next request. Attempts that ask at the same time share one request to the issuer, which ends when
   * the last of them is aborted.
   * @throws DeliveryError `credentials_refused`, or the network failure; the signal's reason if it is aborted
   */
  get(principal: Principal, context: RequestContext): Promise<Token>
  /**
   * Forgets a token.
   * @param refused the token that a service has refused before its expiry: a newer one is kept. Without it, any token is forgotten.
   */
  invalidate(principal: Principal, refused?: string): void
}

/** The tokens of every kind that signs in for tokens, and the requests for them that run. */
export interface TokenCache {
  tokens: TtlCache<AccessToken>
  requests: Map<string, TokenRequest>
}

interface TokenRequest {
  token: Promise<AccessToken>
  waiting: number
  stop: AbortController
}

// An entry has about 2 KiB.
const maxTokens = 1_000
// A token must outlive the request that it is sent with. A token that lives for less than ten minutes is renewed after half of its life.
const maxReserveMs = 5 * 60_000

export const createTokenCache = (): TokenCache => ({ tokens: createTtlCache({ maxEntries: maxTokens }), requests: new Map() })

/**
 * Gives out the tokens of one kind of issuer.
 * @param cache shared by all of them
 * @param issuer keeps equal principals of different issuers apart
 * @param requestToken fetches a new token
 */
export const createAccessTokens = <Principal, Token extends AccessToken = AccessToken>(
  cache: TokenCache,
  issuer: string,
  requestToken: (principal: Principal, context: RequestContext) => Promise<Token>,
): AccessTokens<Principal, Token> => {
  const start = (key: string, requestKey: string, principal: Principal, context: RequestContext): TokenRequest => {
    const stop = new AbortController()
    const requestedAt = Date.now()
    const fetch = async () => {
      const fresh = await requestToken(principal, { ...context, signal: stop.signal })
      const expiresAt = fresh.expiresAt.getTime()
      cache.tokens.set(key, fresh, expiresAt - Math.min(maxReserveMs, (expiresAt - requestedAt) / 2))
      return fresh
    }
    const request = { token: fetch(), waiting: 0, stop }
    cache.requests.set(requestKey, request)
    const forget = () => {
      if (cache.requests.get(requestKey) === request) cache.requests.delete(requestKey)
    }
    request.token.then(forget, forget)
    return request
  }

  return {
    get: async (principal, context) => {
      context.signal.throwIfAborted()
      const key = keyOf([issuer, principal])
      const known = cache.tokens.get(key)
      // The issuer is part of the key, so the token is one of its own.
      if (known) return known as Token
      // An attempt that trusts another authority must not fail with this one.
      const requestKey = keyOf([key, context.caCertificate])
      const request = cache.requests.get(requestKey) ?? start(key, requestKey, principal, context)
      request.waiting += 1
      try {
        return (await unlessAborted(() => request.token, context.signal)) as Token
      } finally {
        request.waiting -= 1
        if (request.waiting === 0 && cache.requests.get(requestKey) === request) {
          cache.requests.delete(requestKey)
          request.stop.abort(new Error('nobody waits for the token any more'))
        }
      }
    },
    invalidate: (principal, refused) => {
      const key = keyOf([issuer, principal])
      if (refused === undefined || cache.tokens.get(key)?.token === refused) cache.tokens.delete(key)
    },
  }
}

const keyOf = (principal: unknown) => createHash('sha256').update(JSON.stringify(principal)).digest('base64')

// What a header can carry: a token is sent in one.
const headerText = /^[\x21-\x7e]+$/

/** RFC 6749, 5.1. Some servers send the lifetime as text. */
const issuedToken = z.object({
  access_token: z.string().regex(headerText),
  expires_in: z.union([z.number(), z.string().regex(/^\d+$/)]),
  token_type: z
    .string()
    .regex(/^bearer$/i)
    .optional(),
})
const issuedOnce = issuedToken.extend({ expires_in: issuedToken.shape.expires_in.default(0) })

// A server may quote what it refuses.
const secretFields = ['client_secret', 'client_assertion', 'assertion', 'subject_token']
const secretsIn = (form: Record<string, string>) => secretFields.map((name) => form[name]).filter((value) => value !== undefined)

interface TokenRequestOptions {
  /** Describes a refusal: a response with a status of 300 or more. */
  toError(response: CloudResponse): DeliveryError
  headers?: Record<string, string>
  /** True if the issuer may leave out the lifetime, which is recommended only. Such a token is not used again. */
  mayOmitLifetime?: boolean
}

// Of the refusal of an issuer, which has a few hundred bytes.
export const refusalMaxBytes = 16 * 1_024

/** Sends a request to an issuer of tokens. @throws DeliveryError of the network failure; the signal's reason if it is aborted */
export const askIssuer = (url: string, call: CloudRequest, context: RequestContext): Promise<CloudResponse> =>
  sendCloudRequest(url, call, context).catch((thrown: unknown) => {
    context.signal.throwIfAborted()
    throw toDeliveryError(thrown, 'request_failed').reworded(thrown, (message) => `no token from ${new URL(url).host}: ${message}`)
  })

/**
 * Sends a form to a token endpoint (RFC 6749) and returns the token of its answer.
 * @throws DeliveryError of `toError`, of the network failure, or `token_unreadable`; the signal's reason if it is aborted
 */
export const requestAccessToken = async (
  endpoint: string,
  form: Record<string, string>,
  { toError, headers = {}, mayOmitLifetime = false }: TokenRequestOptions,
  context: RequestContext,
): Promise<AccessToken> => {
  const { host } = new URL(endpoint)
  // The token expires by this clock, not by that of the server, and the time that the answer takes is part of the lifetime.
  const requestedAt = Date.now()
  const call = {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: new URLSearchParams(form).toString(),
  } as const
  const response = await askIssuer(endpoint, call, context)
  context.signal.throwIfAborted()
  if (response.status >= 300) throw toError({ ...response, text: redactAndCut(response.text, secretsIn(form), refusalMaxBytes) })
  // The cause names fields only, never their values.
  const { data, error } = (mayOmitLifetime ? issuedOnce : issuedToken).safeParse(parseObject(response.text))
  if (data === undefined) {
    throw new DeliveryError('token_unreadable', `the response of ${host} contains no token that can be used`, { cause: error })
  }
  return { token: data.access_token, expiresAt: new Date(requestedAt + Number(data.expires_in) * 1_000) }
}

// What servers say in `error` of limits and load. RFC 6749 has `temporarily_unavailable` and `server_error`.
const passes = /unavailable|server_error|internal|slow_down|throttl|limit|too_?many|timeout|busy/i

/**
 * Returns true if no time changes that an issuer refuses a token. A page, which is not the form of RFC 6749, comes from something in between.
 * @param bare statuses that are also the word of the issuer without that form
 */
export const isFinalRefusal = ({ status, text, headers }: CloudResponse, bare: readonly number[] = []): boolean => {
  const { error } = parseObject(text)
  if (!isPermanentStatus(status, waitOf(headers, new Date()))) return false
  return typeof error === 'string' ? !passes.test(error) : bare.includes(status)
}

/** Returns what an issuer says of a refusal: its code and its description. */
export const reasonOf = ({ text }: CloudResponse): string => {
  const { error, error_description: description } = parseObject(text)
  return [error, description].filter((part) => typeof part === 'string').join(': ')
}

/**
 * Returns the error for an answer of an issuer that is no token.
 * @param answered says so, if a later attempt may get one
 * @param refused says what to correct, if no time changes the refusal
 * @param permanent false if that is corrected without a change of the destination
 */
export const noToken = (response: CloudResponse, answered: string, refused: string | undefined, permanent = true): DeliveryError => {
  const details = { retryAfterMs: waitOf(response.headers, new Date()), answer: toTargetAnswer(response) }
  return refused === undefined
    ? new DeliveryError(`http_${response.status}`, answered, { permanent: false, ...details })
    : new DeliveryError('credentials_refused', refused, { permanent, ...details })
}
