import { z } from 'zod'
import { dayMs } from '../base/day.ts'

// The pattern says all, so that openapi.json allows exactly what is accepted.
const leapYear = '([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)'
const day = '((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))'
const hourAndMinute = '([01][0-9]|2[0-3]):[0-5][0-9]'
const time = `T${hourAndMinute}:[0-5][0-9](\\.[0-9]+)?(Z|[+-]${hourAndMinute})`

// One string instead of a union of two formats, of which generated Java clients make classes that do not compile.
const dateOrTime = z
  .string()
  .regex(
    new RegExp(`^([0-9]{4}-${day}|${leapYear}-02-29)(${time})?$`),
    'must be a date or an ISO 8601 timestamp with a time zone, like 2026-11-21T09:00:00Z',
  )
const isDate = (text: string) => text.length === 'yyyy-mm-dd'.length

const firstMs = Date.parse('0001-01-01T00:00:00.000Z')
const lastMs = Date.parse('9999-12-31T23:59:59.999Z')

/** Returns the nearest date that a timestamp can name: the end of the year 9999 in another time zone, for example, has five digits of a year in UTC. */
export const nameable = (date: Date): Date => new Date(Math.min(Math.max(date.getTime(), firstMs), lastMs))

/** ISO 8601 text in JSON, a Date in TypeScript. */
export const timestamp = z.codec(z.iso.datetime({ offset: true }), z.date(), {
  decode: (text) => nameable(new Date(text)),
  encode: (date) => date.toISOString(),
})

/** The inclusive start of a range. A date without a time means 00:00:00.000 UTC. */
export const dateFrom = dateOrTime
  .transform((text) => nameable(new Date(text)))
  .optional()
  .describe('Start of the range, inclusive. A date without a time means the start of that day in UTC.')

/** The inclusive end of a range. A date without a time means 23:59:59.999 UTC. */
export const dateTo = dateOrTime
  .transform((text) => nameable(new Date(new Date(text).getTime() + (isDate(text) ? dayMs - 1 : 0))))
  .optional()
  .describe('End of the range, inclusive. A date without a time means the end of that day in UTC.')
