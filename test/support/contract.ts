import { readFile } from 'node:fs/promises'
import type { ValidateFunction } from 'ajv'
import addFormats from 'ajv-formats'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { OpenApi } from '../../src/api/open-api/document.ts'
import type { Operation } from '../../src/api/open-api/operations.ts'

type Json = Record<string, unknown>

interface Response {
  $ref?: string
  headers?: Record<string, { $ref?: string; required?: boolean; schema: object }>
  content?: Record<string, { schema: object }>
}

export const readOpenApi = async (): Promise<OpenApi> =>
  JSON.parse(await readFile(new URL('../../openapi.json', import.meta.url), 'utf8')) as OpenApi

/**
 * Forbids additional properties and unknown values. openapi.json allows them, so that clients accept what later versions add; but the relay
 * must document everything that it returns.
 */
const closed = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(closed)
  if (typeof value !== 'object' || value === null) return value
  const copy = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, closed(inner)]))
  if (copy['type'] === 'object' && 'properties' in copy && !('additionalProperties' in copy)) copy['additionalProperties'] = false
  if (Array.isArray(copy['x-extensible-enum'])) copy['enum'] = copy['x-extensible-enum']
  return copy
}

const pointer = (parts: (string | number)[]) =>
  parts.map((part) => `/${encodeURIComponent(String(part).replaceAll('~', '~0').replaceAll('/', '~1'))}`).join('')

const patternOf = (template: string) => new RegExp(`^/api/[^/]+/[^/]+${template.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`)
const parameterCount = (template: string) => template.split('{').length

export interface Exchange {
  method: string
  /** Including the query string. */
  path: string
  body?: string | undefined
  status: number
  headers: Headers
  text: string
}

/** Checks requests and responses against openapi.json. @throws Error that says what the document does not allow */
export const createContract = (document: OpenApi) => {
  // Neither step changes a result, and they take half of the time of compiling a schema.
  const ajv = addFormats.default(new Ajv2020({ strict: false, allErrors: true, validateSchema: false, code: { optimize: false } }), {
    mode: 'full',
  })
  ajv.addSchema({ ...(closed(document) as Json), $id: 'contract' })
  const compiled = new Map<string, ValidateFunction>()
  // If two templates match, the one with fewer parameters wins: /destinations/test before /destinations/{id}.
  const templates = Object.keys(document.paths)
    .toSorted((one, other) => parameterCount(one) - parameterCount(other))
    .map((template) => ({ template, pattern: patternOf(template) }))

  const validatorAt = (at: (string | number)[]): ValidateFunction => {
    const schemaPointer = pointer(at)
    const validate = compiled.get(schemaPointer) ?? ajv.compile({ $ref: `contract#${schemaPointer}` })
    compiled.set(schemaPointer, validate)
    return validate
  }

  const validateAt = (what: string, at: (string | number)[], value: unknown) => {
    const validate = validatorAt(at)
    if (!validate(value)) {
      throw new Error(`${what} does not match openapi.json: ${ajv.errorsText(validate.errors)}\n${JSON.stringify(value)}`)
    }
  }

  const resolve = <T extends { $ref?: string }>(reference: T, at: (string | number)[]): { value: T; at: (string | number)[] } => {
    if (reference.$ref === undefined) return { value: reference, at }
    const parts = reference.$ref.split('/').slice(1)
    return { value: parts.reduce<unknown>((inner, part) => (inner as Json)[part], document) as T, at: parts }
  }

  const checkHeaders = (what: string, response: Response, at: (string | number)[], headers: Headers) => {
    for (const [name, reference] of Object.entries(response.headers ?? {})) {
      const { value: header, at: headerAt } = resolve(reference, [...at, 'headers', name])
      const value = headers.get(name)
      if (value === null && header.required) throw new Error(`${what} lacks the header ${name}`)
      const isNumber = 'type' in header.schema && header.schema.type === 'integer'
      if (value !== null) validateAt(`${name} of ${what}`, [...headerAt, 'schema'], isNumber ? Number(value) : value)
    }
  }

  const checkBody = (what: string, response: Response, at: (string | number)[], { method, headers, text }: Exchange) => {
    const documented = Object.keys(response.content ?? {})
    const actual = headers.get('content-type')?.split(';')[0]
    if (documented.length === 0) {
      if (text !== '') throw new Error(`${what} has a body, but openapi.json documents none: ${text}`)
      return
    }
    const mediaType = documented.find((type) => type === actual || type === '*/*')
    if (actual === undefined || mediaType === undefined) {
      throw new Error(`${what} has the media type ${actual} instead of ${documented.join(' or ')}`)
    }
    if (mediaType === 'application/json' && method !== 'HEAD') validateAt(what, [...at, 'content', mediaType, 'schema'], JSON.parse(text))
  }

  const checkUnknown = (what: string, { status, headers, text, method }: Exchange) => {
    if (status !== 404 && status !== 405) throw new Error(`${what} is answered, but openapi.json does not contain it`)
    if (headers.get('x-relay-request-id') === null) throw new Error(`${what} lacks the header x-relay-request-id`)
    if (method !== 'HEAD') validateAt(what, ['components', 'schemas', 'Error'], JSON.parse(text))
  }

  return {
    /** Returns whether the schema at this place of the document allows a value. */
    allows: (at: (string | number)[], value: unknown): boolean => validatorAt(at)(value),

    check: (exchange: Exchange): void => {
      const { method, path, status, body } = exchange
      const verb = (method === 'HEAD' ? 'GET' : method).toLowerCase()
      const template = templates.find(({ pattern }) => pattern.test(path.split('?')[0]!))?.template
      const operation: Operation | undefined = template === undefined ? undefined : document.paths[template]![verb]
      const what = `${method} ${template ?? path} (${status})`
      if (template === undefined || !operation) return checkUnknown(what, exchange)

      const reference: Response | undefined = operation.responses[String(status)]
      if (!reference) throw new Error(`${what} is not among the responses of openapi.json: ${exchange.text}`)
      const { value: response, at } = resolve(reference, ['paths', template, verb, 'responses', status])
      checkHeaders(what, response, at, exchange.headers)
      checkBody(what, response, at, exchange)

      // A request that the API accepts must be allowed by the document.
      if (status >= 300 || !operation.requestBody) return
      const requestAt = ['paths', template, verb, 'requestBody', 'content', 'application/json', 'schema']
      validateAt(`the request of ${what}`, requestAt, JSON.parse(body ?? ''))
    },
  }
}

let ofCheckout: Promise<ReturnType<typeof createContract>> | undefined

/** Returns the checks against the openapi.json of the checkout. A worker of jest compiles its schemas once for all test files. */
export const openContract = () => (ofCheckout ??= readOpenApi().then(createContract))
