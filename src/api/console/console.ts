import { extname } from 'node:path'
import type { Context, Middleware } from 'koa'
import { z } from 'zod'
import { basePathOf } from '../../access/cookies.ts'
import { createSessions, isSameWorkspace, signInRequired, type Session, type SessionDeps } from '../../access/sessions.ts'
import { bodyRefusal, methodNotAllowed, nothingHere } from '../../base/refusals.ts'
import type { Config } from '../../config/config.ts'
import { snakeCased } from '../../domain/casing.ts'
import { compressText } from '../../http/browsers.ts'
import { answerErrors, type ErrorDeps } from '../../http/errors.ts'
import { readJson } from '../../http/input.ts'
import { nameActor } from '../../http/request-log.ts'
import type { WorkspaceStates } from '../../observe/workspace-states.ts'
import { callbackPath } from '../../security/oidc.ts'
import { entityTagOf } from '../endpoint.ts'
import type { EventStreams } from './event-streams.ts'
import { loadConsoleFiles, type ConsoleFile } from './files.ts'
import { createPage, type Page } from './page.ts'
import { describeRequests } from './request-schemas.ts'
import { createSignIn, startPath, type SignInDeps } from './sign-in.ts'

type ConsoleConfig = SessionDeps['config'] &
  Pick<Config, 'TEMPORAL_UI_URL'> & {
    temporal: Pick<Config['temporal'], 'namespace'>
  }

export interface ConsoleDeps extends Omit<SessionDeps, 'config'>, ErrorDeps {
  config: ConsoleConfig
  eventStreams: Pick<EventStreams, 'open'>
  workspaceStates: WorkspaceStates
  /** Undefined if people cannot sign in. */
  signIn?: Pick<SignInDeps, 'settings' | 'provider' | 'failures'> | undefined
}

/** Returns the workspace that a page shows, of those that its session gives access to. */
const wantedWorkspace = (context: Context) => {
  const [userSlug, workspaceSlug] = String(context.query['workspace'] ?? '').split('/')
  return userSlug !== undefined && workspaceSlug !== undefined ? { userSlug, workspaceSlug } : undefined
}

const assetMaxAgeSeconds = 365 * 86_400

const credential = z.union([z.strictObject({ key: z.string() }), z.strictObject({ token: z.string() })])

interface Loaded {
  page: Page
  pageTag: string
  files: ReadonlyMap<string, ConsoleFile>
}

const load = async (basePath: string): Promise<Loaded> => {
  const { files, digest } = await loadConsoleFiles(describeRequests())
  const page = createPage(basePath, files, digest)
  return { page, pageTag: entityTagOf(page), files: new Map(files.map((file) => [`/console/assets/${digest}/${file.name}`, file])) }
}

/** Returns the address of the workflows of this installation in the Temporal UI, to which an encoded workflow id is appended. */
const workflowsUrl = ({ TEMPORAL_UI_URL: url, temporal }: ConsoleConfig): string | null =>
  url === undefined ? null : `${url.replace(/\/+$/, '')}/namespaces/${encodeURIComponent(temporal.namespace ?? 'default')}/workflows/`

/** Leads from the address of the relay alone, which people open first, to the console. */
export const leadToConsole = (deps: ErrorDeps): Middleware => {
  const address = `${basePathOf(deps.config)}/console`
  const errors = answerErrors(deps, 'other')
  return (context, next) => {
    if (context.path !== '/' || !['GET', 'HEAD'].includes(context.method)) return next()
    return errors(context, async () => context.redirect(address))
  }
}

/** Serves the console, and its sign-in: every request below `/console`. */
export const createConsole = (deps: ConsoleDeps): Middleware => {
  const { config, eventStreams } = deps
  const errors = answerErrors(deps, 'console')
  const compress = compressText()
  const sessions = createSessions(deps)
  const temporalWorkflowsUrl = workflowsUrl(config)
  let loaded: Promise<Loaded> | undefined
  const ensureLoaded = () => {
    loaded ??= load(basePathOf(config))
    return loaded
  }

  const meta = deps.signIn && { meta: { provider: deps.signIn.settings.name } }

  const present = ({ actor, workspaces, expiresAt }: Session) => ({
    ...meta,
    data: {
      type: 'session',
      attributes: {
        user_slug: actor.workspace.userSlug,
        workspace_slug: actor.workspace.workspaceSlug,
        level: actor.level,
        key_id: actor.type === 'api_key' ? actor.id : null,
        person: actor.type === 'user' ? { id: actor.id, name: actor.name } : null,
        workspaces: workspaces.map(({ userSlug, workspaceSlug, level }) => ({ user_slug: userSlug, workspace_slug: workspaceSlug, level })),
        expires_at: expiresAt.toISOString(),
        temporal_workflows_url: temporalWorkflowsUrl,
      },
    },
  })

  const answerSession = async (context: Context) => {
    context.set('cache-control', 'no-store')
    if (context.method === 'GET' || context.method === 'HEAD') {
      const session = await sessions.find(context, wantedWorkspace(context))
      // Not 401: nothing is wrong with a browser that is not signed in.
      context.body = session ? present(session) : { data: null, ...meta }
      return
    }
    if (context.method === 'POST') {
      const json = await readJson(context)
      const parsed = credential.safeParse(json, { reportInput: true })
      if (!parsed.success) throw bodyRefusal(parsed.error)
      const session = await sessions.start(context, 'key' in parsed.data ? { key: parsed.data.key.trim() } : parsed.data)
      nameActor(context, session.actor)
      context.body = present(session)
      return
    }
    if (context.method !== 'DELETE') throw methodNotAllowed(context, ['DELETE', 'GET', 'HEAD', 'POST'])
    sessions.end(context)
    context.status = 204
  }

  /** Answers how the workspaces are that the session gives access to, and no other. */
  const answerWorkspaces = async (context: Context) => {
    if (context.method !== 'GET' && context.method !== 'HEAD') throw methodNotAllowed(context, ['GET', 'HEAD'])
    const session = await sessions.find(context, wantedWorkspace(context))
    if (!session) throw signInRequired()
    nameActor(context, session.actor)
    context.set('cache-control', 'no-store')
    const states = await deps.workspaceStates.list(session.workspaces)
    context.body = { data: states.map(({ id, ...state }) => ({ id, type: 'workspace_state', attributes: snakeCased(state) })) }
  }

  const answerEvents = async (context: Context) => {
    if (context.method !== 'GET' && context.method !== 'HEAD') throw methodNotAllowed(context, ['GET', 'HEAD'])
    const wanted = wantedWorkspace(context)
    const findActor = async () => {
      const actor = (await sessions.find(context, wanted))?.actor
      return actor && (!wanted || isSameWorkspace(actor.workspace, wanted)) ? actor : undefined
    }
    const actor = await findActor()
    if (!actor) throw signInRequired()
    nameActor(context, actor)
    await eventStreams.open(context, actor, async () => (await findActor()) !== undefined)
  }

  const signIn = deps.signIn && createSignIn({ ...deps, ...deps.signIn, sessions })

  const answers: Record<string, (context: Context) => Promise<void>> = {
    '/console/session': answerSession,
    '/console/events': answerEvents,
    '/console/workspace-states': answerWorkspaces,
    ...(signIn && { [startPath]: signIn.start, [callbackPath]: signIn.finish }),
  }

  const answerFile = async (context: Context) => {
    if (context.method !== 'GET' && context.method !== 'HEAD') throw methodNotAllowed(context, ['GET', 'HEAD'])
    const { page, pageTag, files } = await ensureLoaded()
    if (context.path.startsWith('/console/assets/')) {
      const file = files.get(context.path)
      // A page of another version asks for its own files.
      if (!file) throw nothingHere()
      context.state['isAsset'] = true
      context.set('cache-control', `public, max-age=${assetMaxAgeSeconds}, immutable`)
      context.type = extname(file.name)
      context.body = file.body
      return
    }
    // The page shows what the rest of the path names, and says so if nothing has that name.
    context.set({
      'cache-control': 'no-cache',
      'content-security-policy': page.policy,
      'cross-origin-opener-policy': 'same-origin',
      'referrer-policy': 'same-origin',
      etag: pageTag,
    })
    context.type = 'html'
    context.status = 200
    if (context.fresh) context.status = 304
    else context.body = page.html
  }

  return (context) =>
    errors(context, async () => {
      await compress(context, () => (answers[context.path] ?? answerFile)(context))
    })
}
