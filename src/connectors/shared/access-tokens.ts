import { createHash } from 'node:crypto'
import { z } from 'zod'
import { createTtlCache } from '../../base/ttl-cache.ts'
import { DeliveryError } from '../connector.ts'
import { parseObject, sendCloudRequest, type CloudResponse, type RequestContext } from './cloud-api.ts'
import { toDeliveryError } from './errors.ts'

export interface AccessToken {
  token: string
  expiresAt: Date
}

export interface AccessTokens<Principal> {
  /**
   * Returns a token that is valid for the next request.
   * @throws DeliveryError `credentials_refused`, or the network failure; the signal's reason if it is aborted
   */
  get(principal: Principal, context: RequestContext): Promise<AccessToken>
  /** Forgets a token, for example because it was refused before its expiry. */
  invalidate(principal: Principal): void
}

const maxTokens = 1_000
// A token must outlive the request that it is sent with.
const reserveMs = 5 * 60_000

/**
 * Creates a cache of access tokens.
 * @param requestToken fetches a new token
 */
export const createAccessTokens = <Principal>(
  requestToken: (principal: Principal, context: RequestContext) => Promise<AccessToken>,
): AccessTokens<Principal> => {
  const cache = createTtlCache<AccessToken>({ maxEntries: maxTokens })
  return {
    get: async (principal, context) => {
      const key = keyOf(principal)
      const known = cache.get(key)
      if (known) return known
      const fresh = await requestToken(principal, context)
      cache.set(key, fresh, fresh.expiresAt.getTime() - reserveMs)
      return fresh
    },
    invalidate: (principal) => cache.delete(keyOf(principal)),
  }
}

const keyOf = (principal: unknown) => createHash('sha256').update(JSON.stringify(principal)).digest('base64')

/** RFC 6749, 5.1. Some servers send the lifetime as text. */
const issuedToken = z.object({ access_token: z.string().min(1), expires_in: z.union([z.number(), z.string().regex(/^\d+$/)]) })

/**
 * Sends a form to a token endpoint (RFC 6749) and returns the token of its answer.
 * @param toError describes a refusal: a response with a status of 300 or more
 * @throws DeliveryError of `toError`, of the network failure, or `token_unreadable`; the signal's reason if it is aborted
 */
export const requestAccessToken = async (
  endpoint: string,
  form: Record<string, string>,
  toError: (response: CloudResponse) => DeliveryError,
  context: RequestContext,
): Promise<AccessToken> => {
  // The token expires by this clock, not by that of the server, and the time that the answer takes is part of the lifetime.
  const requestedAt = Date.now()
  const call = {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(form).toString(),
  } as const
  const response = await sendCloudRequest(endpoint, call, context).catch((thrown: unknown) => {
    context.signal.throwIfAborted()
    throw toDeliveryError(thrown, 'request_failed')
  })
  context.signal.throwIfAborted()
  if (response.status >= 300) throw toError(response)
  // The cause names fields only, never their values.
  const { data, error } = issuedToken.safeParse(parseObject(response.text))
  if (data === undefined) {
    throw new DeliveryError('token_unreadable', `the response of ${new URL(endpoint).host} contains no token`, { cause: error })
  }
  return { token: data.access_token, expiresAt: new Date(requestedAt + Number(data.expires_in) * 1_000) }
}
