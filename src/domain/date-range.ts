import { z } from 'zod'

const notDateOrTime = 'must be a date or an ISO 8601 timestamp with a time zone, like 2026-11-21T09:00:00Z'
const isDateOrTime = (text: string) => z.iso.datetime({ offset: true }).or(z.iso.date()).safeParse(text).success

// All but the length of February in years that are no leap years.
const date = '[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|[12][0-9]))'
const hourAndMinute = '([01][0-9]|2[0-3]):[0-5][0-9]'
const dateOrTimePattern = new RegExp(`^${date}(T${hourAndMinute}:[0-5][0-9](\\.[0-9]+)?(Z|[+-]${hourAndMinute}))?$`)

// One string instead of a union of two formats, of which generated Java clients make classes that do not compile.
const dateOrTime = z.string().regex(dateOrTimePattern, { error: notDateOrTime, abort: true }).refine(isDateOrTime, notDateOrTime)
const isDate = (text: string) => text.length === 'yyyy-mm-dd'.length
const dayMs = 86_400_000

/** The inclusive start of a range. A date without a time means 00:00:00.000 UTC. */
export const dateFrom = dateOrTime
  .transform((text) => new Date(text))
  .optional()
  .describe('Start of the range, inclusive. A date without a time means the start of that day in UTC.')

/** The inclusive end of a range. A date without a time means 23:59:59.999 UTC. */
export const dateTo = dateOrTime
  .transform((text) => new Date(new Date(text).getTime() + (isDate(text) ? dayMs - 1 : 0)))
  .optional()
  .describe('End of the range, inclusive. A date without a time means the end of that day in UTC.')
