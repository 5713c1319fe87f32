import { createHash, createHmac } from 'node:crypto'
import type { Message } from './message.ts'
import type { WebhookConfig } from './schema.ts'

interface SignedRequest {
  method: string
  signatures: WebhookConfig['signatures']
  /** Each adds one signature of every kind. */
  secrets: string[]
  nowMs: number
}

/**
 * Returns the headers of a message, with its signatures. Reads the body only if a signature covers its bytes (Standard Webhooks), or its
 * digest, if that is not known.
 */
export const signedHeaders = async (
  message: Message,
  { method, signatures, secrets, nowMs }: SignedRequest,
): Promise<Record<string, string>> => {
  const seconds = String(Math.floor(nowMs / 1_000))
  const keys = secrets.map(signingKey)
  const overBytes = signatures === 'http_message' ? [] : keys.map((key) => createHmac('sha256', key).update(`${message.id}.${seconds}.`))
  const overDigest = signatures === 'standard_webhooks' ? [] : keys
  const hash = overDigest.length > 0 && message.digest === undefined ? createHash('sha256') : undefined
  const readers = hash ? [...overBytes, hash] : overBytes
  if (readers.length > 0) for await (const chunk of message.open()) for (const reader of readers) reader.update(chunk as Uint8Array)

  const digest = message.digest ?? hash?.digest()
  const covered = {
    'content-type': message.contentType,
    ...(digest && { 'content-digest': `sha-256=:${digest.toString('base64')}:` }),
    'webhook-id': message.id,
    ...message.headers,
  }
  return {
    ...covered,
    'content-length': String(message.sizeBytes),
    'webhook-timestamp': seconds,
    ...(overBytes.length > 0 && { 'webhook-signature': overBytes.map((hmac) => `v1,${hmac.digest('base64')}`).join(' ') }),
    ...(overDigest.length > 0 && httpSignatures(method, covered, overDigest, seconds)),
  }
}

const signingKey = (secret: string) =>
  secret.startsWith('whsec_') ? Buffer.from(secret.slice('whsec_'.length), 'base64') : Buffer.from(secret)

/**
 * Computes the headers of HTTP Message Signatures (RFC 9421). The address is not covered: a gateway before the receiver may change it, and
 * Standard Webhooks does not cover it either.
 */
const httpSignatures = (method: string, covered: Record<string, string>, keys: Buffer[], created: string) => {
  const components = [['@method', method], ...Object.entries(covered)]
  const lines = components.map(([name, value]) => `"${name}": ${value!.trim()}`)
  const names = components.map(([name]) => `"${name}"`).join(' ')
  const signed = keys.map((key, index) => {
    const parameters = `(${names});created=${created};keyid="${keyIdOf(key)}";alg="hmac-sha256"`
    const base = [...lines, `"@signature-params": ${parameters}`].join('\n')
    return { label: labels[index], parameters, signature: createHmac('sha256', key).update(base).digest('base64') }
  })
  return {
    'signature-input': signed.map(({ label, parameters }) => `${label}=${parameters}`).join(', '),
    signature: signed.map(({ label, signature }) => `${label}=:${signature}:`).join(', '),
  }
}

// Of `secret` and `previous_secret`.
const labels = ['relay', 'relay_previous']

const keyIdCharacters = 16

/** Tells a receiver which of its keys to use while the secret is changed. */
const keyIdOf = (key: Buffer) => createHash('sha256').update(key).digest('hex').slice(0, keyIdCharacters)
