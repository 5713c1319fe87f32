import { AppError } from '../base/errors.ts'
import { queryOf, SealError, type KeyRing } from '../security/seal.ts'
import { isSecKey, redactQueryForReplay } from './redact.ts'

/** Returns true if a query string contains a secKey, which may be redacted. */
const hasSecKey = (queryString: string): boolean => [...new URLSearchParams(queryString).keys()].some(isSecKey)

/**
 * Creates what keeps the secKey of captured requests. A replay verifies the signature again, as of the time of the original request, so it
 * needs the secKey for as long as the captured request is stored. It is sealed, and redacted in the query string.
 */
export const createSealedQueries = (keyRing: Pick<KeyRing, 'seal' | 'open'>) => ({
  /** Seals a query string with a secKey. @returns null if it has none */
  seal: (requestId: string, queryString: string): Buffer | null =>
    hasSecKey(queryString) ? keyRing.seal(redactQueryForReplay(queryString), queryOf(requestId)) : null,

  /** @throws `AppError` 409 if the key that sealed the query string is no longer configured */
  open: (requestId: string, sealed: Buffer): string => {
    try {
      return keyRing.open(sealed, queryOf(requestId)) as string
    } catch (thrown) {
      if (!(thrown instanceof SealError)) throw thrown
      throw new AppError('conflict', 'This request cannot be replayed: its secKey was sealed with a key that is no longer configured.', {
        cause: thrown,
      })
    }
  },
})

export type SealedQueries = ReturnType<typeof createSealedQueries>
