import { isLockTimeout, isLostRace, isOutage } from '../db/database.ts'
import { AppError, messageOf } from '../errors.ts'
import { Refusal } from './refusal.ts'

/** What a source system is told of whatever went wrong. */
export const asRefusal = (thrown: unknown): Refusal => {
  if (thrown instanceof Refusal) return thrown
  if (isLockTimeout(thrown)) return new Refusal('document_locked', 'another request is changing this document, try again later')
  const isAway = isOutage(thrown) || isLostRace(thrown) || (thrown instanceof AppError && thrown.code === 'unavailable')
  return isAway
    ? new Refusal('unavailable', 'try again later', { cause: messageOf(thrown) })
    : new Refusal('internal_error', 'something went wrong on our side', { cause: thrown })
}
