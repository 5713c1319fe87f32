import type { Operation } from '../../src/api/open-api/operations.ts'
import { newId } from '../../src/base/ids.ts'
import { propertiesOf, type JsonSchema } from '../../src/base/json-schema.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { startApi } from '../support/api.ts'
import type { Answer, WorkspaceClient } from '../support/client.ts'
import { readOpenApi } from '../support/contract.ts'
import { createTestDatabase } from '../support/database.ts'
import { share } from '../support/share.ts'
import { createSigner } from '../support/signer.ts'
import { createResources, foreignNames } from './resources.ts'

interface Listed {
  method: string
  template: string
  operation: Operation
}

const { paths, components } = await readOpenApi()
const operations: Listed[] = Object.entries(paths).flatMap(([template, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), template, operation })),
)

const bodyOf = ({ operation }: Listed) => operation.requestBody?.content['application/json']

const exampleOf = (listed: Listed) => {
  const body = bodyOf(listed)
  return (body?.example ?? Object.values(body?.examples ?? {})[0]?.value) as object | undefined
}

const resolve = (schema: JsonSchema): JsonSchema =>
  schema.$ref === undefined ? schema : resolve(components.schemas[schema.$ref.split('/').at(-1)!]!)

const attributesOf = (listed: Listed): string[] => {
  const schema = resolve(bodyOf(listed)?.schema ?? {})
  return [...new Set([schema, ...(schema.oneOf ?? [])].flatMap((shape) => Object.keys(propertiesOf(resolve(shape)))))]
}
const idAttributesOf = (listed: Listed) => attributesOf(listed).filter((name) => /_ids?$/.test(name) && !foreignNames.has(name))

/** Returns the first value of each enum parameter, such as `request` of `request` or `response`. */
const choicesOf = ({ operation }: Listed): Record<string, string> =>
  Object.fromEntries(operation.parameters.flatMap(({ name, schema }) => (schema.enum ? [[name, String(schema.enum[0])]] : [])))

/** Returns the path up to its last id. It identifies the resource that the test has to create. */
const resourceOf = (listed: Listed): string => {
  const choices = choicesOf(listed)
  const segments = listed.template.split('/')
  const isId = (segment: string) => segment.startsWith('{') && !(segment.slice(1, -1) in choices)
  return segments.slice(0, segments.findLastIndex(isId) + 1).join('/')
}

const withIds = operations.filter((listed) => resourceOf(listed) !== '').map((listed) => ({ name: listed.operation.operationId, listed }))
const withIdsInBody = operations.flatMap((listed) =>
  idAttributesOf(listed).map((attribute) => ({ name: listed.operation.operationId, attribute, listed })),
)

const database = share(await createTestDatabase())
const store = createPostgresStore(database.db)
const api = share(await startApi(database.db))
const [acme, other] = [await api.tenant('acme/prod'), await api.tenant('other/prod')]
const signer = share(await createSigner('P-256'))
const resources = createResources({ db: database.db, store, certificate: signer.pem })

const call = (tenant: WorkspaceClient, listed: Listed, ids: Record<string, string>, body = exampleOf(listed)) => {
  const values = { ...choicesOf(listed), ...ids }
  const path = listed.template.replaceAll(/\{(\w+)\}/g, (_, name: string) => values[name]!)
  const required = listed.operation.parameters.filter((parameter) => parameter.in === 'query' && parameter.required)
  const query = required.map(({ name }) => `${name}=${values[name]}`).join('&')
  return tenant.call(listed.method, query === '' ? path : `${path}?${query}`, body)
}

/** Returns a response without the request id and the date. */
const comparable = ({ status, headers, json, text }: Answer) => ({
  status,
  body: json?.error ? { ...json.error, request_id: undefined } : text,
  headers: Object.fromEntries([...headers].filter(([name]) => name !== 'date' && name !== 'x-relay-request-id')),
})

/** Returns a digest of every table, ignoring `last_used_at` of API keys. */
const databaseDigests = async (): Promise<Record<string, string>> => {
  const { rows } = await database.db.raw<{ rows: { name: string }[] }>(`
    select table_name as name
    from information_schema.tables
    where table_schema = 'public' and table_type = 'BASE TABLE'
  `)
  const digests = rows.map(async ({ name }): Promise<[string, string]> => {
    const digest = await database.db.raw<{ rows: { md5: string }[] }>(
      `select md5(coalesce(string_agg(row, '' order by row), '')) as md5
      from (select (to_jsonb(stored) - '{last_used_at}'::text[])::text as row from ?? as stored) as stored_rows`,
      [name],
    )
    return [name, digest.rows[0]!.md5]
  })
  return Object.fromEntries(await Promise.all(digests))
}

const unknown = (ids: Record<string, string>) =>
  Object.fromEntries(Object.keys(ids).map((name) => [name, name === 'day' ? '1999-12-31' : newId()]))

test('every operation with ids has a function that creates its resource', () => {
  expect(withIds.length).toBeGreaterThan(15)
  const existing = { paths: Object.keys(resources.byPath), attributes: Object.keys(resources.byAttribute) }
  expect(existing.paths).toEqual(expect.arrayContaining(withIds.map(({ listed }) => resourceOf(listed))))
  expect(existing.attributes).toEqual(expect.arrayContaining(withIdsInBody.map(({ attribute }) => attribute)))
})

describe('an id of another workspace gets the response of an unknown id and changes nothing', () => {
  test.each(withIds)('$name', async ({ listed }) => {
    const make = resources.byPath[resourceOf(listed)]!
    const [foreign, own] = [await make(other), await make(acme)]
    const last = Object.keys(foreign).at(-1)!
    const before = await databaseDigests()

    const expected = comparable(await call(acme, listed, unknown(foreign)))
    expect(expected).toMatchObject({ status: 404, body: { code: 'not_found' } })
    expect(comparable(await call(acme, listed, foreign))).toEqual(expected)
    // Only the last id belongs to another workspace. A `doc_id` is a name of the source system, and may be told about before its document arrives.
    if (last !== 'doc_id') expect(comparable(await call(acme, listed, { ...own, [last]: foreign[last]! }))).toEqual(expected)
    expect(await databaseDigests()).toEqual(before)

    // The id exists: its owner does not get 404.
    expect((await call(other, listed, foreign)).status).not.toBe(404)
  })

  test.each(withIdsInBody)('$name: $attribute', async ({ listed, attribute }) => {
    const ids = resourceOf(listed) === '' ? {} : await resources.byPath[resourceOf(listed)]!(acme)
    const own: Record<string, string> = {}
    for (const name of idAttributesOf(listed)) own[name] = await resources.byAttribute[name]!(acme)
    const foreign = await resources.byAttribute[attribute]!(other)
    const bodyWith = (id: string) => {
      const entries = Object.entries({ ...own, [attribute]: id })
      return { ...exampleOf(listed), ...Object.fromEntries(entries.map(([name, value]) => [name, name.endsWith('s') ? [value] : value])) }
    }
    const before = await databaseDigests()

    const expected = comparable(await call(acme, listed, ids, bodyWith(newId())))
    expect(expected).toMatchObject({ status: 422, body: { code: 'validation_failed' } })
    expect(comparable(await call(acme, listed, ids, bodyWith(foreign)))).toEqual(expected)
    expect(await databaseDigests()).toEqual(before)

    // The same request succeeds with ids of the own workspace.
    expect((await call(acme, listed, ids, bodyWith(own[attribute]!))).status).toBeLessThan(300)
  })
})
