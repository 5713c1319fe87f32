import { ContentServerFailure } from '../../content-server/failure.ts'
import { DeliveryError } from '../connector.ts'
import type { Refusal } from '../shared/earlier-copy.ts'
import { toDeliveryError } from '../shared/errors.ts'
import { isFinalAnswer } from '../shared/final-answers.ts'
import { retryAfterMs } from '../shared/retry-after.ts'

/** Returns whether a refusal can mean that the component is stored and may not be replaced. The protocol has no code for that. */
export const refusalOf = (thrown: unknown): Refusal =>
  thrown instanceof ContentServerFailure && [403, 405, 409, 412, 423].includes(thrown.status ?? 0) ? 'perhaps' : undefined

/** Maps what a content server, or the way to it, has refused. @param isSigned whether the requests are signed */
export const contentServerError = (thrown: unknown, isSigned: boolean): DeliveryError => {
  if (!(thrown instanceof ContentServerFailure)) return toDeliveryError(thrown, 'request_failed')
  const { message, status, retryAfter } = thrown
  if (thrown.code === 'unreachable') return toDeliveryError(thrown.cause ?? thrown, 'request_failed')
  if (status === undefined || thrown.code === 'malformed_answer' || thrown.code === 'too_large') {
    return new DeliveryError('answer_unreadable', `${message}; check that url is the address of a content server`, { cause: thrown })
  }
  const answer = { status, body: message }
  const waitMs = retryAfterMs(retryAfter, new Date())
  const permanent = isFinalAnswer({ status, waitMs, text: message, isPage: thrown.isPage })
  const details = { permanent, retryAfterMs: waitMs, answer }
  if (status === 401) {
    const remedy = isSigned
      ? 'activate the certificate there for the repository and for auth_id, and compare the clocks'
      : 'save auth_id, certificate and private_key'
    return new DeliveryError('credentials_refused', `${message}: it refuses the request; ${remedy}`, details)
  }
  if (status >= 300 && status < 400) {
    return new DeliveryError(`http_${status}`, `${message}, a redirect, which the relay does not follow; correct url`, {
      permanent: false,
      answer,
    })
  }
  return new DeliveryError(`http_${status}`, message, details)
}

/** A repository in which no document can be created: 404 says nothing else then. */
export const repositoryMissing = ({ message }: ContentServerFailure, repository: string): DeliveryError =>
  new DeliveryError('repository_missing', `${message}: it does not know the repository ${repository}, or there is no content server at url`)
