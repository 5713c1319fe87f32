import type { OpenApi } from '../../src/api/open-api/document.ts'
import type { createContract } from '../support/contract.ts'
import { distort, distortJson, hostileTexts, hostileValue } from './hostile-values.ts'
import type { Random } from './random.ts'
import { encoded, type FuzzRequest } from './request.ts'
import { createSchemaValues, type Override, type Schema } from './schema-values.ts'
import type { World } from './world.ts'

interface Parameter {
  name: string
  in: 'query' | 'path' | 'header'
  required?: boolean
  schema: Schema
  example?: unknown
}

interface Operation {
  parameters?: Parameter[]
  requestBody?: { content: Record<string, { schema: Schema; examples?: Record<string, { value: unknown }> }> }
}

const methods = ['get', 'post', 'put', 'patch', 'delete']

/** Hosts of the examples. Nothing of this test may leave the machine. */
const toLoopback = (json: string) => json.replaceAll(/[\w-]+(?:\.[\w-]+)*\.(?:example(?:\.com)?|com|net|org)\b/g, '127.0.0.1')

const operationsOf = (document: OpenApi) =>
  Object.entries(document.paths).flatMap(([path, item]) =>
    methods
      .filter((method) => method in item)
      .map((method) => ({ method: method.toUpperCase(), path, ...((item as never)[method] as Operation) })),
  )

/** Creates the generator of requests to the management API. openapi.json describes what it sends. */
export const createApiSurface = (document: OpenApi) => {
  const generate = createSchemaValues(document)
  const operations = operationsOf(document)

  const pathOf = (random: Random, template: string, world: World): string =>
    template.replaceAll(/\{(\w+)\}/g, (_match, name: string, at: number) => {
      const resource = name === 'id' ? template.slice(1).split('/')[0]! : `${name.replace(/_?id$/i, '')}s`
      // A destination that the test has created may name any address.
      const ids = template.startsWith('/destinations/{id}/test') ? world.testable : (world.ids[resource] ?? [])
      if (name === 'kind') return random.pick(['request', 'response', 'request', 'nothing'])
      if (name === 'repo_id') return random.pick(['Z1', 'Z2', 'none'])
      if (name === 'doc_id') return encoded(random, `D${random.below(60)}`)
      const nothing = [...world.foreignIds, '01ARZ3NDEKTSV4RRFFQ69G5FAV', '.', '..', '%', '%00', '%2F', '%ff', 'a'.repeat(2_000), '😀', at]
      return ids.length > 0 && random.chance(0.9)
        ? random.pick(ids)
        : random.pick(nothing.map(String).map((text) => Buffer.from(text).toString('latin1')))
    })

  const queryOf = (random: Random, parameters: Parameter[], override: Override): string => {
    const named = parameters
      .filter(() => random.chance(0.35))
      .map(({ name, schema, example }) => {
        const usual = override(name) ?? (random.chance(0.4) && example !== undefined ? example : generate(random, schema, override))
        const value = random.chance(0.08) ? hostileValue(random) : usual
        return `${name}=${encoded(random, typeof value === 'string' ? value : JSON.stringify(value))}`
      })
    const odd = random.chance(0.06)
      ? [
          random.pick([
            'page=1&page=2',
            'page[]=1',
            '__proto__=1',
            '=',
            '&&',
            'per_page',
            'a=%',
            '%00=1',
            'per_page=1;page=2',
            'before=%ed%a0%80',
          ]),
        ]
      : []
    return [...named, ...odd].join('&')
  }

  const bodyOf = (random: Random, { requestBody }: Operation, override: Override): Buffer | undefined => {
    const content = requestBody?.content['application/json']
    if (!content) return random.chance(0.1) ? Buffer.from(random.pick(['{}', 'x', ''])) : undefined
    const examples = Object.values(content.examples ?? {}).map(({ value }) => value)
    const usual = examples.length > 0 && random.chance(0.3) ? random.pick(examples) : generate(random, content.schema, override)
    const json = toLoopback(JSON.stringify(random.chance(0.25) ? distort(random, usual) : usual) ?? 'null')
    return random.chance(0.1) ? distortJson(random, json) : Buffer.from(json)
  }

  return (random: Random, world: World): FuzzRequest => {
    const operation = random.pick(operations)
    const { path, parameters = [] } = operation
    const workspace = path === '/settings' && operation.method === 'PATCH' ? world.changing : world.steady
    const override: Override = (name) => {
      const ids = { repository_ids: world.ids['repositories'], destination_ids: world.ids['destinations'], ids: world.ids['documents'] }[
        name
      ]
      if (ids) return random.several(ids, 3)
      // These kinds connect to hosts of their own.
      if (path === '/destinations/test' && name === 'connector_type')
        return random.pick(['objstore', 'sftp', 'email', 'webhook', 'directory'])
      if (/password|token$|client_secret|access_key$|passphrase/.test(name) && random.chance(0.5)) return world.canaries.credential
      if (name === 'before') return random.pick([...(world.ids['requests'] ?? []), ...hostileTexts])
      return undefined
    }
    const query = queryOf(
      random,
      parameters.filter((parameter) => parameter.in === 'query'),
      override,
    )
    const prefix = random.chance(0.97)
      ? `/api/${workspace.name}`
      : random.pick(['/api', '/api/acme', '/api//', '/api/acme/none', '/API/acme/none'])
    const method = random.chance(0.95)
      ? operation.method
      : random.pick(['HEAD', 'OPTIONS', 'TRACE', 'PROPFIND', 'GET', 'POST', 'DELETE', 'QUERY'])
    const body = method === 'GET' || method === 'HEAD' ? undefined : bodyOf(random, operation, override)
    return {
      surface: 'api',
      method,
      target: `${prefix}${pathOf(random, path, world)}${query === '' ? '' : `?${query}`}`,
      headers: headersOf(random, world, workspace, body !== undefined),
      ...(body && { body, isChunked: random.chance(0.1) }),
    }
  }
}

const maxTries = 100

/** Creates the generator of requests whose query and body openapi.json allows: one to each operation, with ids of a path that name nothing. */
export const createAllowedRequests = (document: OpenApi, { allows }: Pick<ReturnType<typeof createContract>, 'allows'>) => {
  const generate = createSchemaValues(document)
  const operations = operationsOf(document)
  // NUL and unpaired surrogates are refused everywhere, which a schema does not say.
  const isStorable = (value: unknown) => !/\\u(0000|d[89a-f])/.test(JSON.stringify(value))

  const allowed = (random: Random, schema: Schema, at: (string | number)[]): unknown => {
    for (let tries = 0; tries < maxTries; tries += 1) {
      const value = generate(random, schema, () => undefined)
      if (isStorable(value) && allows(at, value)) return value
    }
    throw new Error(`no value was found that the schema at ${at.join(' ')} allows`)
  }

  return (random: Random, { name, keys }: World['steady']): FuzzRequest[] =>
    operations.map(({ method, path, parameters = [], requestBody }) => {
      const at = ['paths', path, method.toLowerCase()]
      const query = parameters.flatMap((parameter, index) => {
        if (parameter.in !== 'query' || !(parameter.required || random.chance(0.5))) return []
        const value = allowed(random, parameter.schema, [...at, 'parameters', index, 'schema'])
        return [`${parameter.name}=${encodeURIComponent(String(value))}`]
      })
      const content = requestBody?.content['application/json']
      const body = content && allowed(random, content.schema, [...at, 'requestBody', 'content', 'application/json', 'schema'])
      const target = path.replaceAll('{kind}', 'request').replaceAll(/\{\w+\}/g, '01ARZ3NDEKTSV4RRFFQ69G5FAV')
      const headers: FuzzRequest['headers'] = [
        ['Host', 'relay'],
        ['Authorization', `Bearer ${keys.admin}`],
      ]
      return {
        surface: 'api',
        method,
        target: `/api/${name}${target}${query.length > 0 ? `?${query.join('&')}` : ''}`,
        headers: body === undefined ? headers : [...headers, ['Content-Type', 'application/json']],
        ...(body !== undefined && { body: Buffer.from(JSON.stringify(body)) }),
      }
    })
}

const headersOf = (random: Random, world: World, workspace: World['steady'], hasBody: boolean): FuzzRequest['headers'] => {
  const { keys } = workspace
  const authorization = random.chance(0.93)
    ? `Bearer ${random.chance(0.85) ? keys.admin : random.pick([keys.member, keys.viewer])}`
    : random.pick([
        'Bearer',
        'Basic YTpi',
        `Bearer ${keys.admin}x`,
        'Bearer relay_a_b',
        `bearer  ${keys.viewer}`,
        `Bearer ${world.foreignKey}`,
      ])
  const headers: FuzzRequest['headers'] = [['Host', 'relay']]
  if (random.chance(0.98)) headers.push(['Authorization', authorization])
  if (hasBody)
    headers.push([
      'Content-Type',
      random.chance(0.95) ? 'application/json' : random.pick(['text/plain', '', 'application/json; charset=utf-16', '*/*']),
    ])
  if (random.chance(0.1)) headers.push(['If-Match', random.pick(['*', '"v1"', 'W/"v1"', '', '"', '"a", "b"', 'a'.repeat(5_000)])])
  if (random.chance(0.1))
    headers.push(['Idempotency-Key', random.pick(['k1', 'k2', 'k3', '', ' ', 'k'.repeat(256), '\xfc', `k${random.below(50)}`])])
  if (random.chance(0.08)) headers.push(['Range', random.pick(ranges)])
  if (random.chance(0.08))
    headers.push(['Accept-Encoding', random.pick(['gzip', 'br', 'identity;q=0', '*;q=0', 'gzip;q=2,x', 'zstd, deflate'])])
  if (random.chance(0.05)) headers.push(['Origin', random.pick(['https://console.example', 'null', 'https://evil.example', ''])])
  if (random.chance(0.03)) headers.push(['Content-Encoding', random.pick(['gzip', 'identity', 'br'])])
  if (random.chance(0.03)) headers.push(['Expect', '100-continue'])
  return headers
}

export const ranges = [
  'bytes=0-',
  'bytes=0-0',
  'bytes=-1',
  'bytes=-0',
  'bytes=5-1',
  'bytes=99999999999999999999-',
  'bytes=0-0,1-1',
  'items=0-1',
  'bytes=',
  `bytes=${'0-0,'.repeat(2_000)}0-0`,
]
