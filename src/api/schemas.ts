import { z } from 'zod'
import { resourceId } from '../http/filters.ts'

/** The id in a path. A malformed id gets the same 404 as an unknown id. */
export const idParams = z.object({ id: resourceId.describe('The id of the resource.') })

/** The `.meta` key of an attribute (`config` or `credentials`) that the schema of a connector describes. */
export const connectorPart = 'x-connector-part'

/** A condition that an operator should know, with its code and what it means. */
export const warningOf = <Code extends string>(id: string, codes: readonly [Code, ...Code[]], meanings: string, message: string) =>
  z
    .object({
      code: z
        .enum(codes)
        .meta({ id: `${id}Code` })
        .describe(meanings),
      message: z.string().describe(message),
    })
    .meta({ id })

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
