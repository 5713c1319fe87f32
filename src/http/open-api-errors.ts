import { errorStatus, type ErrorCode } from '../errors.ts'
import type { Endpoint } from './endpoint.ts'
import { pascalCase } from './operation-names.ts'
import type { JsonSchema } from './wire-schema.ts'

type Code = ErrorCode | 'internal_error'

const descriptions = {
  invalid_request: 'Malformed JSON, a missing field, a wrong type, an unknown key, an unknown or malformed query value',
  unauthorized: 'No key, or none that is good for this workspace',
  forbidden: "The key's level is too low",
  not_found: 'Unknown, or of another workspace: the two answers differ in nothing but request_id',
  conflict: 'The present state does not allow it',
  payload_too_large: 'The body is larger than the service takes',
  unsupported_media_type: 'The body is not application/json, or has a content encoding',
  validation_failed: 'Well-formed, but wrong: details names each value that does not fit',
  rate_limited: 'Too many wrong keys from this address',
  internal_error: 'A defect of ours: report it with its request_id',
  unavailable: 'What the answer needs is away or busy, like the database or the content store; nothing is half done',
} as const satisfies Partial<Record<Code, string>>

type Documented = keyof typeof descriptions

const statusOf = (code: Documented) => (code === 'internal_error' ? 500 : errorStatus[code])

export const requestIdHeader = { 'x-relay-request-id': { $ref: '#/components/headers/RequestId' } }

const headersOf = (code: Documented) => ({
  ...requestIdHeader,
  ...(code === 'unauthorized' && { 'www-authenticate': { required: true, schema: { type: 'string', const: 'Bearer' } } }),
  ...(code === 'rate_limited' && { 'retry-after': { $ref: '#/components/headers/RetryAfter' } }),
  ...(code === 'unavailable' && { 'retry-after': { schema: { type: 'integer' }, description: 'Seconds, where they can be told' } }),
})

/** The answers that are refusals, as components. */
export const errorResponses = (): Record<string, object> =>
  Object.fromEntries(
    Object.entries(descriptions).map(([code, description]) => [
      pascalCase(code),
      {
        description,
        headers: headersOf(code as Documented),
        content: {
          'application/json': {
            schema: { $ref: '#/components/schemas/Error' },
            example: { error: { code, message: description, request_id: '01K9R4B6ZD8M2V7X0QF3N5T1CE' } },
          },
        },
      },
    ]),
  )

/** The one envelope of docs/errors.md. */
export const errorSchema: JsonSchema = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message', 'request_id'],
      properties: {
        code: { type: 'string', enum: [...Object.keys(errorStatus), 'internal_error'], description: 'Stable: programs decide by it' },
        message: { type: 'string', description: 'For people; may change' },
        request_id: { type: 'string', description: 'The same as in the header x-relay-request-id' },
        details: {
          type: 'array',
          description: 'There where single values are at fault',
          items: {
            type: 'object',
            required: ['path', 'message'],
            properties: {
              path: { type: 'string', description: 'As the value stands in the request, like config.bucket' },
              message: { type: 'string' },
            },
          },
        },
      },
    },
  },
}

/** What an endpoint may refuse with, by status. */
export const refusalsOf = ({ level, params, body, conflict }: Endpoint): Record<number, object> => {
  const codes: Documented[] = ['invalid_request', 'unauthorized', 'rate_limited', 'internal_error', 'unavailable']
  if (level !== 'viewer') codes.push('forbidden')
  if (params) codes.push('not_found')
  if (conflict !== undefined) codes.push('conflict')
  if (body) codes.push('payload_too_large', 'unsupported_media_type', 'validation_failed')
  return Object.fromEntries(
    codes.map((code) => [
      statusOf(code),
      { $ref: `#/components/responses/${pascalCase(code)}`, ...(code === 'conflict' && { description: conflict }) },
    ]),
  )
}
