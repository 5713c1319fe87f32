import { createHash, createPublicKey, generateKeyPairSync, sign, type KeyObject } from 'node:crypto'
import type { Database } from '../db/database.ts'
import { signingKey, type KeyRing } from '../security/seal.ts'

/** The key with which an installation signs its reports. */
export interface SigningKey {
  /** PEM. */
  publicKey: string
  /** @returns an Ed25519 signature in base64 */
  sign(text: string): string
}

/** Returns the SHA-256 of a public key, by which people compare keys. */
export const fingerprintOf = (publicKey: string | KeyObject): string => {
  const key = typeof publicKey === 'string' ? createPublicKey(publicKey) : publicKey
  return `SHA256:${createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('base64')
    .replaceAll('=', '')}`
}

/** Returns the signing key of this installation, which the first call creates. @throws `SealError` if no key of the ring opens it */
export const openSigningKey = async (db: Database, keyRing: KeyRing): Promise<SigningKey> => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const fresh = {
    signing_public_key: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    signing_key_sealed: keyRing.seal(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), signingKey),
  }
  // Another process may be the first.
  await db('installation').whereNull('signing_public_key').update(fresh)
  const stored: { publicKey: string; sealed: Buffer } | undefined = await db('installation')
    .select({ publicKey: 'signing_public_key', sealed: 'signing_key_sealed' })
    .first()
  if (!stored) throw new Error('the table installation is empty')
  const pem = keyRing.open(stored.sealed, signingKey) as string
  return { publicKey: stored.publicKey, sign: (text) => sign(null, Buffer.from(text), pem).toString('base64') }
}
