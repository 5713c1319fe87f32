import type { Context } from 'koa'
import { AppError } from '../base/errors.ts'
import type { Config } from '../config/config.ts'
import type { Actor, Authenticator } from '../security/api-keys.ts'
import { openOrUndefined, sessionCookie, type KeyRing } from '../security/seal.ts'
import { baseUrlOf, createCookie } from './cookies.ts'
import type { People, Person, WorkspaceAccess } from './people.ts'
import { createSignInLinks } from './sign-in-links.ts'

export interface SessionDeps {
  authenticator: Authenticator
  keyRing: KeyRing
  /** Undefined if people cannot sign in. */
  people?: People | undefined
  config: Pick<Config, 'RELAY_BASE_URL' | 'RELAY_SESSION_TTL_MS'>
}

/** An API key or a person that is signed in at a browser. */
export interface Session {
  /** The person in the requested workspace, or else in the first one. */
  actor: Actor
  /** All that the session gives access to. */
  workspaces: WorkspaceAccess[]
  expiresAt: Date
}

type SealedSession = (
  | { keyId: string }
  /** The rules in it give access as long as this process has them. */
  | { person: Person }
) & {
  /** Milliseconds since 1970. */
  expiresAt: number
}

type WorkspaceName = Omit<WorkspaceAccess, 'level'>

// The relay does not learn when the provider locks a person out or changes the groups. A person signs in again with one click.
const personSessionMaxMs = 3_600_000

export const isSameWorkspace = (one: WorkspaceName, other: WorkspaceName | undefined) =>
  one.userSlug === other?.userSlug && one.workspaceSlug === other.workspaceSlug

const accessOf = ({ workspace: { userSlug, workspaceSlug }, level }: Actor): WorkspaceAccess => ({ userSlug, workspaceSlug, level })

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

export const signInRequired = () => new AppError('unauthorized', 'The session has ended. Sign in again.')

/**
 * Creates the sessions of the console. A session is a cookie that no script can read. It contains the id of the API key, but not the key
 * itself, or the person, and the end of the session, sealed with RELAY_SECRET_KEYS. So any API process can open it, and nothing is stored.
 * The key, or the access of the person, is looked up for each request: a session ends with the key.
 */
export const createSessions = ({ authenticator, keyRing, people, config }: SessionDeps) => {
  const links = createSignInLinks(keyRing)
  const baseUrl = baseUrlOf(config)
  const cookie = createCookie({ name: 'relay_session', path: '/', sameSite: 'Strict' }, config)

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
    const sealed = cookie.read(context)
    // It may be sealed by another installation on this host, or with a key that has been removed since.
    return sealed === undefined
      ? undefined
      : (openOrUndefined(keyRing, Buffer.from(sealed, 'base64url'), sessionCookie) as SealedSession | undefined)
  }

  const openCurrent = (context: Context): SealedSession | undefined => {
    const session = isFromConsole(context) ? open(context) : undefined
    return session && session.expiresAt > Date.now() ? session : undefined
  }

  /** Writes the cookie of a new session. */
  const begin = (context: Context, session: SealedSession): void => {
    const maxAgeSeconds = Math.max(1, Math.floor((session.expiresAt - Date.now()) / 1_000))
    cookie.write(context, keyRing.seal(session, sessionCookie).toString('base64url'), maxAgeSeconds)
  }

  /** @param wanted the workspace to act in, if the session gives access to several */
  const resume = async (session: SealedSession, wanted?: WorkspaceName): Promise<Session | undefined> => {
    const expiresAt = new Date(session.expiresAt)
    if ('keyId' in session) {
      const actor = await authenticator.resume(session.keyId)
      return actor && { actor, workspaces: [accessOf(actor)], expiresAt }
    }
    const workspaces = (await people?.list(session.person)) ?? []
    const current = workspaces.find((each) => isSameWorkspace(each, wanted)) ?? workspaces[0]
    const actor = current && (await people?.resume(session.person, current))
    return actor && { actor, workspaces, expiresAt }
  }

  /** Returns the session of a request from the console, if it has not ended. */
  const find = async (context: Context, wanted?: WorkspaceName): Promise<Session | undefined> => {
    const session = openCurrent(context)
    return session && resume(session, wanted)
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
      begin(context, { keyId: actor.id, expiresAt })
      return { actor, workspaces: [accessOf(actor)], expiresAt: new Date(expiresAt) }
    },

    /** Signs in a person whom the provider has identified. @returns false if the person may use no workspace */
    startFor: async (context: Context, person: Person): Promise<boolean> => {
      const session = { person, expiresAt: Date.now() + Math.min(config.RELAY_SESSION_TTL_MS, personSessionMaxMs) }
      if (!(await resume(session))) return false
      begin(context, session)
      return true
    },

    /** Removes the cookie from the browser. */
    end: cookie.remove,

    /** Returns true if a request has a session, whether it has ended or not. */
    isSent: (context: Context): boolean => cookie.read(context) !== undefined,

    /** Returns the caller of a request to a workspace. @throws AppError 401 if the session has ended, or gives no access to it */
    authenticate: async (context: Context, workspace: WorkspaceName): Promise<Actor> => {
      const session = openCurrent(context)
      if (!session) throw signInRequired()
      const actor = 'keyId' in session ? await authenticator.resume(session.keyId) : await people?.resume(session.person, workspace)
      if (!actor || !isSameWorkspace(actor.workspace, workspace)) throw signInRequired()
      return actor
    },
  }
}

export type Sessions = ReturnType<typeof createSessions>
