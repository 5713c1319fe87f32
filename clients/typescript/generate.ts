import openapiTypescript, { astToString, type OpenAPI3 } from 'openapi-typescript'
import ts from 'typescript'

const heading = '// Generated from openapi.json by `npm run docs`. Do not edit.\n\n'

/**
 * Returns the type of a text of which the known values are described, and to which later versions add others. Their union with every other text
 * would be more exact, but openapi-fetch takes it for an object.
 */
const valuesOf = (known: unknown): ts.TypeNode | undefined => {
  if (!Array.isArray(known)) return undefined
  const { factory } = ts
  return factory.createUnionTypeNode(known.map((value) => factory.createLiteralTypeNode(factory.createStringLiteral(String(value)))))
}

/** Returns the content of src/schema.ts: the types of every operation in an OpenAPI document. */
export const schemaTypes = async (document: object): Promise<string> => {
  const types = await openapiTypescript(document as OpenAPI3, {
    alphabetize: true,
    defaultNonNullable: false,
    rootTypes: true,
    rootTypesNoSchemaPrefix: true,
    rootTypesKeepCasing: true,
    transform: (schema) => valuesOf((schema as Record<string, unknown>)['x-extensible-enum']),
  })
  return heading + astToString(types)
}
