import type { Context } from 'koa'
import type { Actor } from '../security/api-keys.ts'
import { createSessions, type SessionDeps } from './sessions.ts'

/** Returns the caller of a request to a workspace. @throws AppError 401 or 429 */
export type Authenticate = (context: Context, workspace: { userSlug: string; workspaceSlug: string }) => Promise<Actor>

/**
 * Creates the authentication of requests to the API: by the key in the Authorization header or, if there is none and the request comes from
 * the console, by the session.
 */
export const createAuthenticate = (deps: SessionDeps): Authenticate => {
  const sessions = createSessions(deps)
  return (context, workspace) => {
    const authorization = context.get('authorization')
    return authorization === '' && sessions.isSent(context)
      ? sessions.authenticate(context, workspace)
      : deps.authenticator.authenticate(authorization, context.ip, workspace)
  }
}
