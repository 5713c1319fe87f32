import type { Context, Middleware } from 'koa'
import { AppError } from '../base/errors.ts'
import { logFailure } from '../base/failure-log.ts'
import { newId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { nothingHere } from '../base/refusals.ts'
import type { Config } from '../config/config.ts'
import { isLostRace, isOutage, isWorkspaceGone } from '../db/errors.ts'
import { relayUrlOf } from './input.ts'
import type { RequestLog, RequestState, Surface } from './request-log.ts'

const outageRetryAfterSeconds = 5
const lostRaceRetryAfterSeconds = 1

const refusalOf = (thrown: unknown): AppError | undefined => {
  if (thrown instanceof AppError) return thrown
  if (isWorkspaceGone(thrown)) return new AppError('not_found', 'The workspace does not exist any more.', { cause: thrown })
  if (isLostRace(thrown)) {
    return new AppError('unavailable', 'The change conflicted with a concurrent change and was rolled back. Try again.', {
      retryAfterSeconds: lostRaceRetryAfterSeconds,
      cause: thrown,
    })
  }
  if (!isOutage(thrown)) return undefined
  return new AppError('unavailable', 'The database is unavailable. Try again shortly.', {
    retryAfterSeconds: outageRetryAfterSeconds,
    cause: thrown,
  })
}

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Returns what a failure, which is no refusal of what was asked for, has left of a change: true if nothing was changed, because no endpoint
 * had begun or because its transaction was rolled back; false if the relay does not know, for example because the database was lost at the
 * commit. Undefined if the request asked for no change.
 */
const hasChangedNothing = (context: Context, surface: Surface, thrown: unknown): boolean | undefined => {
  if (surface !== 'api' || safeMethods.has(context.method)) return undefined
  const { hasBegun }: RequestState = context.state
  return !hasBegun || thrown instanceof AppError || isLostRace(thrown)
}

export interface ErrorDeps {
  log: Log
  requestLog: Pick<RequestLog, 'begin'>
  config: Pick<Config, 'RELAY_BASE_URL'>
}

/** Assigns an id to every request, logs the request, and converts thrown errors to the error response of docs/errors.md. */
export const answerErrors =
  ({ log, requestLog, config }: ErrorDeps, surface: Surface): Middleware =>
  async (context, next) => {
    const requestId = newId()
    context.set('x-relay-request-id', requestId)
    requestLog.begin(context, surface, requestId)
    const state: RequestState = context.state
    try {
      await next()
    } catch (thrown) {
      const refusal = refusalOf(thrown)
      const request = { request_id: requestId, method: context.method, path: context.path }
      const nothingChanged = hasChangedNothing(context, surface, thrown)
      const effect = nothingChanged === undefined ? {} : { nothing_changed: nothingChanged }
      const answer = (status: number, code: string, message: string, more: object) => {
        state.errorCode = code
        context.status = status
        const docUrl = `${relayUrlOf(context, config.RELAY_BASE_URL)}/docs/errors#${code}`
        context.body = { error: { code, message, request_id: requestId, doc_url: docUrl, ...more } }
      }
      if (!refusal) {
        log.error({ ...request, err: thrown }, 'request failed with an unexpected error')
        return answer(500, 'internal_error', 'Unexpected server error.', effect)
      }
      const { status, code, message, details } = refusal
      if (code === 'unavailable') logFailure(log, refusal.cause ?? refusal, 'request refused: a dependency is unavailable', request)
      if (code === 'unauthorized') context.set('www-authenticate', 'Bearer')
      if (refusal.retryAfterSeconds !== undefined) context.set('retry-after', String(refusal.retryAfterSeconds))
      answer(status, code, message, { ...(code === 'unavailable' && effect), ...(details && { details }) })
    }
  }

/** Answers 404. Must be the last middleware. */
export const refuseUnknown = (deps: Omit<ErrorDeps, 'config'>): Middleware => {
  const errors = answerErrors({ ...deps, config: {} }, 'other')
  return (context) => errors(context, () => Promise.reject(nothingHere()))
}
