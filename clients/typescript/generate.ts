// `npm run types` makes src/schema.ts, the types of every operation in openapi.json. It is not in the repository.
import { readFile, writeFile } from 'node:fs/promises'
import openapiTypescript, { astToString, type OpenAPI3 } from 'openapi-typescript'
import ts from 'typescript'

/**
 * Returns the type of a text of which the known values are described, and to which later versions add others. Their union with every other text
 * would be more exact, but openapi-fetch takes it for an object.
 */
const valuesOf = (known: unknown): ts.TypeNode | undefined => {
  if (!Array.isArray(known)) return undefined
  const { factory } = ts
  return factory.createUnionTypeNode(known.map((value) => factory.createLiteralTypeNode(factory.createStringLiteral(String(value)))))
}

const document = JSON.parse(await readFile(new URL('../../openapi.json', import.meta.url), 'utf8')) as OpenAPI3
const types = await openapiTypescript(document, {
  alphabetize: true,
  defaultNonNullable: false,
  rootTypes: true,
  rootTypesNoSchemaPrefix: true,
  rootTypesKeepCasing: true,
  transform: (schema) => valuesOf((schema as Record<string, unknown>)['x-extensible-enum']),
})
const made = `// Generated from openapi.json by \`npm run types\`. Do not edit.\n\n${astToString(types)}`
const file = new URL('src/schema.ts', import.meta.url)
// A compiler may be reading it.
if (made !== (await readFile(file, 'utf8').catch(() => ''))) await writeFile(file, made)
