import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { AppError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import type { AttemptLimit } from './attempt-limit.ts'
import type { KeyLevel } from './levels.ts'

const secretBytes = 32
const secretCharacters = 43
// 43 random characters of base64url contain 31 different ones on average, and fewer than 16 with a probability below 10^-12.
const secretMinDifferentCharacters = 16
const keyPattern = /^relay_([0-7][0-9A-HJKMNP-TV-Z]{25})_([A-Za-z0-9_-]{43})$/

// Limits the writes of `lastUsedAt` to one per key and minute.
const lastUsedIntervalMs = 60_000

/** Stored API key with the workspace that it gives access to. */
export interface StoredKey {
  id: string
  name: string
  workspace: { id: string; userSlug: string; workspaceSlug: string }
  memberId: string | null
  level: KeyLevel
  secretSha256: Buffer
  expiresAt: Date | null
  revokedAt: Date | null
  lastUsedAt: Date | null
}

/** Authenticated caller of a request: an API key, or a person whom the sign-in provider has identified. */
export interface Actor {
  type: 'api_key' | 'user'
  /** The id of the key, or of the person at the provider. */
  id: string
  name: string
  /** Member who owns the key, or who is the person, if any. */
  userId: string | null
  level: KeyLevel
  workspace: StoredKey['workspace']
}

/** What is stored of an API key: the id that it contains, and the SHA-256 digest of its secret. */
export interface KeyDigest {
  id: string
  secretSha256: Buffer
}

const sha256 = (text: string) => createHash('sha256').update(text).digest()

/**
 * Generates an API key. Only the SHA-256 digest of its secret is stored, so `key` cannot be displayed again. A plain
 * digest is sufficient, because 256 random bits cannot be guessed.
 */
export const newApiKey = (): KeyDigest & { key: string } => {
  const id = newId()
  const secret = randomBytes(secretBytes).toString('base64url')
  return { id, key: `relay_${id}_${secret}`, secretSha256: sha256(secret) }
}

const parseApiKey = (text: string): KeyDigest | undefined => {
  const [, id, secret] = keyPattern.exec(text) ?? []
  return id === undefined || secret === undefined ? undefined : { id, secretSha256: sha256(secret) }
}

/** Reads an API key that was generated outside of the relay. @returns a message without the key if it cannot be used */
export const readGivenKey = (text: string): KeyDigest | { message: string } => {
  const key = parseApiKey(text)
  if (!key) return { message: `must be an API key: relay_, an id of 26 characters, _ and ${secretCharacters} characters of base64url` }
  const differentCharacters = new Set(text.slice(-secretCharacters)).size
  if (differentCharacters < secretMinDifferentCharacters)
    return { message: `must have a random secret, and this one has only ${differentCharacters} different characters` }
  return key
}

export interface AuthenticatorDeps {
  findKey: (id: string) => Promise<StoredKey | undefined>
  recordUse: (id: string) => Promise<void>
  wrongKeys: AttemptLimit
}

const unauthorized = () =>
  new AppError('unauthorized', 'A valid API key for this workspace is required. Send it as Authorization: Bearer <key>.')

const isUsable = ({ revokedAt, expiresAt }: StoredKey, now: number) => !revokedAt && (!expiresAt || expiresAt.getTime() > now)

const actorOf = ({ id, name, memberId, level, workspace }: StoredKey): Actor => ({
  type: 'api_key',
  id,
  name,
  userId: memberId,
  level,
  workspace,
})

/** Creates the check of API keys for the surfaces that accept them. */
export const createAuthenticator = ({ findKey, recordUse, wrongKeys }: AuthenticatorDeps) => {
  const findValid = async (presented: string, now: number): Promise<StoredKey | undefined> => {
    const key = parseApiKey(presented)
    if (!key) return undefined
    const stored = await findKey(key.id)
    if (!stored || !timingSafeEqual(key.secretSha256, stored.secretSha256)) return undefined
    return isUsable(stored, now) ? stored : undefined
  }

  const refuse = (sourceAddress: string): AppError => {
    const retryAfterSeconds = wrongKeys.count(sourceAddress)
    if (retryAfterSeconds === 0) return unauthorized()
    return new AppError('rate_limited', 'Too many wrong API keys from this address. Try again later.', { retryAfterSeconds })
  }

  const use = async (key: StoredKey, now: number): Promise<Actor> => {
    if (!key.lastUsedAt || now - key.lastUsedAt.getTime() >= lastUsedIntervalMs) await recordUse(key.id)
    return actorOf(key)
  }

  return {
    /**
     * Authenticates a request. Every key that is not valid for this workspace gets the same answer, which therefore
     * does not reveal the workspaces and keys that exist. A valid key is accepted after any number of wrong keys from
     * its address. Otherwise one misconfigured client behind a proxy or NAT would lock out all others, and a key of 256
     * bits needs no protection against guessing.
     * @throws `AppError` `unauthorized`, or `rate_limited` after too many wrong keys from one address
     */
    authenticate: async (
      authorization: string | undefined,
      sourceAddress: string,
      path: { userSlug: string; workspaceSlug: string },
    ): Promise<Actor> => {
      const presented = /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1]
      if (presented === undefined) throw unauthorized()
      const now = Date.now()
      const key = await findValid(presented, now)
      if (!key || key.workspace.userSlug !== path.userSlug || key.workspace.workspaceSlug !== path.workspaceSlug) {
        throw refuse(sourceAddress)
      }
      return use(key, now)
    },

    /**
     * Authenticates a key for a session, in whatever workspace it is.
     * @throws `AppError` `unauthorized`, or `rate_limited` after too many wrong keys from one address
     */
    signIn: async (presented: string, sourceAddress: string): Promise<{ actor: Actor; expiresAt: Date | null }> => {
      const now = Date.now()
      const key = await findValid(presented, now)
      if (!key) throw refuse(sourceAddress)
      return { actor: await use(key, now), expiresAt: key.expiresAt }
    },

    /**
     * Signs in with the key of a link. @param keyId undefined if the link was not valid
     * @throws `AppError` `unauthorized`, or `rate_limited` after too many attempts from one address
     */
    signInById: async (keyId: string | undefined, sourceAddress: string): Promise<{ actor: Actor; expiresAt: Date | null }> => {
      const now = Date.now()
      const key = keyId === undefined ? undefined : await findKey(keyId)
      if (!key || !isUsable(key, now)) throw refuse(sourceAddress)
      return { actor: await use(key, now), expiresAt: key.expiresAt }
    },

    /** Returns the actor of a session, or undefined if its key has been revoked or has expired since. */
    resume: async (keyId: string): Promise<Actor | undefined> => {
      const now = Date.now()
      const key = await findKey(keyId)
      return key && isUsable(key, now) ? use(key, now) : undefined
    },
  }
}

export type Authenticator = ReturnType<typeof createAuthenticator>
