import { createHash, randomBytes } from 'node:crypto'
import type { Database } from '../db/database.ts'

const tokenBytes = 32

const sha256 = (token: string) => createHash('sha256').update(token).digest()

/** Creates the table of links that sign a browser in once. It contains digests of the tokens only. */
export const createSignInLinks = (db: Database) => ({
  /** Returns the token of a new link. Links that have expired are removed. */
  create: async (keyId: string, lifetimeMs: number): Promise<string> => {
    const token = randomBytes(tokenBytes).toString('base64url')
    await db('sign_in_links').where('expires_at', '<', db.fn.now()).delete()
    await db('sign_in_links').insert({ token_sha256: sha256(token), key_id: keyId, expires_at: new Date(Date.now() + lifetimeMs) })
    return token
  },

  /** Uses a link up. @returns the id of its API key, or undefined if the link does not exist, was used or has expired */
  redeem: async (token: string): Promise<string | undefined> => {
    const [redeemed]: { keyId: string; expiresAt: Date }[] = await db('sign_in_links')
      .where({ token_sha256: sha256(token) })
      .delete()
      .returning(['key_id as keyId', 'expires_at as expiresAt'])
    return redeemed && redeemed.expiresAt > new Date() ? redeemed.keyId : undefined
  },
})

export type SignInLinks = ReturnType<typeof createSignInLinks>
