import type { Context } from 'koa'
import type { z } from 'zod'
import { AppError, type ErrorDetail } from '../errors.ts'

type Issue = z.core.$ZodIssue

const pathOf = (parts: PropertyKey[]) => parts.map(String).join('.')

/** Of the alternatives of a union, the one that came closest: its faults are the ones worth reading. */
const closest = (alternatives: Issue[][]): Issue[] => alternatives.toSorted((one, other) => one.length - other.length)[0] ?? []

/** What does not fit, each with its path on the wire. zod's messages name what was expected and never show what was sent. */
export const detailsOf = (issues: readonly Issue[], prefix: PropertyKey[] = []): ErrorDetail[] =>
  issues.flatMap((issue) => {
    const path = [...prefix, ...issue.path]
    if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => ({ path: pathOf([...path, key]), message: 'is not known here' }))
    if (issue.code === 'invalid_union' && issue.errors.length > 0) return detailsOf(closest(issue.errors), path)
    return [{ path: pathOf(path), message: issue.message }]
  })

/** The request itself is malformed: nothing that the caller's data could mend. */
export const invalidRequest = (what: string, issues: readonly Issue[]) =>
  new AppError('invalid_request', `The ${what} is not what this endpoint takes.`, { details: detailsOf(issues) })

/** Well-formed, but wrong. */
export const validationFailed = (details: ErrorDetail[]) => new AppError('validation_failed', 'Some values do not fit.', { details })

/** Missing, unknown or of the wrong type. zod tells a missing enum value only by its input: parse with `reportInput`. */
const isMalformed = (issue: Issue): boolean => {
  if (issue.code === 'invalid_value') return typeof issue.input !== 'string'
  if (issue.code === 'invalid_union') return closest(issue.errors).some(isMalformed)
  return issue.code === 'invalid_type' || issue.code === 'unrecognized_keys'
}

/** A body with both kinds of fault is malformed. */
export const bodyRefusal = (error: z.ZodError): AppError =>
  error.issues.some(isMalformed) ? invalidRequest('body', error.issues) : validationFailed(detailsOf(error.issues))

/** No surface has anything there. */
export const nothingHere = () => new AppError('not_found', 'There is nothing at this address.')

/** Tells the methods that would be possible, in the header as well. */
export const methodNotAllowed = (context: Context, methods: readonly string[]) => {
  context.set('allow', methods.join(', '))
  return new AppError('method_not_allowed', `${context.method} is not possible here; ${methods.join(', ')} would be.`)
}

/** The same words for what does not exist, for what cannot, and for what belongs to another workspace. */
export const notFound = () => new AppError('not_found', 'There is no such resource in this workspace.')
