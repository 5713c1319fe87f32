import { readFile } from 'node:fs/promises'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { ValidateFunction } from 'ajv'
import addFormats from 'ajv-formats'
import type { OpenApi, Operation } from '../../src/http/open-api.ts'

type Json = Record<string, unknown>

interface Response {
  $ref?: string
  headers?: Record<string, { $ref?: string; required?: boolean; schema: object }>
  content?: Record<string, { schema: object }>
}

export const readOpenApi = async (): Promise<OpenApi> =>
  JSON.parse(await readFile(new URL('../../openapi.json', import.meta.url), 'utf8')) as OpenApi

/** The document tells clients to ignore what they do not know. What we answer ourselves must all be in it. */
const closed = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(closed)
  if (typeof value !== 'object' || value === null) return value
  const copy = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, closed(inner)]))
  if (copy['type'] === 'object' && 'properties' in copy && !('additionalProperties' in copy)) copy['additionalProperties'] = false
  return copy
}

const pointer = (parts: (string | number)[]) =>
  parts.map((part) => `/${encodeURIComponent(String(part).replaceAll('~', '~0').replaceAll('/', '~1'))}`).join('')

const patternOf = (template: string) => new RegExp(`^/api/[^/]+/[^/]+${template.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`)
const parameterCount = (template: string) => template.split('{').length

export interface Exchange {
  method: string
  /** With its query. */
  path: string
  /** As it was sent. */
  body?: string | undefined
  status: number
  headers: Headers
  text: string
}

/** Holds what was asked and answered against openapi.json. @throws Error that tells what the document does not allow */
export const createContract = (document: OpenApi) => {
  const ajv = addFormats.default(new Ajv2020({ strict: false, allErrors: true }), { mode: 'full' })
  ajv.addSchema({ ...(closed(document) as Json), $id: 'contract' })
  const compiled = new Map<string, ValidateFunction>()
  // of two templates that fit, the one with fewer parameters is meant: /destinations/test is no /destinations/{id}
  const templates = Object.keys(document.paths)
    .toSorted((one, other) => parameterCount(one) - parameterCount(other))
    .map((template) => ({ template, pattern: patternOf(template) }))

  const hold = (what: string, at: (string | number)[], value: unknown) => {
    const where = pointer(at)
    const validate = compiled.get(where) ?? ajv.compile({ $ref: `contract#${where}` })
    compiled.set(where, validate)
    if (!validate(value))
      throw new Error(`${what} is not as openapi.json has it: ${ajv.errorsText(validate.errors)}\n${JSON.stringify(value)}`)
  }

  const resolve = <T extends { $ref?: string }>(given: T, at: (string | number)[]): { value: T; at: (string | number)[] } => {
    if (given.$ref === undefined) return { value: given, at }
    const parts = given.$ref.split('/').slice(1)
    return { value: parts.reduce<unknown>((inner, part) => (inner as Json)[part], document) as T, at: parts }
  }

  const checkHeaders = (what: string, response: Response, at: (string | number)[], headers: Headers) => {
    for (const [name, given] of Object.entries(response.headers ?? {})) {
      const { value: header, at: headerAt } = resolve(given, [...at, 'headers', name])
      const value = headers.get(name)
      if (value === null && header.required) throw new Error(`${what} lacks the header ${name}`)
      const isNumber = 'type' in header.schema && header.schema.type === 'integer'
      if (value !== null) hold(`${name} of ${what}`, [...headerAt, 'schema'], isNumber ? Number(value) : value)
    }
  }

  const checkBody = (what: string, response: Response, at: (string | number)[], { method, headers, text }: Exchange) => {
    const [mediaType] = Object.keys(response.content ?? {})
    const given = headers.get('content-type')?.split(';')[0]
    if (mediaType === undefined) {
      if (text !== '') throw new Error(`${what} has a body, and openapi.json has none: ${text}`)
      return
    }
    if (given === undefined || (mediaType !== '*/*' && mediaType !== given)) throw new Error(`${what} is ${given}, and not ${mediaType}`)
    if (mediaType === 'application/json' && method !== 'HEAD') hold(what, [...at, 'content', mediaType, 'schema'], JSON.parse(text))
  }

  const checkUnknown = (what: string, { status, headers, text, method }: Exchange) => {
    if (status !== 404 && status !== 405) throw new Error(`${what} is answered, and openapi.json does not know it`)
    if (headers.get('x-relay-request-id') === null) throw new Error(`${what} lacks the header x-relay-request-id`)
    if (method !== 'HEAD') hold(what, ['components', 'schemas', 'Error'], JSON.parse(text))
  }

  return {
    check: (exchange: Exchange): void => {
      const { method, path, status, body } = exchange
      const verb = (method === 'HEAD' ? 'GET' : method).toLowerCase()
      const template = templates.find(({ pattern }) => pattern.test(path.split('?')[0]!))?.template
      const operation: Operation | undefined = template === undefined ? undefined : document.paths[template]![verb]
      const what = `${method} ${template ?? path} (${status})`
      if (template === undefined || !operation) return checkUnknown(what, exchange)

      const given: Response | undefined = operation.responses[String(status)]
      if (!given) throw new Error(`${what} is not among the answers of openapi.json: ${exchange.text}`)
      const { value: response, at } = resolve(given, ['paths', template, verb, 'responses', status])
      checkHeaders(what, response, at, exchange.headers)
      checkBody(what, response, at, exchange)

      // and the other way round: what the API takes, the document allows
      if (status >= 300 || !operation.requestBody) return
      const requestAt = ['paths', template, verb, 'requestBody', 'content', 'application/json', 'schema']
      hold(`the request of ${what}`, requestAt, JSON.parse(body ?? ''))
    },
  }
}
