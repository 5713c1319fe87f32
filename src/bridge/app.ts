import type { Context, Middleware } from 'koa'
import type { SetMetadataOf } from '../archive/metadata.ts'
import { createConcurrencyLimit } from '../base/concurrency-limit.ts'
import { AppError } from '../base/errors.ts'
import { methodNotAllowed, nothingHere } from '../base/refusals.ts'
import type { CaptureQueue } from '../capture/queue.ts'
import { actorOf, record } from '../db/audit.ts'
import type { Database } from '../db/database.ts'
import type { Installation } from '../db/installation.ts'
import { hasPassed, hopsHeader } from '../domain/headers.ts'
import { functionName } from '../domain/rfc-settings.ts'
import { answerErrors, type ErrorDeps } from '../http/errors.ts'
import { checkIsJson, checkValues, maxJsonBytes, readBytes } from '../http/input.ts'
import { nameActor } from '../http/request-log.ts'
import { NotBegunError, TaskLimitError, type RunTask } from '../http/task-limits.ts'
import { prepareCallTask, readAnswerTask } from '../rfc/call.ts'
import { applyObjectLink } from '../rfc/object-link.ts'
import { callFunction, type RfcClientDeps } from '../rfc/rfc-client.ts'
import { findRfcTarget, type RfcTargetDeps } from '../rfc/rfc-target.ts'
import type { Actor, Authenticator } from '../security/api-keys.ts'
import { demandLevel } from '../security/levels.ts'
import { createExchange } from './exchange.ts'

export interface BridgeDeps extends ErrorDeps, RfcTargetDeps {
  db: Database
  setMetadata: SetMetadataOf
  installation: Installation
  authenticator: Authenticator
  captures: Pick<CaptureQueue, 'streamingBody' | 'add'>
  outbound: RfcClientDeps['outbound']
  runOnThread: RunTask
  config: RfcClientDeps['config'] & ErrorDeps['config']
  limits?: Partial<typeof bridgeLimits>
}

const bridgeLimits = {
  maxBytes: maxJsonBytes,
  /** Keys and values in the body of a call. Reading them takes a thread half a second. */
  maxValues: 50_000,
  /** Calls at a time, in one process. */
  maxConcurrent: 64,
  maxConcurrentPerWorkspace: 16,
  /** Longest wait until a thread begins to read the body. */
  threadWaitMaxMs: 30_000,
}

const ownPath = /^\/bridge\/([^/]+)\/([^/]+)(?:\/(.*))?$/
const functionPath = /^rfc\/([^/]+)$/
const level = 'member'

/**
 * Creates the middleware for remote function calls, which it sends over SOAP. Every request is captured, including
 * refused ones. Requests outside /bridge/{userSlug}/{workspaceSlug} go to the next middleware.
 */
export const createBridge = (deps: BridgeDeps): Middleware => {
  const errors = answerErrors(deps, 'bridge')
  const limits = { ...bridgeLimits, ...deps.limits }
  const calls = createConcurrencyLimit(() => ({ total: limits.maxConcurrent, perWorkspace: limits.maxConcurrentPerWorkspace }))
  return async (context, next) => {
    const [, userSlug, workspaceSlug, subPath = ''] = ownPath.exec(context.path) ?? []
    if (userSlug === undefined || workspaceSlug === undefined) return next()
    context.state['route'] = '/bridge/:userSlug/:workspaceSlug'
    const exchange = createExchange(context, { userSlug, workspaceSlug }, deps.captures)
    await errors(context, async () => {
      const hops = context.get(hopsHeader)
      if (hops !== '' && hasPassed(hops, await deps.installation.id())) {
        throw new AppError('loop_detected', 'This relay has sent the request itself. A destination leads back to it: correct its url.')
      }
      const encodedName = functionPath.exec(subPath)?.[1]
      if (encodedName === undefined) throw nothingHere()
      if (context.method !== 'POST') throw methodNotAllowed(context, ['POST'])
      const actor = await deps.authenticator.authenticate(context.get('authorization'), context.ip, { userSlug, workspaceSlug })
      nameActor(context, actor)
      demandLevel(actor, level)
      // Read the body only now, so that a client without a key cannot fill the memory and the table of captured requests.
      const bytes = await readBytes(context, limits.maxBytes)
      exchange.received(bytes)
      checkIsJson(context)
      checkValues(bytes, limits.maxValues)
      const calledFunction = readFunctionName(encodedName)
      const end = calls.enter({
        workspaceId: actor.workspace.id,
        caller: `${actor.type} ${actor.id}`,
        what: 'running remote function calls',
        retryAfterSeconds: busyRetryAfterSeconds,
      })
      try {
        context.set('cache-control', 'no-store')
        context.body = await executeCall(context, actor, { calledFunction, bytes, waitMaxMs: limits.threadWaitMaxMs }, deps)
        context.type = 'json'
      } finally {
        end()
      }
    })
    return exchange.end()
  }
}

const busyRetryAfterSeconds = 5

const tooManyCalls = (cause?: unknown) =>
  new AppError('unavailable', 'Too many remote function calls are running. Try again shortly.', {
    retryAfterSeconds: busyRetryAfterSeconds,
    cause,
  })

// A body within the limits is read in half a second.
const prepareMaxMs = 30_000
// The function has been called: its answer waits for a thread as long as it takes. Reading one of the largest size takes a second.
const answerLimits = { workMaxMs: 60_000 }

const refuseAnswer = (thrown: unknown): never => {
  if (!(thrown instanceof TaskLimitError)) throw thrown
  throw new AppError('rfc_failed', `The function was called, and its answer cannot be read: ${thrown.message}.`, { cause: thrown })
}

/** Makes a call. @returns the body of the response */
const executeCall = async (
  context: Context,
  actor: Actor,
  { calledFunction, bytes, waitMaxMs }: { calledFunction: string; bytes: Buffer; waitMaxMs: number },
  deps: BridgeDeps,
): Promise<Buffer> => {
  const { db, setMetadata, runOnThread, log } = deps
  const workspaceId = actor.workspace.id
  const callerGone = new AbortController()
  context.res.once('close', () => callerGone.abort())

  const prepared = { functionName: calledFunction, bytes: new Uint8Array(bytes) }
  const call = await runOnThread(prepareCallTask, workspaceId, prepared, undefined, { waitMaxMs, workMaxMs: prepareMaxMs }).catch(
    (thrown: unknown) => {
      // Nothing was sent, so the client may send the call again.
      throw thrown instanceof NotBegunError || thrown instanceof TaskLimitError ? tooManyCalls(thrown) : thrown
    },
  )
  if (call.kind === 'refused') throw new AppError(call.code, call.message, call.details && { details: call.details })
  const target = await findRfcTarget(workspaceId, calledFunction, deps)
  // Record the call before it is sent, because an aborted call may still have had an effect.
  await recordCall(db, actor, calledFunction, context.response.get('x-relay-request-id'))

  const answer = await callFunction(
    target,
    { ...call, readAnswer: (input) => runOnThread(readAnswerTask, workspaceId, input, undefined, answerLimits).catch(refuseAnswer) },
    callerGone.signal,
    deps,
  )
  if (answer.kind === 'exception') {
    throw new AppError('abap_exception', answer.message ? `${answer.name}: ${answer.message}` : answer.name, {
      details: [{ path: 'exception', message: answer.name }],
    })
  }
  // The function has completed. A failure to update the metadata must not change the answer.
  if (call.link) {
    await applyObjectLink(setMetadata, workspaceId, call.link, actorOf(actor)).catch((thrown: unknown) => {
      // The source system may link a document that it has stored elsewhere.
      const isElsewhere = thrown instanceof AppError && thrown.code === 'not_found'
      if (!isElsewhere) log.error({ err: thrown }, 'could not set the metadata of a linked document')
    })
  }
  return Buffer.from(answer.body)
}

const recordCall = (db: Database, actor: Actor, calledFunction: string, requestId: string) =>
  db.transaction((trx) =>
    record(trx, {
      workspaceId: actor.workspace.id,
      event: 'rfc.call',
      subjectId: requestId,
      description: `Function ${calledFunction} was called.`,
      metadata: { function: calledFunction, request_id: requestId },
      actor: actorOf(actor),
    }),
  )

const readFunctionName = (encodedName: string): string => {
  try {
    return functionName.parse(decodeURIComponent(encodedName).toUpperCase())
  } catch (thrown) {
    throw new AppError('not_found', 'The path does not end with a valid function name.', { cause: thrown })
  }
}
