import type { z } from 'zod'
import { apiEndpoints, type EndpointDeps } from '../../src/api/app.ts'
import type { Endpoint } from '../../src/api/endpoint.ts'
import { newId } from '../../src/base/ids.ts'
import { createConnectors } from '../../src/connectors/index.ts'
import { hostileJson, hostileUnits, repeated } from './hostile.ts'
import type { HostileRequest } from './measured-relay.ts'

const endpoints = apiEndpoints({} as EndpointDeps)

export const endpointNames = endpoints.map(({ method, path }) => `${method} ${path}`)

const namesOf = (schema: z.ZodType): string[] => ('shape' in schema ? Object.keys(schema.shape as object) : [])

/** Returns objects with all of these names, with hostile values that share a mebibyte. */
const hostileObjects = (names: string[]): object[] => {
  const all = (value: unknown) => Object.fromEntries(names.map((name) => [name, value]))
  const share = Math.floor(1_000_000 / Math.max(names.length, 1))
  return [
    ...hostileUnits.map((unit) => all(repeated(unit, share))),
    // As many values as a body may contain.
    all(Array.from({ length: Math.floor(4_500 / Math.max(names.length, 1)) }, () => 'a')),
  ]
}

/** Bodies of each kind of destination. */
const destinationBodies = createConnectors().all.flatMap(({ kind, config, credentials }) =>
  hostileObjects([...new Set([...namesOf(config), ...namesOf(credentials)])]).map((values) => {
    const pick = (schema: z.ZodType) => Object.fromEntries(Object.entries(values).filter(([name]) => namesOf(schema).includes(name)))
    return { name: 'A', connector_type: kind, config: pick(config), credentials: pick(credentials) }
  }),
)

const hostileQueries = [
  '&'.repeat(60_000),
  'before=a&'.repeat(6_000),
  'status=failed&'.repeat(4_000),
  Array.from({ length: 9_000 }, (_, index) => `&a${index}=`).join(''),
  `date_from=${'2026-01-01T'.repeat(5_000)}`,
  `repo_id=${'%41'.repeat(20_000)}`,
]

/** Requests to every endpoint. Their ids do not exist, because bodies and queries are checked before. */
export const apiRequests = (path: string, authorization: Record<string, string>): HostileRequest[] => {
  const id = newId()
  const headers = { ...authorization, 'content-type': 'application/json' }

  const requestsTo = ({ method, path: template, body, query }: Endpoint): HostileRequest[] => {
    const covers = `${method} ${template}`
    const target = path + template.replaceAll(/:kind/g, 'request').replaceAll(/:\w+/g, id)
    const plain = { covers, name: covers, path: `${target}?per_page=100`, method, headers: authorization }
    if (!body) {
      const queries = query ? hostileQueries : hostileQueries.slice(0, 1)
      return [plain, ...queries.map((text) => ({ ...plain, name: `${covers}?${text.slice(0, 20)}`, path: `${target}?${text}` }))]
    }
    const bodies = [...hostileObjects(namesOf(body)), ...(template === '/destinations' ? destinationBodies : [])]
    const texts = [...bodies.map((each) => JSON.stringify(each)), ...Object.values(hostileJson).slice(0, 2), hostileJson['deep arrays']!]
    return texts.map((text) => ({ covers, name: `${covers} ${text.slice(0, 60)}`, path: target, method, headers, body: text }))
  }

  const bearer = { authorization: `Bearer ${'relay_'.repeat(10_000)}` }
  return [
    ...endpoints.flatMap(requestsTo),
    { covers: 'authentication', name: 'a long key', path: `${path}/documents`, headers: bearer },
    { covers: 'routing', name: 'a long path', path: `${path}${'/a'.repeat(30_000)}`, headers: authorization },
    ...['/openapi.json', '/docs/reference', '/docs/swagger-ui-bundle.js', '/healthz', `/download/${id}/${id}?${'a=1&'.repeat(15_000)}`].map(
      (page) => ({
        covers: page.slice(0, 20),
        name: page.slice(0, 20),
        path: page,
      }),
    ),
  ]
}
