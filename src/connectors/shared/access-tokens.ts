import { createHash } from 'node:crypto'
import { createTtlCache } from '../../base/ttl-cache.ts'
import type { RequestContext } from './cloud-api.ts'

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
