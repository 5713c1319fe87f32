import type { OutgoingHttpHeaders } from 'node:http'
import { AppError } from '../base/errors.ts'
import { storable } from '../base/text.ts'
import { queryOf, SealError, type KeyRing } from '../security/seal.ts'

// Captured data is redacted before it is stored (contract, section 8.3): here names, query strings and headers, in redact-body.ts bodies.

// Names whose values are redacted: of headers, JSON keys, query parameters, form fields, XML elements and XML attributes.

/** The text that replaces a sensitive value. */
export const redacted = '[REDACTED]'

const wholeNames = new Set(['authorization', 'proxy-authorization', 'cookie', 'set-cookie'])
// The contract (section 8.3) has the first four. The rest are other spellings of them.
const partOfName = /token|secret|password|api-key|api_?key|passwd|passphrase|pwd/i
// Not every name that contains these words has a secret value: authId and author do not, nor does OBJ_KEY, a common field of ABAP.
const endOfName = /auth$|-key$/i
const signature = /signature(-\d+)?$/i

/** Matches every text that contains a sensitive name. A text without a match needs no closer look. */
export const mention = /auth|cookie|seckey|token|secret|password|api_?key|-key|passwd|passphrase|pwd|signature/i

/** Returns true for the signature of a URL of the content server protocol. It gives access to a document until the URL expires. */
const isSecKey = (name: string): boolean => name.toLowerCase() === 'seckey'

const isSecret = (name: string): boolean =>
  isSecKey(name) || wholeNames.has(name.toLowerCase()) || partOfName.test(name) || endOfName.test(name)

/** Returns true if a name is sensitive only because it ends with `signature`. */
export const isSignature = (name: string): boolean => signature.test(name) && !isSecret(name)

export const isSensitive = (name: string): boolean => isSecret(name) || signature.test(name)

/** Work on a text that pauses after a limited number of steps, and returns its result in the end. */
export type Steps<Result> = Generator<undefined, Result, undefined>

// A step handles one token, in about a microsecond.
const stepsUntilPause = 1_000

/** Creates a function for `if (isPauseDue()) yield`. It returns true after a limited number of calls. */
export const pauseAfterSteps = () => {
  let steps = 0
  return (): boolean => (steps += 1) % stepsUntilPause === 0
}

/** Runs the work at once. Only for texts that are known to be short. */
export const runAtOnce = <Result>(work: Steps<Result>): Result => {
  for (;;) {
    const step = work.next()
    if (step.done) return step.value
  }
}

const percentEncoded = /%([0-9a-f]{2})/gi

const decodeName = (name: string): string =>
  name.includes('%') ? name.replaceAll(percentEncoded, (_, hex: string) => String.fromCodePoint(Number.parseInt(hex, 16))) : name

/**
 * Redacts `name=value` pairs that are separated by `&`: a query string or a form. Names may be percent-encoded.
 * @param isRedacted decides by the decoded name
 */
export function* redactPairs(text: string, isRedacted: (name: string) => boolean = isSensitive): Steps<string> {
  const isPauseDue = pauseAfterSteps()
  if (!mention.test(text) && !text.includes('%')) return text
  const output: string[] = []
  let kept = 0
  for (let equals = text.indexOf('='); equals >= 0;) {
    if (isPauseDue()) yield
    const start = text.lastIndexOf('&', equals) + 1
    const next = text.indexOf('&', equals)
    const end = next < 0 ? text.length : next
    if (isRedacted(decodeName(text.slice(start, equals)))) {
      output.push(text.slice(kept, equals + 1), redacted)
      kept = end
    }
    equals = text.indexOf('=', end)
  }
  return output.join('') + text.slice(kept)
}

/** Redacts a query string. */
export const redactQuery = (query: string): string => runAtOnce(redactPairs(query))

/** Redacts a query string, but keeps the secKey, which a replay needs. */
export const redactQueryForReplay = (query: string): string => runAtOnce(redactPairs(query, (name) => isSensitive(name) && !isSecKey(name)))

/** Returns headers as they are stored: by their names in lower case, redacted, and with the query parameters of URLs such as Referer redacted. */
export const redactHeaders = (headers: OutgoingHttpHeaders): Record<string, string> => {
  // Without a prototype: a name may be any token. One loop, because every request has a dozen of them.
  const stored: Record<string, string> = Object.create(null)
  for (const name of Object.keys(headers)) {
    const value = headers[name]
    if (value === undefined) continue
    const lowerCase = name.toLowerCase()
    stored[lowerCase] = isSensitive(lowerCase) ? redacted : redactUrl(storable(String(value)))
  }
  return stored
}

const redactUrl = (value: string): string => {
  const query = value.indexOf('?') + 1
  return query === 0 ? value : value.slice(0, query) + redactQuery(value.slice(query))
}

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
