import { messageOf } from '../base/errors.ts'
import type { Config } from '../config/config.ts'

// Status codes of gRPC.
const invalidArgument = 3
export const deadlineExceeded = 4
const notFound = 5
const permissionDenied = 7
const resourceExhausted = 8
const unimplemented = 12
const unavailable = 14
const unauthenticated = 16

// The native client of the worker has the status in its text only.
const nativeStatus = /Status \{ code: (\w+)/
const nativeCodes: Record<string, number> = {
  DeadlineExceeded: deadlineExceeded,
  ResourceExhausted: resourceExhausted,
  NotFound: notFound,
  PermissionDenied: permissionDenied,
  Unimplemented: unimplemented,
  Unavailable: unavailable,
  Unauthenticated: unauthenticated,
}

/** Returns the gRPC status of an error, or of the error that caused it. */
const codeOf = (thrown: unknown): number | undefined => {
  if (!(thrown instanceof Error)) return undefined
  const { code } = thrown as { code?: unknown }
  if (typeof code === 'number') return code
  return nativeCodes[nativeStatus.exec(thrown.message)?.[1] ?? ''] ?? codeOf(thrown.cause)
}

/** Returns true if the error is one of a call to Temporal. */
export const isTemporalError = (thrown: unknown): boolean => codeOf(thrown) !== undefined

/** Returns true if the server does not permit or know the call, so that repeating it is of no use. */
export const isRefusal = (thrown: unknown): boolean => [permissionDenied, unimplemented].includes(codeOf(thrown) ?? -1)

/** Returns true if the server does not know what the call names. */
export const isNotFound = (thrown: unknown): boolean => codeOf(thrown) === notFound

/** Returns true if the server finds a value of the call invalid, for example a search attribute that is not registered. */
export const isInvalid = (thrown: unknown): boolean => codeOf(thrown) === invalidArgument

/** Returns true if the server takes no more calls at the moment, or was too slow. The client repeats refused calls while it has time. */
const isOverload = (thrown: unknown): boolean => [deadlineExceeded, resourceExhausted].includes(codeOf(thrown) ?? -1)

/**
 * Returns true if the server was not reached, was too slow, or takes no more calls at the moment, as gRPC says: other calls would fail as
 * well. Any other error concerns what the call is about, or was thrown before there was a call.
 */
export const isUnavailable = (thrown: unknown): boolean => isOverload(thrown) || codeOf(thrown) === unavailable

/** Explains a failed call to Temporal to an operator: what has failed, with the address, and what to check. */
export const explainTemporalError = (
  thrown: unknown,
  { connectionOptions, namespace = 'default' }: Config['temporal'],
): { message: string; remedy: string } => {
  const address = connectionOptions.address ?? '127.0.0.1:7233'
  const silent = {
    message: `Temporal does not answer at ${address}.`,
    remedy: 'Check that it runs, and that TEMPORAL_ADDRESS is correct.',
  }
  switch (codeOf(thrown)) {
    case permissionDenied:
    case unauthenticated:
      return {
        message: `Temporal at ${address} refuses the call in namespace ${namespace}.`,
        remedy: 'Check the API key or the client certificate (TEMPORAL_*).',
      }
    case unimplemented:
      return { message: `Temporal at ${address} does not offer this call.`, remedy: 'Upgrade the Temporal server.' }
    case notFound:
      return { message: `Temporal at ${address} has no namespace ${namespace}.`, remedy: 'Create it, or correct TEMPORAL_NAMESPACE.' }
    case deadlineExceeded:
    case unavailable:
      return silent
    default:
      return /connect/i.test(messageOf(thrown))
        ? silent
        : { message: `Temporal at ${address}: ${messageOf(thrown)}`, remedy: 'See the log of the Temporal server.' }
  }
}

/** Describes a failed call to Temporal for an operator in one line. */
export const describeTemporalError = (thrown: unknown, config: Config['temporal']): string => {
  const { message, remedy } = explainTemporalError(thrown, config)
  return `${message} ${remedy}`
}
