import { toJsonSchema, type JsonSchema } from '../../base/json-schema.ts'
import { connectionSettingsFields } from '../../domain/connection-settings.ts'
import { enrichmentCredentials } from '../../enrichment/settings.ts'
import { settingsNames } from '../../workspace/inputs.ts'
import { apiEndpoints, type EndpointDeps } from '../app.ts'

/** The operations whose bodies are entered in forms of the console. */
export const formOperations = [
  'POST /api-keys',
  'POST /connections',
  'POST /destinations',
  'POST /enrichments',
  'POST /event-subscriptions',
  'POST /event-subscriptions/:id/replay',
  'POST /legal-holds',
  'POST /notifications',
  'POST /repositories',
  'POST /repositories/:id/certificates',
  'PATCH /settings',
] as const

type FormOperation = (typeof formOperations)[number]

/** Puts the parts of a schema in the place of the references to them. */
const resolved = (value: unknown, parts: Readonly<Record<string, JsonSchema>>): unknown => {
  if (Array.isArray(value)) return value.map((inner) => resolved(inner, parts))
  if (typeof value !== 'object' || value === null) return value
  const { $ref, ...rest } = value as JsonSchema
  const part = $ref === undefined ? {} : parts[$ref.split('/').at(-1)!]
  return Object.fromEntries(Object.entries({ ...part, ...rest }).map(([key, inner]) => [key, resolved(inner, parts)]))
}

/** Returns the schemas of the bodies, with those of the parts that the endpoints read as open objects. */
export const describeRequests = (): Record<FormOperation, JsonSchema> => {
  const endpoints = new Map(apiEndpoints({} as EndpointDeps).map(({ method, path, body }) => [`${method} ${path}`, body]))
  const settings = toJsonSchema(connectionSettingsFields.meta(settingsNames), 'request').named
  const schemas = Object.fromEntries(
    formOperations.map((operation) => {
      const { schema, named } = toJsonSchema(endpoints.get(operation)!, 'request')
      return [operation, resolved(schema, { ...named, ...settings }) as JsonSchema]
    }),
  ) as Record<FormOperation, JsonSchema>
  schemas['POST /enrichments'].properties!['credentials'] = toJsonSchema(enrichmentCredentials, 'request').schema
  return schemas
}
