import { createHash } from 'node:crypto'
import type Koa from 'koa'
import { AppError } from '../base/errors.ts'

/** Returns the entity tag of values: their digest. */
export const entityTagOf = (values: unknown): string => `"${createHash('sha256').update(JSON.stringify(values)).digest('base64url')}"`

/** Checks that a resource still has the values that the client has seen. @throws AppError 412 */
export type CheckVersion = (values: unknown) => void

/**
 * Returns the check of the header `If-Match`, which the use case calls with the resource locked. Without the header, every version is
 * accepted. A weak tag never matches (RFC 9110, 13.1.1).
 */
export const checkVersionOf = (context: Koa.Context): CheckVersion => {
  const wanted = context
    .get('if-match')
    .split(',')
    .map((tag) => tag.trim())
  return (values) => {
    if (wanted[0] === '' || wanted.includes('*') || wanted.includes(entityTagOf(values))) return
    throw new AppError('precondition_failed', 'The resource has changed since its ETag was returned. Retrieve it again.')
  }
}

/** Refuses a condition on a resource without an entity tag, instead of ignoring it. `*` asks only that the resource exists. */
export const refuseIfMatch = (context: Koa.Context): void => {
  if (['', '*'].includes(context.get('if-match'))) return
  throw new AppError('precondition_failed', 'This resource has no ETag, so If-Match cannot be met.')
}
