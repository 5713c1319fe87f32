import type { Middleware } from 'koa'
import { isLostRace, isOutage } from '../db/database.ts'
import { AppError } from '../errors.ts'
import { newId } from '../ids.ts'
import type { Log } from '../log.ts'
import { nothingHere } from './faults.ts'

const outageRetryAfterSeconds = 5
const lostRaceRetryAfterSeconds = 1

const refusalOf = (thrown: unknown): AppError | undefined => {
  if (thrown instanceof AppError) return thrown
  if (isLostRace(thrown)) {
    return new AppError('unavailable', 'Another change was in the way, and nothing was done. Please try again.', {
      retryAfterSeconds: lostRaceRetryAfterSeconds,
      cause: thrown,
    })
  }
  if (!isOutage(thrown)) return undefined
  return new AppError('unavailable', 'The service cannot reach its database. Please try again shortly.', {
    retryAfterSeconds: outageRetryAfterSeconds,
    cause: thrown,
  })
}

/** Names every request, and answers what is thrown below in the one envelope of docs/errors.md. */
export const answerErrors =
  (log: Log): Middleware =>
  async (context, next) => {
    const requestId = newId()
    context.set('x-relay-request-id', requestId)
    try {
      await next()
    } catch (thrown) {
      const refusal = refusalOf(thrown)
      const at = { request_id: requestId, method: context.method, path: context.path }
      if (!refusal) {
        log.error({ ...at, err: thrown }, 'a request ended in an unexpected error')
        context.status = 500
        context.body = { error: { code: 'internal_error', message: 'Something went wrong on our side.', request_id: requestId } }
        return
      }
      if (refusal.code === 'unavailable')
        log.warn({ ...at, err: refusal.cause ?? refusal }, 'a request was refused for lack of a dependency')
      if (refusal.code === 'unauthorized') context.set('www-authenticate', 'Bearer')
      if (refusal.retryAfterSeconds !== undefined) context.set('retry-after', String(refusal.retryAfterSeconds))
      context.status = refusal.status
      context.body = {
        error: {
          code: refusal.code,
          message: refusal.message,
          request_id: requestId,
          ...(refusal.details && { details: refusal.details }),
        },
      }
    }
  }

/** Comes last: what none before it has taken is not there. */
export const refuseUnknown = (log: Log): Middleware => {
  const errors = answerErrors(log)
  return (context) => errors(context, () => Promise.reject(nothingHere()))
}
