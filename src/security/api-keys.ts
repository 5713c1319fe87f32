import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { AppError } from '../errors.ts'
import { newId } from '../ids.ts'
import type { AttemptLimit } from './attempt-limit.ts'
import type { KeyLevel } from './levels.ts'

const secretBytes = 32
const keyPattern = /^relay_([0-7][0-9A-HJKMNP-TV-Z]{25})_([A-Za-z0-9_-]{43})$/

// "Kept coarsely": one write a minute, however busy the key is.
const lastUsedIntervalMs = 60_000

/** A key as it is stored, with the workspace it is good for. */
export interface StoredKey {
  id: string
  workspace: { id: string; userSlug: string; workspaceSlug: string }
  memberId: string | null
  level: KeyLevel
  secretSha256: Buffer
  expiresAt: Date | null
  revokedAt: Date | null
  lastUsedAt: Date | null
}

/** Who is asking. */
export interface Actor {
  keyId: string
  /** The member the key belongs to, if it belongs to one. */
  userId: string | null
  level: KeyLevel
  workspace: StoredKey['workspace']
}

const sha256 = (text: string) => createHash('sha256').update(text).digest()

/** A new key. `key` is shown once and kept nowhere. SHA-256 suffices for 256 random bits: there is nothing to guess. */
export const newApiKey = (): { id: string; key: string; secretSha256: Buffer } => {
  const id = newId()
  const secret = randomBytes(secretBytes).toString('base64url')
  return { id, key: `relay_${id}_${secret}`, secretSha256: sha256(secret) }
}

export interface AuthenticatorDeps {
  findKey: (id: string) => Promise<StoredKey | undefined>
  recordUse: (id: string) => Promise<void>
  wrongKeys: AttemptLimit
}

const unauthorized = () => new AppError('unauthorized', 'This needs a valid API key for this workspace, as Authorization: Bearer <key>.')

/** Tells who holds the key of an Authorization header. Used by every surface that takes API keys. */
export const createAuthenticator = ({ findKey, recordUse, wrongKeys }: AuthenticatorDeps) => {
  const findValid = async (presented: string, now: number): Promise<StoredKey | undefined> => {
    const [, id, secret] = keyPattern.exec(presented) ?? []
    if (id === undefined || secret === undefined) return undefined
    const stored = await findKey(id)
    if (!stored || !timingSafeEqual(sha256(secret), stored.secretSha256)) return undefined
    if (stored.revokedAt || (stored.expiresAt && stored.expiresAt.getTime() <= now)) return undefined
    return stored
  }

  return {
    /**
     * One answer for every key that is not good for this workspace, so that nobody learns which workspaces and keys exist.
     * A valid key is let in however many wrong ones came from its address: behind a proxy or NAT, one misconfigured client would
     * else lock out all others, and 256 bits need no such protection.
     * @throws AppError `unauthorized`, or `rate_limited` after too many wrong keys from one address
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
        const retryAfterSeconds = wrongKeys.count(sourceAddress)
        if (retryAfterSeconds === 0) throw unauthorized()
        throw new AppError('rate_limited', 'Too many wrong API keys from this address.', { retryAfterSeconds })
      }
      if (!key.lastUsedAt || now - key.lastUsedAt.getTime() >= lastUsedIntervalMs) await recordUse(key.id)
      return { keyId: key.id, userId: key.memberId, level: key.level, workspace: key.workspace }
    },
  }
}

export type Authenticator = ReturnType<typeof createAuthenticator>
