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
const partOfName =
  /token|secret|password|passwort|kennwort|api-key|api_?key|passwd|passphrase|pwd|credential|jwt|assertion|session[-_]?id|private[-_]?key|mysapsso/i
// Not every name that contains these words has a secret value: authId and author do not, nor does OBJ_KEY, a common field of ABAP.
const endOfName = /auth$|-key$/i
const signature = /signature(-\d+)?$/i

/** Matches every text that contains a sensitive name. A text without a match needs no closer look. */
export const mention =
  /auth|cookie|seckey|token|secret|password|passwort|kennwort|api_?key|-key|passwd|passphrase|pwd|signature|credential|jwt|assertion|session[-_]?id|private_?key|mysapsso/i

/** Matches a text in which something sensitive is given a value, in whatever notation. */
export const assignment = new RegExp(
  String.raw`(?:${mention.source})[\w.-]{0,64}(?:["'\\\s]|&(?:amp;)*(?:quot|apos|#\w{2,4});){0,8}(?:[:=>]|&(?:amp;)*(?:gt|#62|#x3e);)`,
  'i',
)

const naming = /(?:name|key|^id|field|property|param|parameter|header|attribute|^n|^k)$/i
const named = /(?:value|val|content|^data|text|default|^v)$/i

/** Returns true for the member of an object, or the attribute of an element, that has the name of another one, as in `name="password" value="x"`. */
export const namesAnother = (name: string): boolean => naming.test(name)

/** Returns true for the member, or the attribute, that has the value of what is named beside it. */
export const isNamedBeside = (name: string): boolean => named.test(name)

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

const separators = /[&;\r\n]/g
const nestedSeparators = /[?&;#\s]/
// A URL in a URL in a URL.
const decodingsMax = 3

/** Returns true if a value is itself a query string or a URL with a sensitive parameter, however often it was encoded. */
const hasSecretInside = (value: string, isRedacted: (name: string) => boolean): boolean => {
  if (!value.includes('%')) return false
  let decoded = value
  for (let count = 0; count < decodingsMax && decoded.includes('%'); count += 1) decoded = decodeName(decoded)
  return (
    mention.test(decoded) &&
    decoded.split(nestedSeparators).some((pair) => pair.includes('=') && isRedacted(pair.slice(0, pair.indexOf('='))))
  )
}

/**
 * Redacts `name=value` pairs that are separated by `&`, `;` or line breaks: a query string, a form or the text of a connection. Names may be
 * percent-encoded. One character per byte suffices, since the names are ASCII.
 * @param isRedacted decides by the decoded name
 */
export function* redactPairs(text: string, isRedacted: (name: string) => boolean = isSensitive): Steps<string> {
  const isPauseDue = pauseAfterSteps()
  if (!mention.test(text) && !text.includes('%')) return text
  const output: string[] = []
  let kept = 0
  for (let start = 0; start < text.length;) {
    if (isPauseDue()) yield
    separators.lastIndex = start
    const end = separators.exec(text)?.index ?? text.length
    const pair = text.slice(start, end)
    const equals = pair.indexOf('=') + 1
    if (equals > 0 && (isRedacted(decodeName(pair.slice(0, equals - 1)).trim()) || hasSecretInside(pair.slice(equals), isRedacted))) {
      output.push(text.slice(kept, start + equals), redacted)
      kept = end
    }
    start = end + 1
  }
  return output.join('') + text.slice(kept)
}

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

// User and password in front of the host (RFC 3986, 3.2.1), and what a client shows to sign in, under whatever name.
const userInfo = /(\/\/)[^\s/?#"<>]*@/g
const scheme = /^(\s*(?:basic|bearer|digest|negotiate|ntlm|dpop|aws4-hmac-sha256|sharedkey(?:lite)?)\s+).+$/is

const redactUrl = (text: string): string => {
  const value = text.replaceAll(userInfo, `$1${redacted}@`).replace(scheme, `$1${redacted}`)
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
