import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { UserError } from '../errors.ts'

const algorithm = 'aes-256-gcm'
const envelopeVersion = 1
const keyBytes = 32
// what GCM is made for, and what a random nonce may safely be used for 2^32 times under one key (NIST SP 800-38D, 8.3)
const nonceBytes = 12
const tagBytes = 16

/** What an envelope belongs to: it opens nowhere else. First the kind, then the ids of the row. */
export type SealedFor = readonly [kind: string, ...ids: string[]]

/** Credentials of a destination, as they are bound to its row. */
export const credentialsOf = (workspaceId: string, destinationId: string): SealedFor => ['destination', workspaceId, destinationId]

/** Credentials of the system that a workspace's bridge calls. */
export const rfcCredentialsOf = (workspaceId: string): SealedFor => ['rfc', workspaceId]

/** What a connector saves of an upload under way, as it is bound to its delivery. */
export const uploadOf = (documentId: string, destinationId: string): SealedFor => ['upload', documentId, destinationId]

/** An envelope that does not open: tampered with, of another row, or sealed under a key that is no longer configured. */
export class SealError extends Error {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.name = 'SealError'
  }
}

type SecretKey = [id: string, key: Buffer]

const readKey = (entry: string): SecretKey => {
  const [, id, encoded] = /^([A-Za-z0-9._-]{1,32}):([A-Za-z0-9+/_-]+=*)$/.exec(entry) ?? []
  // the entry itself is secret: it is named by its place in the list, not shown
  if (id === undefined || encoded === undefined) throw new UserError('RELAY_SECRET_KEYS: every entry must be id:base64')
  const key = Buffer.from(encoded, 'base64')
  if (key.length !== keyBytes) throw new UserError(`RELAY_SECRET_KEYS: key ${id} must be ${keyBytes} bytes, it is ${key.length}`)
  return [id, key]
}

/**
 * The keys with their ids, the one that seals first.
 * @param entries as RELAY_SECRET_KEYS holds them, `id:base64(32 bytes)`
 * @throws UserError where there is none or one does not fit
 */
export const readSecretKeys = (entries: readonly string[]): [SecretKey, ...SecretKey[]] => {
  const [first, ...others] = entries.map(readKey)
  if (!first) throw new UserError('RELAY_SECRET_KEYS is empty: credentials cannot be sealed. Make a key with: openssl rand -base64 32')
  const keys: [SecretKey, ...SecretKey[]] = [first, ...others]
  if (new Set(keys.map(([id]) => id)).size < keys.length) throw new UserError('RELAY_SECRET_KEYS names one key id twice')
  return keys
}

/** Who opened it, for whom and under which key: all of it is authenticated, none of it can be exchanged. */
const associatedData = (header: Buffer, owner: SealedFor) => Buffer.concat([header, Buffer.from(JSON.stringify(owner))])

/**
 * Seals JSON values with AES-256-GCM. Envelope: version (1 byte), length of the key id (1), key id, nonce (12), tag (16), ciphertext.
 * To change keys, put the new one first: it seals from then on, the others go on opening what they sealed.
 * @param entries as RELAY_SECRET_KEYS holds them, `id:base64(32 bytes)`
 * @throws UserError where there is none or one does not fit
 */
export const createKeyRing = (entries: readonly string[]) => {
  const readable = readSecretKeys(entries)
  const [[sealingId, sealingKey]] = readable
  const keys = new Map(readable)

  return {
    /** Of the key that seals. */
    sealingId,

    seal: (value: unknown, owner: SealedFor): Buffer => {
      const header = Buffer.concat([Buffer.from([envelopeVersion, sealingId.length]), Buffer.from(sealingId)])
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv(algorithm, sealingKey, nonce, { authTagLength: tagBytes })
      cipher.setAAD(associatedData(header, owner))
      const ciphertext = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()])
      return Buffer.concat([header, nonce, cipher.getAuthTag(), ciphertext])
    },

    /** @throws SealError */
    open: (envelope: Buffer, owner: SealedFor): unknown => {
      const headerBytes = 2 + (envelope[1] ?? 0)
      const bodyStart = headerBytes + nonceBytes + tagBytes
      if (envelope[0] !== envelopeVersion || envelope.length < bodyStart) throw new SealError('the envelope is of no known form')
      const header = envelope.subarray(0, headerBytes)
      const keyId = header.subarray(2).toString()
      const key = keys.get(keyId)
      if (!key) throw new SealError(`sealed under key ${JSON.stringify(keyId)}, which RELAY_SECRET_KEYS does not hold`)
      try {
        const nonce = envelope.subarray(headerBytes, headerBytes + nonceBytes)
        const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
        decipher.setAAD(associatedData(header, owner))
        decipher.setAuthTag(envelope.subarray(headerBytes + nonceBytes, bodyStart))
        return JSON.parse(Buffer.concat([decipher.update(envelope.subarray(bodyStart)), decipher.final()]).toString('utf8'))
      } catch (thrown) {
        throw new SealError('the envelope was changed, or belongs to another row', { cause: thrown })
      }
    },
  }
}

export type KeyRing = ReturnType<typeof createKeyRing>
