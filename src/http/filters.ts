import { z } from 'zod'
import { idPattern } from '../base/ids.ts'
import { isStorable } from '../base/text.ts'
import { noErrorCode } from '../domain/delivery-states.ts'

// Values by which several lists are filtered.

export const resourceId = z.string().regex(idPattern, 'must be an id, like 01ARZ3NDEKTSV4RRFFQ69G5FAV')

/** A truth value in a query. */
export const flag = z.enum(['true', 'false']).transform((value) => value === 'true')

const errorCodeMaxCharacters = 100

export const errorCode = z.string().min(1).max(errorCodeMaxCharacters).refine(isStorable).optional()

/** The end of its description. */
export const errorCodeText = `whose last error has this code; \`${noErrorCode}\` if the error is not one of an attempt.`
