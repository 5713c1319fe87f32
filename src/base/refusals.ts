import type { Context } from 'koa'
import type { z } from 'zod'
import { AppError, type ErrorDetail } from './errors.ts'
import { noAlternativeMatches } from './issue-messages.ts'

type Issue = z.core.$ZodIssue

// A client mends the first ones and sends the request again.
const detailsMax = 100

const pathOf = (parts: PropertyKey[]) => parts.map(String).join('.')

/** Returns the issues of the union member with the fewest issues: the member that the caller most likely meant. */
const closest = (alternatives: Issue[][]): Issue[] => alternatives.toSorted((one, other) => one.length - other.length)[0] ?? []

/**
 * Converts zod issues to the details of an error response, with paths as they appear in the request. The messages name the expected value
 * and never quote the received one.
 */
export const detailsOf = (issues: readonly Issue[], prefix: PropertyKey[] = []): ErrorDetail[] =>
  issues.flatMap((issue) => {
    const path = [...prefix, ...issue.path]
    if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => ({ path: pathOf([...path, key]), message: 'unknown key' }))
    if (issue.code === 'invalid_union' && issue.errors.length > 0 && issue.message === noAlternativeMatches) {
      return detailsOf(closest(issue.errors), path)
    }
    return [{ path: pathOf(path), message: issue.message }]
  })

/** Returns the refusal of a malformed request. */
export const invalidRequest = (what: string, issues: readonly Issue[]) =>
  new AppError('invalid_request', `The request ${what} is malformed. See details.`, { details: detailsOf(issues).slice(0, detailsMax) })

/** Returns the refusal of a well-formed request with invalid values. */
export const validationFailed = (details: ErrorDetail[]) =>
  new AppError('validation_failed', 'Some values are invalid. See details.', { details: details.slice(0, detailsMax) })

/**
 * Returns whether an issue is a missing value, an unknown key or a wrong type. zod reports a missing enum value as
 * `invalid_value`, so the parser needs `reportInput`.
 */
const isMalformed = (issue: Issue): boolean => {
  if (issue.code === 'invalid_value') return typeof issue.input !== 'string'
  if (issue.code === 'invalid_union') return closest(issue.errors).some(isMalformed)
  return issue.code === 'invalid_type' || issue.code === 'unrecognized_keys'
}

/** Returns the refusal of a body: 400 if any part of it is malformed, otherwise 422. */
export const bodyRefusal = (error: z.ZodError): AppError =>
  error.issues.some(isMalformed) ? invalidRequest('body', error.issues) : validationFailed(detailsOf(error.issues))

/** Returns the refusal of a path that no HTTP surface serves. */
export const nothingHere = () => new AppError('not_found', 'This address does not exist.')

/** Returns the refusal of a method that the path does not support, and sets the `Allow` header. */
export const methodNotAllowed = (context: Context, methods: readonly string[]) => {
  context.set('allow', methods.join(', '))
  return new AppError('method_not_allowed', `${context.method} is not allowed here. Allowed methods: ${methods.join(', ')}.`)
}

/**
 * Returns the refusal of an unknown id. The message is the same for an id that does not exist, a malformed id and an id
 * of another workspace, so that the answer does not reveal which ids exist.
 */
export const notFound = () => new AppError('not_found', 'There is no such resource in this workspace.')
