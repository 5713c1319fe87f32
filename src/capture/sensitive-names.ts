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
export const isSecKey = (name: string): boolean => name.toLowerCase() === 'seckey'

const isSecret = (name: string): boolean =>
  isSecKey(name) || wholeNames.has(name.toLowerCase()) || partOfName.test(name) || endOfName.test(name)

/** Returns true if a name is sensitive only because it ends with `signature`. */
export const isSignature = (name: string): boolean => signature.test(name) && !isSecret(name)

export const isSensitive = (name: string): boolean => isSecret(name) || signature.test(name)
