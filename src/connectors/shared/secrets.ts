import { z } from 'zod'

interface SchemaNode {
  secret?: boolean
  properties?: Record<string, SchemaNode>
}

/** Returns every string in the credentials that their schema marks as secret, at any depth. */
export const secretsIn = (credentials: z.ZodType, value: unknown): string[] =>
  markedStrings(z.toJSONSchema(credentials, { io: 'output', unrepresentable: 'any' }) as SchemaNode, value)

const markedStrings = ({ secret, properties = {} }: SchemaNode, value: unknown): string[] => {
  if (typeof value === 'string') return secret ? [value] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, child]) => markedStrings(properties[key] ?? {}, child))
}

// Shorter secrets would match ordinary text by chance.
const minSecretCharacters = 4

/** Returns the text with every secret replaced by `[REDACTED]`. */
export const withoutSecrets = (text: string, secrets: string[]): string =>
  secrets
    .filter((secret) => secret.length >= minSecretCharacters)
    .reduce((cleaned, secret) => cleaned.replaceAll(secret, '[REDACTED]'), text)

/** Redacts a text, then cuts it to `maxBytes`. In the other order, a secret that was cut in two would not be found. */
export const redactAndCut = (text: string, secrets: string[], maxBytes: number): string =>
  Buffer.from(withoutSecrets(text, secrets)).subarray(0, maxBytes).toString('utf8')

/**
 * Drops the beginning of a secret at the end of bytes that were cut off there: an incomplete secret would not be found.
 */
export const withoutCutSecret = (bytes: Buffer, secrets: string[]): Buffer => {
  const overlaps = secrets.map((secret) => overlapBytes(bytes, Buffer.from(secret)))
  return bytes.subarray(0, bytes.length - Math.max(0, ...overlaps))
}

/** Returns how many bytes at the end of `text` are also the beginning of `secret`. */
const overlapBytes = (text: Buffer, secret: Buffer): number => {
  for (let length = Math.min(text.length, secret.length); length >= minSecretCharacters; length -= 1) {
    if (text.subarray(-length).equals(secret.subarray(0, length))) return length
  }
  return 0
}
