import { errorStatus, type ErrorCode } from '../../base/errors.ts'
import type { JsonSchema } from '../../base/json-schema.ts'
import type { Endpoint } from '../endpoint.ts'
import { pascalCase } from './operation-names.ts'

type Code = ErrorCode | 'internal_error'

const descriptions = {
  invalid_request: 'The request is malformed: invalid JSON, a missing field, a wrong type, an unknown key or an invalid query value.',
  unauthorized: 'The API key is missing or is not valid for this workspace.',
  forbidden: 'The level of the API key is too low.',
  not_found: 'The resource does not exist or belongs to another workspace. Both cases return the same response.',
  conflict: 'The current state of the resource does not allow the request.',
  gone: 'What the request asks for has been removed.',
  precondition_failed: 'The resource has changed since the `ETag` in `If-Match` was returned.',
  payload_too_large: 'The body exceeds the size limit.',
  unsupported_media_type: 'The body is not application/json, or has a content encoding.',
  range_not_satisfiable: 'The range of bytes begins behind the last byte. The header `content-range` contains the size.',
  validation_failed: 'The body is well-formed but contains invalid values. `details` lists each of them.',
  rate_limited:
    'Too many requests of this API key, person or workspace are running or waiting, it has used too many values of `Idempotency-Key`, or too ' +
    'many requests with an invalid API key came from this IP address.',
  internal_error: 'Unexpected server error. Report it together with its request_id.',
  unavailable:
    'A dependency, such as the database or the content store, is unreachable or busy. A change either took effect completely or not at all.',
} as const satisfies Partial<Record<Code, string>>

type Documented = keyof typeof descriptions

const statusOf = (code: Documented) => (code === 'internal_error' ? 500 : errorStatus[code])

/** Headers of every answer. */
export const commonHeaders = {
  'x-relay-request-id': { $ref: '#/components/headers/RequestId' },
  'x-relay-version': { $ref: '#/components/headers/RelayVersion' },
}

const headersOf = (code: Documented) => ({
  ...commonHeaders,
  ...(code === 'unauthorized' && { 'www-authenticate': { required: true, schema: { type: 'string', const: 'Bearer' } } }),
  ...(code === 'rate_limited' && { 'retry-after': { $ref: '#/components/headers/RetryAfter' } }),
  ...(code === 'unavailable' && {
    'retry-after': { schema: { type: 'integer' }, description: 'Seconds to wait before the next request, if known.' },
  }),
})

/** Returns every documented error response as an OpenAPI component. */
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
            example: {
              error: {
                code,
                message: description,
                request_id: '01K9R4B6ZD8M2V7X0QF3N5T1CE',
                doc_url: `https://relay.example/docs/errors#${code}`,
              },
            },
          },
        },
      },
    ]),
  )

/** The body of every error response, and its parts; docs/errors.md explains them. */
export const errorSchemas: Record<string, JsonSchema> = {
  Error: { type: 'object', required: ['error'], properties: { error: { $ref: '#/components/schemas/ErrorBody' } } },
  ErrorBody: {
    type: 'object',
    required: ['code', 'message', 'request_id'],
    properties: {
      code: { $ref: '#/components/schemas/ErrorCode' },
      message: { type: 'string', description: 'A message for people. Its wording may change.' },
      request_id: { type: 'string', description: 'The id of the request, as in the header x-relay-request-id.' },
      doc_url: { type: 'string', description: 'Where this relay explains the code: a section of its page `/docs/errors`.' },
      nothing_changed: {
        type: 'boolean',
        description:
          'Present in the answer 500 or 503 to a request that would change something. True: nothing was changed. False: the relay does not ' +
          'know; the change either took effect completely or not at all.',
      },
      details: {
        type: 'array',
        description: 'The invalid values, if the error concerns single values.',
        items: { $ref: '#/components/schemas/ErrorDetail' },
      },
    },
  },
  ErrorCode: {
    type: 'string',
    'x-extensible-enum': [...Object.keys(errorStatus), 'internal_error'],
    description: 'A stable code for programs. More may be added.',
  },
  ErrorDetail: {
    type: 'object',
    required: ['path', 'message'],
    properties: {
      path: { type: 'string', description: 'The path of the value in the request, for example `config.bucket`.' },
      message: { type: 'string' },
    },
  },
}

const keyInUse = 'The outcome of a request with this `Idempotency-Key` is not known yet, or its answer was lost.'

/** Returns references to the error responses that an endpoint can give, by status. */
export const errorResponsesOf = ({
  method,
  level,
  params,
  body,
  conflict,
  gone,
  hasRanges,
  changesNothing,
}: Endpoint): Record<number, object> => {
  const hasKey = method === 'POST' && !changesNothing
  const codes: Documented[] = ['invalid_request', 'unauthorized', 'rate_limited', 'internal_error', 'unavailable']
  if (level !== 'viewer') codes.push('forbidden')
  if (params) codes.push('not_found')
  if (conflict !== undefined || hasKey) codes.push('conflict')
  if (gone !== undefined) codes.push('gone')
  if (method !== 'GET' && method !== 'POST') codes.push('precondition_failed')
  if (hasRanges) codes.push('range_not_satisfiable')
  if (body) codes.push('payload_too_large', 'unsupported_media_type')
  // A key that was used for a different request is also a 422.
  if (body || hasKey) codes.push('validation_failed')
  const conflicts = [...(conflict === undefined ? [] : [conflict]), ...(hasKey ? [keyInUse] : [])].join(' ')
  return Object.fromEntries(
    codes.map((code) => [
      statusOf(code),
      {
        $ref: `#/components/responses/${pascalCase(code)}`,
        ...(code === 'conflict' && { description: conflicts }),
        ...(code === 'gone' && { description: gone }),
      },
    ]),
  )
}
