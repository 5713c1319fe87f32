import { createHmac, type Hmac } from 'node:crypto'

/**
 * Computes the Standard Webhooks headers. The signature covers `id.timestamp.` and the bytes of the body as they are
 * sent.
 * @param secrets each add one signature
 */
export const signatureHeaders = async (
  id: string,
  now: Date,
  secrets: string[],
  openBody: () => AsyncIterable<Uint8Array>,
): Promise<Record<string, string>> => {
  const timestamp = String(Math.floor(now.getTime() / 1_000))
  const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp }
  if (secrets.length === 0) return headers

  const signers = secrets.map((secret): Hmac => createHmac('sha256', signingKey(secret)).update(`${id}.${timestamp}.`))
  for await (const chunk of openBody()) for (const signer of signers) signer.update(chunk)
  return { ...headers, 'webhook-signature': signers.map((signer) => `v1,${signer.digest('base64')}`).join(' ') }
}

const signingKey = (secret: string) =>
  secret.startsWith('whsec_') ? Buffer.from(secret.slice('whsec_'.length), 'base64') : Buffer.from(secret)
