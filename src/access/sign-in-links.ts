import { openOrUndefined, signInLink, type KeyRing } from '../security/seal.ts'

interface SealedLink {
  keyId: string
  /** Milliseconds since 1970. */
  expiresAt: number
}

/**
 * Creates the tokens of links that sign a browser in. A token is the id of an API key and the end of its validity, sealed with
 * RELAY_SECRET_KEYS: nothing is stored. It may be used several times, so let it live for some minutes only. It ends with its key.
 */
export const createSignInLinks = (keyRing: Pick<KeyRing, 'seal' | 'open'>) => ({
  /** Returns the token of a new link. */
  create: (keyId: string, lifetimeMs: number): string =>
    keyRing.seal({ keyId, expiresAt: Date.now() + lifetimeMs } satisfies SealedLink, signInLink).toString('base64url'),

  /** Returns the id of the API key of a link, or undefined if the token is not valid, or has expired. */
  open: (token: string): string | undefined => {
    const link = openOrUndefined(keyRing, Buffer.from(token, 'base64url'), signInLink) as SealedLink | undefined
    return link && link.expiresAt > Date.now() ? link.keyId : undefined
  },
})
