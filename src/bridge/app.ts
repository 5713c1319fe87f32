import type { Context, Middleware } from 'koa'
import { z } from 'zod'
import type { CaptureQueue } from '../capture/queue.ts'
import type { Config } from '../config.ts'
import { record } from '../db/audit.ts'
import type { Database } from '../db/database.ts'
import { createWorkspaces } from '../db/workspaces.ts'
import { functionName, rfcCredentials } from '../domain/rfc-settings.ts'
import { workspaceSettings } from '../domain/settings.ts'
import { AppError } from '../errors.ts'
import { checkIsJson, parseJson, readBytes } from '../http/body.ts'
import { answerErrors } from '../http/errors.ts'
import { bodyRefusal } from '../http/faults.ts'
import type { Log } from '../log.ts'
import type { Actor, Authenticator } from '../security/api-keys.ts'
import { allows } from '../security/levels.ts'
import { rfcCredentialsOf, type KeyRing } from '../security/seal.ts'
import { createExchange } from './exchange.ts'
import { followLink } from './object-link.ts'
import { callFunction, type RfcClientDeps, type RfcTarget } from './rfc-client.ts'
import type { RfcCall, RfcValue } from './soap.ts'

export interface BridgeDeps {
  db: Database
  authenticator: Authenticator
  keyRing: KeyRing
  captures: Pick<CaptureQueue, 'passingBody' | 'add'>
  outbound: RfcClientDeps['outbound']
  config: RfcClientDeps['config'] & Pick<Config, 'RELAY_API_BODY_MAX_BYTES'>
  log: Log
}

const ownPath = /^\/bridge\/([^/]+)\/([^/]+)(?:\/(.*))?$/
const callPath = /^rfc\/([^/]+)$/
const level = 'member'

// in whatever case: ABAP knows none
const parameterName = z.string().regex(/^(\/\w{1,10}\/)?[A-Za-z]\w{0,29}$/, 'must be the name of a parameter or field')
// what has come through JSON.parse and holds no control character that XML cannot
const text = z.string().regex(/^[^\p{Cc}]*(?:[\t\n\r][^\p{Cc}]*)*$/u, 'holds control characters')
const value: z.ZodType<RfcValue> = z.lazy(() =>
  z.union([text, z.number(), z.boolean(), z.null(), z.array(value), z.record(parameterName, value)]),
)
const callBody = z.strictObject({
  imports: z.record(parameterName, value).default({}),
  tables: z.record(parameterName, z.array(value)).default({}),
})

/** Remote function calls over SOAP. Every request is captured, refused ones too. Passes on whatever is not below /bridge/{userSlug}/{workspaceSlug}. */
export const createBridge = (deps: BridgeDeps): Middleware => {
  const errors = answerErrors(deps.log)
  return async (context, next) => {
    const [, userSlug, workspaceSlug, rest = ''] = ownPath.exec(context.path) ?? []
    if (userSlug === undefined || workspaceSlug === undefined) return next()
    const [, named] = callPath.exec(rest) ?? []
    const exchange = createExchange(context, { userSlug, workspaceSlug }, deps.captures)
    await errors(context, async () => {
      // before anything is refused: what was refused is captured with its body
      const bytes = await readBytes(context, deps.config.RELAY_API_BODY_MAX_BYTES)
      exchange.received(bytes)
      if (named === undefined) throw new AppError('not_found', 'There is nothing at this address.')
      if (context.method !== 'POST') {
        context.set('allow', 'POST')
        throw new AppError('method_not_allowed', `${context.method} is not possible here; POST would be.`)
      }
      const actor = await deps.authenticator.authenticate(context.get('authorization'), context.ip, { userSlug, workspaceSlug })
      if (!allows(actor.level, level)) throw new AppError('forbidden', `This needs an API key of level ${level}; yours is ${actor.level}.`)
      checkIsJson(context)
      const body = callBody.safeParse(parseJson(bytes), { reportInput: true })
      if (!body.success) throw bodyRefusal(body.error)
      context.set('cache-control', 'no-store')
      context.body = await carryOut(context, actor, { functionName: readFunctionName(named), ...body.data }, deps)
    })
    return exchange.end()
  }
}

const carryOut = async (context: Context, actor: Actor, call: RfcCall, deps: BridgeDeps) => {
  const { db, log } = deps
  const workspaceId = actor.workspace.id
  const target = await findTarget(workspaceId, call.functionName, deps)
  // before the call: one that is cut off may have done something
  await recordCall(db, actor, call, context.response.get('x-relay-request-id'))

  const hangUp = new AbortController()
  context.res.once('close', () => hangUp.abort())
  const answer = await callFunction(target, call, hangUp.signal, deps)
  if (answer.kind === 'exception') {
    throw new AppError('abap_exception', answer.message ? `${answer.name}: ${answer.message}` : answer.name, {
      details: [{ path: 'exception', message: answer.name }],
    })
  }
  // the function has done its work: that it was heard of here as well cannot change its answer
  await followLink(db, workspaceId, call).catch((thrown: unknown) =>
    log.error({ err: thrown }, 'the metadata of a linked document was not set'),
  )
  return { exports: answer.exports, tables: answer.tables }
}

const recordCall = (db: Database, actor: Actor, call: RfcCall, requestId: string) =>
  db.transaction((trx) =>
    record(trx, {
      workspaceId: actor.workspace.id,
      event: 'rfc.call',
      subjectId: requestId,
      description: `The function ${call.functionName} was called.`,
      metadata: { function: call.functionName, request_id: requestId },
      actor: { type: 'api_key', userId: actor.userId },
    }),
  )

const readFunctionName = (named: string): string => {
  try {
    return functionName.parse(decodeURIComponent(named).toUpperCase())
  } catch (thrown) {
    throw new AppError('not_found', 'The address does not end in the name of a function.', { cause: thrown })
  }
}

/** @throws AppError where the workspace names no system, or does not let this function be called */
const findTarget = async (workspaceId: string, called: string, { db, keyRing }: BridgeDeps): Promise<RfcTarget> => {
  const workspaces = createWorkspaces(db)
  const { rfc } = workspaceSettings((await workspaces.findSettings(workspaceId)).settings)
  if (!rfc) throw new AppError('conflict', 'This workspace names no system to call: set rfc in its settings.')
  if (!rfc.allowedFunctions.includes(called)) {
    throw new AppError('forbidden', `The settings do not allow ${called}: add it to rfc.allowed_functions.`)
  }
  const sealed = await workspaces.findRfcCredentials(workspaceId)
  if (!sealed) throw new AppError('conflict', 'There are no credentials for the system: set rfc.credentials in the settings.')
  return { ...rfc, credentials: rfcCredentials.parse(keyRing.open(sealed, rfcCredentialsOf(workspaceId))) }
}
