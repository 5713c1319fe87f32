import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import Koa from 'koa'
import { z } from 'zod'
import { endpoint, mount, type MountDeps } from '../../src/api/endpoint.ts'
import { openApiDocument } from '../../src/api/open-api/document.ts'
import { createPlaces } from '../../src/api/places.ts'

const link = 'https://relay.example/changes'
const old = endpoint({
  method: 'GET',
  path: '/old-things',
  level: 'viewer',
  summary: 'List old things',
  response: z.object({ data: z.array(z.string()), meta: z.object({ per_page: z.int(), next_cursor: z.string() }) }),
  deprecated: { since: '2027-01-31', sunset: '2027-09-30', link },
  handle: async () => ({ data: [], meta: { perPage: 25, nextCursor: '01K9R4B6ZD8M2V7X0QF3N5T1CE' } }),
})

test('a deprecated endpoint names in its headers since when, until when and what to use instead, beside the links of its list', async () => {
  const workspace = { id: 'w', userSlug: 'acme', workspaceSlug: 'prod' }
  const authenticate = async () => ({ type: 'api_key', id: 'k', level: 'viewer', workspace })
  const deps = { authenticate, places: createPlaces({ total: 1 }), config: {} } as unknown as MountDeps
  const server = new Koa().use(mount([old], deps)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/api/acme/prod/old-things`)
  server.close()
  expect(answer.status).toBe(200)
  expect(answer.headers.get('deprecation')).toBe('@1801353600')
  expect(answer.headers.get('sunset')).toBe('Thu, 30 Sep 2027 00:00:00 GMT')
  expect(answer.headers.get('link')).toMatch(/^<https:\/\/relay\.example\/changes>; rel="deprecation"; type="text\/html", <.*rel="next"$/)
})

test('the description calls it deprecated', () => {
  const operation = openApiDocument([old], []).paths['/old-things']!['get']!
  expect(operation.deprecated).toBe(true)
  expect(operation.description).toContain(`Deprecated since 2027-01-31; may be removed from 2027-09-30 on. See ${link}.`)
})
