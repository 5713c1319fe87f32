import type { Readable } from 'node:stream'

/** Statuses below 500 that another try may mend. */
const passing = new Set([408, 409, 425, 429])

export const isPermanentStatus = (status: number) => status >= 400 && status < 500 && !passing.has(status)

/** Retry-After in milliseconds, from its seconds or its date; undefined where there is none that can be read. */
export const retryAfterMs = (header: string | string[] | undefined, now: Date): number | undefined => {
  const text = (Array.isArray(header) ? header[0] : header)?.trim()
  if (!text) return undefined
  if (/^\d+$/.test(text)) return Number(text) * 1_000
  const date = Date.parse(text)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now.getTime())
}

// reading on this far saves the connection; a longer answer costs more than a new one
const discardMaxBytes = 64 * 1024

/**
 * The beginning of an answer as text. Never throws: an answer that breaks off or drips on for ever is cut, since its status is known already.
 * @param secrets what a target may echo and nobody is to read
 */
export const readAnswer = async (
  body: Readable,
  { maxBytes, timeoutMs, secrets }: { maxBytes: number; timeoutMs: number; secrets: string[] },
): Promise<string> => {
  const timer = setTimeout(() => body.destroy(), timeoutMs)
  const kept: Buffer[] = []
  let [keptBytes, allBytes] = [0, 0]
  let isWhole = false
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      const part = chunk.subarray(0, maxBytes - keptBytes)
      kept.push(part)
      keptBytes += part.length
      allBytes += chunk.length
      if (allBytes > maxBytes + discardMaxBytes) break
    }
    isWhole = keptBytes === allBytes
  } catch {
    // what has come so far is what there is
  } finally {
    clearTimeout(timer)
  }
  const bytes = Buffer.concat(kept)
  const text = (isWhole ? bytes : withoutBegunSecret(bytes, secrets)).toString('utf8')
  return withoutSecrets(text.replaceAll('\0', '\uFFFD'), secrets)
}

// a secret of fewer characters is found by chance in any text
const secretMinCharacters = 4

export const withoutSecrets = (text: string, secrets: string[]) =>
  secrets
    .filter((secret) => secret.length >= secretMinCharacters)
    .reduce((cleaned, secret) => cleaned.replaceAll(secret, '[REDACTED]'), text)

/** What was cut may end in the midst of a secret, which would not be found as a whole any more. */
const withoutBegunSecret = (bytes: Buffer, secrets: string[]): Buffer => {
  const begunBytes = secrets.map((secret) => overlapBytes(bytes, Buffer.from(secret)))
  return bytes.subarray(0, bytes.length - Math.max(0, ...begunBytes))
}

/** How much of the end of the one is the beginning of the other. */
const overlapBytes = (text: Buffer, secret: Buffer): number => {
  for (let length = Math.min(text.length, secret.length); length >= secretMinCharacters; length -= 1) {
    if (text.subarray(-length).equals(secret.subarray(0, length))) return length
  }
  return 0
}
