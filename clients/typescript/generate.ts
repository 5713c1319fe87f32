import openapiTypescript, { astToString, type OpenAPI3 } from 'openapi-typescript'

const heading = '// Made from openapi.json by npm run docs; do not edit.\n\n'

/** src/schema.ts: the types of every operation, from the API's own description. */
export const schemaTypes = async (document: object): Promise<string> => {
  const types = await openapiTypescript(document as OpenAPI3, { alphabetize: true, defaultNonNullable: false })
  return heading + astToString(types)
}
