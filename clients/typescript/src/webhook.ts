/** A request that the relay has not signed, or not with this secret, or not lately. Answer it with 401. */
export class WebhookError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'WebhookError'
  }
}

export interface Webhook {
  /** The headers of the request: those of `fetch`, or those of Node's `request.headers`. */
  headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>
  /** The bytes of the body as they were received. Text that was made of them is not the same if the document is binary. */
  body: string | Uint8Array
  /** The `secret` of the destination's credentials. */
  secret: string
  /** How far `webhook-timestamp` may be from now. 300 by default. */
  toleranceSeconds?: number
  /** Now, in milliseconds. For tests. */
  now?: number
}

const utf8 = new TextEncoder()

/** Returns the bytes of base64 with padding, and nothing else: `atob` also takes blanks, and text without padding. */
const bytesOf = (base64: string): Uint8Array<ArrayBuffer> | undefined => {
  try {
    const binary = atob(base64)
    return btoa(binary) === base64 ? Uint8Array.from(binary, (character) => character.charCodeAt(0)) : undefined
  } catch {
    return undefined
  }
}

const keyOf = (secret: string): Uint8Array<ArrayBuffer> => {
  const key = secret.startsWith('whsec_') ? bytesOf(secret.slice('whsec_'.length)) : utf8.encode(secret)
  if (!key?.length)
    throw new TypeError(
      'The secret of a webhook is whsec_ and base64 with padding, or any text. This one is no base64 after whsec_, or empty.',
    )
  return key
}

const headerOf = (headers: Webhook['headers'], name: string): string => {
  const value = headers instanceof Headers ? headers.get(name) : Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
  if (typeof value !== 'string' || value === '') throw new WebhookError(`The request has no header ${name}.`)
  return value
}

const joined = (head: string, body: Webhook['body']): Uint8Array<ArrayBuffer> => {
  const [first, second] = [utf8.encode(head), typeof body === 'string' ? utf8.encode(body) : body]
  const all = new Uint8Array(first.length + second.length)
  all.set(first)
  all.set(second, first.length)
  return all
}

/**
 * Verifies a request of a webhook destination by its Standard Webhooks signature (of a document if `signatures` is `both` or `standard_webhooks`). One of several signatures
 * suffices: there are two while the secret is changed. The signature covers the id, the time and the body, not the headers `x-relay-*`.
 * @returns the id of the message, which is the same in every repetition, and its time
 * @throws WebhookError if the request must be refused
 */
export const verifyWebhook = async ({
  headers,
  body,
  secret,
  toleranceSeconds = 300,
  now = Date.now(),
}: Webhook): Promise<{ id: string; timestamp: Date }> => {
  const id = headerOf(headers, 'webhook-id')
  const seconds = headerOf(headers, 'webhook-timestamp')
  const signatures = headerOf(headers, 'webhook-signature')
  const sentMs = /^\d{1,12}$/.test(seconds) ? Number(seconds) * 1_000 : Number.NaN
  if (!(Math.abs(now - sentMs) <= toleranceSeconds * 1_000)) {
    throw new WebhookError(`The header webhook-timestamp is not within ${toleranceSeconds} seconds of now.`)
  }
  const key = await crypto.subtle.importKey('raw', keyOf(secret), { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
  const signed = joined(`${id}.${seconds}.`, body)
  for (const entry of signatures.split(' ')) {
    const signature = entry.startsWith('v1,') ? bytesOf(entry.slice('v1,'.length)) : undefined
    // In constant time, as Web Crypto does it.
    if (signature && (await crypto.subtle.verify('HMAC', key, signature, signed))) return { id, timestamp: new Date(sentMs) }
  }
  throw new WebhookError('No signature of the header webhook-signature matches.')
}
