import openapiTypescript, { astToString, type OpenAPI3 } from 'openapi-typescript'

const heading = '// Generated from openapi.json by `npm run docs`. Do not edit.\n\n'

/** Returns the content of src/schema.ts: the types of every operation in an OpenAPI document. */
export const schemaTypes = async (document: object): Promise<string> => {
  const types = await openapiTypescript(document as OpenAPI3, {
    alphabetize: true,
    defaultNonNullable: false,
    rootTypes: true,
    rootTypesNoSchemaPrefix: true,
    rootTypesKeepCasing: true,
  })
  return heading + astToString(types)
}
