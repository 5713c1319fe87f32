import type { Context } from 'koa'
import { AppError } from '../../base/errors.ts'
import type { Config } from '../../config/config.ts'
import type { Actor, Authenticator } from '../../security/api-keys.ts'
import { SealError, sessionCookie, type KeyRing } from '../../security/seal.ts'
import { createSignInLinks } from '../sign-in-links.ts'

export interface SessionDeps {
  authenticator: Authenticator
  keyRing: KeyRing
  config: Pick<Config, 'RELAY_BASE_URL' | 'RELAY_SESSION_TTL_MS'>
}

/** An API key that is signed in at a browser. */
export interface Session {
  actor: Actor
  expiresAt: Date
}

interface SealedSession {
  keyId: string
  /** Milliseconds since 1970. */
  expiresAt: number
}

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

export const signInRequired = () => new AppError('unauthorized', 'The session has ended. Sign in again.')

/**
 * Creates the sessions of the console. A session is a cookie that no script can read. It contains the id of the API key, but not the key
 * itself, and the end of the session, sealed with RELAY_SECRET_KEYS. So any API process can open it, and nothing is stored. The key is
 * looked up for each request: a session ends with the key.
 */
export const createSessions = ({ authenticator, keyRing, config }: SessionDeps) => {
  const links = createSignInLinks(keyRing)
  const baseUrl = config.RELAY_BASE_URL === undefined || !URL.canParse(config.RELAY_BASE_URL) ? undefined : new URL(config.RELAY_BASE_URL)

  const isSecure = (context: Context) => context.secure || baseUrl?.protocol === 'https:'
  // A browser accepts a cookie with this prefix only from this host and over TLS.
  const cookieName = (context: Context) => `${isSecure(context) ? '__Host-' : ''}relay_session`
  const setCookie = (context: Context, value: string, maxAgeSeconds: number) => {
    const attributes = ['Path=/', 'HttpOnly', 'SameSite=Strict', `Max-Age=${maxAgeSeconds}`, ...(isSecure(context) ? ['Secure'] : [])]
    context.append('set-cookie', `${cookieName(context)}=${value}; ${attributes.join('; ')}`)
  }

  /**
   * Returns true if a page of this relay sent the request. SameSite=Strict keeps the cookie from pages of other sites, but not from those
   * of another port or subdomain.
   */
  const isFromConsole = (context: Context): boolean => {
    const site = context.get('sec-fetch-site')
    if (site !== '') return site === 'same-origin'
    // Browsers send Sec-Fetch-Site to https and localhost only, and Origin with everything that can change something.
    const origin = context.get('origin')
    if (origin === '') return safeMethods.has(context.method)
    return origin === baseUrl?.origin || (URL.canParse(origin) && new URL(origin).host === context.host)
  }

  const open = (context: Context): SealedSession | undefined => {
    const cookie = context.cookies.get(cookieName(context))
    if (cookie === undefined) return undefined
    try {
      return keyRing.open(Buffer.from(cookie, 'base64url'), sessionCookie) as SealedSession
    } catch (thrown) {
      // Sealed by another installation on this host, or with a key that has been removed since.
      if (thrown instanceof SealError) return undefined
      throw thrown
    }
  }

  /** Returns the session of a request from the console, if it has not ended. */
  const find = async (context: Context): Promise<Session | undefined> => {
    if (!isFromConsole(context)) return undefined
    const session = open(context)
    if (!session || session.expiresAt <= Date.now()) return undefined
    const actor = await authenticator.resume(session.keyId)
    return actor && { actor, expiresAt: new Date(session.expiresAt) }
  }

  return {
    find,

    /**
     * Signs in with an API key or with the token of a link.
     * @throws AppError 401, 403 if another page than the console asks for it, or 429 after too many wrong keys
     */
    start: async (context: Context, credential: { key: string } | { token: string }): Promise<Session> => {
      if (!isFromConsole(context)) throw new AppError('forbidden', 'Only the console of this relay can start a session.')
      const { actor, expiresAt: keyExpiresAt } =
        'key' in credential
          ? await authenticator.signIn(credential.key, context.ip)
          : await authenticator.signInById(links.open(credential.token), context.ip)
      const expiresAt = Math.min(Date.now() + config.RELAY_SESSION_TTL_MS, keyExpiresAt?.getTime() ?? Infinity)
      const sealed: SealedSession = { keyId: actor.id, expiresAt }
      const maxAgeSeconds = Math.max(1, Math.floor((expiresAt - Date.now()) / 1_000))
      setCookie(context, keyRing.seal(sealed, sessionCookie).toString('base64url'), maxAgeSeconds)
      return { actor, expiresAt: new Date(expiresAt) }
    },

    /** Removes the cookie from the browser. */
    end: (context: Context): void => setCookie(context, '', 0),

    /**
     * Authenticates a request to the API: by the key in its Authorization header or, if it has none and comes from the console, by the
     * session.
     * @throws AppError 401 or 429
     */
    authenticate: async (context: Context, workspace: { userSlug: string; workspaceSlug: string }): Promise<Actor> => {
      const authorization = context.get('authorization')
      if (authorization !== '' || context.cookies.get(cookieName(context)) === undefined) {
        return authenticator.authenticate(authorization, context.ip, workspace)
      }
      const actor = (await find(context))?.actor
      if (!actor || actor.workspace.userSlug !== workspace.userSlug || actor.workspace.workspaceSlug !== workspace.workspaceSlug) {
        throw signInRequired()
      }
      return actor
    },
  }
}

export type Sessions = ReturnType<typeof createSessions>
