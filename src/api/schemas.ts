import { z } from 'zod'
import { isId } from '../base/ids.ts'

/** The id in a path. A malformed id gets the same 404 as an unknown id. */
export const idParams = z.object({ id: z.string().refine(isId).describe('The id of the resource.') })

/** The `.meta` key of an attribute (`config` or `credentials`) that the schema of a connector describes. */
export const connectorPart = 'x-connector-part'

/** ISO 8601 text in JSON, a Date in TypeScript. */
export const timestamp = z.codec(z.iso.datetime({ offset: true }), z.date(), {
  decode: (text) => new Date(text),
  encode: (date) => date.toISOString(),
})

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

/** A resource and its attributes, which are the components `name` and `nameAttributes` of the API description. */
export const resource = <Type extends string, Attributes extends z.ZodObject>(name: string, type: Type, attributes: Attributes) =>
  z.object({ id: z.string(), type: z.literal(type), attributes: attributes.meta({ id: `${name}Attributes` }) }).meta({ id: name })

/** Names a response after the schema that it contains, if that has a name: `Document` and `List` make `DocumentList`. */
export const named = <Schema extends z.ZodType>(item: z.ZodType, suffix: 'List' | 'Response', schema: Schema): Schema => {
  const id = item.meta()?.id
  return id === undefined ? schema : schema.meta({ id: `${id}${suffix}` })
}

export const one = <Item extends z.ZodType>(item: Item) => named(item, 'Response', z.object({ data: item }))

/** Returns a function that presents rows as resources. The response schema then picks the attributes that it names. */
export const resourceOf =
  <Type extends string>(type: Type) =>
  <Row extends { id: string }>(row: Row) => ({ id: row.id, type, attributes: row })
