import { types } from 'node:util'
import { messageOf } from '../base/errors.ts'
import { plainText } from '../base/text.ts'
import { ForwardProxyError } from '../security/forward-proxy.ts'

const codes = {
  400: 'bad_request',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  406: 'not_acceptable',
  409: 'conflict',
} as const

export type FailureCode =
  | (typeof codes)[keyof typeof codes]
  /** A status of 500 or more. */
  | 'server_error'
  /** A status that the protocol does not have. */
  | 'unexpected_status'
  /** The server answered something else than the protocol says, or less than it announced. */
  | 'malformed_answer'
  /** The answer is longer than the caller allows. */
  | 'too_large'
  /** No answer, or one that broke off. `cause` is the error of the network. */
  | 'unreachable'

/** Why a content server did not do what it was asked. The message is for operators, and repeats what the server says. */
export class ContentServerFailure extends Error {
  readonly code: FailureCode
  /** The status of the answer, if there is one. */
  readonly status: number | undefined
  /** The time to wait that the answer names: seconds or a date. */
  readonly retryAfter: string | undefined
  /** `true` if the answer is a page without the header of the protocol for errors: something in between may have sent it. */
  readonly isPage: boolean

  constructor(
    code: FailureCode,
    message: string,
    options: { status?: number; cause?: unknown; retryAfter?: string | undefined; isPage?: boolean } = {},
  ) {
    super(plainText(message), { cause: options.cause })
    this.name = 'ContentServerFailure'
    this.code = code
    this.status = options.status
    this.retryAfter = options.retryAfter
    this.isPage = options.isPage ?? false
  }
}

export type Outcome<T> = { ok: true; value: T } | { ok: false; failure: ContentServerFailure }

export const malformed = (message: string): ContentServerFailure =>
  new ContentServerFailure('malformed_answer', `the answer is not that of a content server: ${message}`)

/** An answer that differs from what the server has told of the component before. */
export const contradiction = (compId: string, problem: string): ContentServerFailure =>
  new ContentServerFailure('malformed_answer', `the content server contradicts itself about component ${compId}: ${problem}`)

/** @param description what the server says about it; empty if nothing */
export const refusedBy = (
  status: number,
  description: string,
  { retryAfter, isPage }: { retryAfter?: string | undefined; isPage?: boolean } = {},
): ContentServerFailure => {
  const known = (codes as Record<number, FailureCode | undefined>)[status]
  const code = known ?? (status >= 500 ? 'server_error' : 'unexpected_status')
  return new ContentServerFailure(code, `the content server answers ${status}${description && `: ${description}`}`, {
    status,
    retryAfter,
    ...(isPage !== undefined && { isPage }),
  })
}

/** Converts anything thrown while an answer is awaited or read. */
export const toFailure = (thrown: unknown): ContentServerFailure => {
  if (thrown instanceof ContentServerFailure) return thrown
  return new ContentServerFailure('unreachable', `the content server cannot be reached: ${messageOf(firstCause(thrown))}`, {
    cause: thrown,
  })
}

/** Returns the error that names the reason. */
const firstCause = (thrown: unknown): unknown => {
  // Its cause names the address of the proxy.
  if (thrown instanceof ForwardProxyError) return thrown
  // isNativeError instead of instanceof: under a test runner that sandboxes modules, Node's own errors come from another realm.
  const cause = types.isNativeError(thrown) ? thrown.cause : undefined
  return types.isNativeError(cause) ? firstCause(cause) : thrown
}
