import { createHash } from 'node:crypto'
import type { CallContext } from './cloud-call.ts'
import { createExpiring } from './expiring.ts'

export interface AccessToken {
  token: string
  expiresAt: Date
}

export interface Tokens<Principal> {
  /**
   * A token that is good for the next request.
   * @throws DeliveryError `credentials_refused` naming what to correct, or what went wrong on the way; the signal's reason
   */
  take(principal: Principal, context: CallContext): Promise<AccessToken>
  /** For a token that was refused before its time. */
  forget(principal: Principal): void
}

const tokensAtMost = 1_000
// a token must outlive the request it is sent with
const reserveMs = 5 * 60_000

/**
 * Tokens kept in memory for as long as they live.
 * @param request asks for a new one
 */
export const createTokens = <Principal>(
  request: (principal: Principal, context: CallContext) => Promise<AccessToken>,
): Tokens<Principal> => {
  const kept = createExpiring<AccessToken>(tokensAtMost)
  return {
    take: async (principal, context) => {
      const key = keyOf(principal)
      const known = kept.find(key)
      if (known) return known
      const fresh = await request(principal, context)
      kept.keep(key, fresh, fresh.expiresAt.getTime() - reserveMs)
      return fresh
    },
    forget: (principal) => kept.forget(keyOf(principal)),
  }
}

const keyOf = (principal: unknown) => createHash('sha256').update(JSON.stringify(principal)).digest('base64')
