import { retryAfterOf } from './error.ts'
import { pause } from './pause.ts'

export type Fetch = (request: Request) => Promise<Response>

export interface RetryOptions {
  /** Repetitions of one request. 2 by default. */
  maxRetries?: number
  /** A longer `Retry-After` is not waited for. 60 by default. */
  maxWaitSeconds?: number
}

const idempotentMethods = new Set(['GET', 'HEAD', 'PUT', 'DELETE'])

/** Returns true if a request can be sent twice: it has the same effect, and its body is still there. */
const isRepeatable = ({ method, headers }: Request): boolean => {
  const contentType = headers.get('content-type')
  const hasStream = contentType !== null && !contentType.startsWith('application/json')
  return (idempotentMethods.has(method) || headers.has('idempotency-key')) && !hasStream
}

/**
 * Repeats a request that was answered with 429 or 503, after the time that `Retry-After` states, or after 1 and 2 seconds. Other requests than `GET`, `HEAD`,
 * `PUT` and `DELETE` are repeated only with an `Idempotency-Key`.
 */
export const retrying =
  (send: Fetch, { maxRetries = 2, maxWaitSeconds = 60 }: RetryOptions = {}): Fetch =>
  async (request) => {
    const retries = isRepeatable(request) ? maxRetries : 0
    for (let retry = 0; ; retry += 1) {
      // A body can be sent once.
      const response = await send(retry < retries ? request.clone() : request)
      const seconds = retryAfterOf(response) ?? 2 ** retry
      if (![429, 503].includes(response.status) || retry >= retries || seconds > maxWaitSeconds) return response
      await response.body?.cancel()
      await pause(seconds, request.signal)
    }
  }
