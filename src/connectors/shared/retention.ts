import { z } from 'zod'
import { dayMs } from '../../base/day.ts'
import { DeliveryError, type Payload } from '../connector.ts'

/** Keys that say for how long a target must keep what is stored there: the same for every kind whose targets can. */
export const retentionFields = {
  retain_days: z
    .int()
    .min(1)
    .max(36_500)
    .optional()
    .describe('Days from the receipt of a document for which the target must keep it. With retain_until: for documents without that date'),
  retain_until: z
    .string()
    .regex(/^\{meta\.[a-z][a-z0-9_]{0,39}\}$/, 'must be a field of business data in braces, such as {meta.retain_until}')
    .optional()
    .describe(
      'Field of business data with the day until which the target must keep a document: {meta.retain_until}. Its value is 2036-12-31, 20361231 or a time',
    ),
  legal_hold: z
    .boolean()
    .default(false)
    .describe('Puts each document on legal hold at the target, which somebody with the permission has to lift there'),
}

interface RetentionConfig {
  retain_days?: number | undefined
  retain_until?: string | undefined
}

const day = /^(\d{4})-?(\d{2})-?(\d{2})$/

/** Returns the end of a day in UTC, or a time. Undefined if the text is neither. */
const timeOf = (text: string): Date | undefined => {
  const time = new Date(text.trim().replace(day, '$1-$2-$3T23:59:59Z'))
  return Number.isNaN(time.getTime()) ? undefined : time
}

/**
 * Returns until when the target must keep a document. Undefined if nothing is configured, or if that time is past.
 * @throws DeliveryError `retention_unknown` if the business data have no date, and there is no number of days
 */
export const retainUntilOf = (
  { retain_days: days, retain_until: template }: RetentionConfig,
  { fields, receivedAt }: Pick<Payload, 'fields' | 'receivedAt'>,
  now = new Date(),
): Date | undefined => {
  const name = template?.slice('{meta.'.length, -1)
  const told = name !== undefined && Object.hasOwn(fields, name) ? fields[name] : undefined
  const found = told === undefined ? undefined : timeOf(told)
  if (name !== undefined && found === undefined && (told !== undefined || days === undefined)) {
    const what = told === undefined ? 'is not known' : 'is no date'
    throw new DeliveryError(
      'retention_unknown',
      `the field ${name} of the business data, until which the target must keep the document, ${what}`,
    )
  }
  const until = found ?? (days === undefined ? undefined : new Date(receivedAt.getTime() + days * dayMs))
  return until === undefined || until <= now ? undefined : until
}
