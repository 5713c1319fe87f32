import type { Operation } from '../../../src/api/open-api/operations.ts'
import { createPostgresStore } from '../../../src/content/postgres.ts'
import { startApi } from '../../support/api.ts'
import { readOpenApi } from '../../support/contract.ts'
import { createTestDatabase } from '../../support/database.ts'
import { share } from '../../support/share.ts'
import { createSigner } from '../../support/signer.ts'
import { createResources } from '../resources.ts'

// What the page /docs sends with "Try it out": the examples of the required parameters and of the body, and nothing else.

const database = share(await createTestDatabase())
const api = share(await startApi(database.db, { limits: { endpoints: { probeTimeoutMs: 200 } } }))
const signer = share(await createSigner('P-256'))
const resources = createResources({ db: database.db, store: createPostgresStore(database.db), certificate: signer.pem })
const { paths } = await readOpenApi()

const operations = Object.entries(paths).flatMap(([template, methods]) =>
  Object.entries(methods).flatMap(([method, operation]) => {
    const body = operation.requestBody?.content['application/json']
    const bodies = body?.examples
      ? Object.entries(body.examples).map(([kind, { value }]) => ({ kind, value }))
      : [{ kind: '', value: body?.example }]
    return bodies.map(({ kind, value }) => ({
      name: `${operation.operationId} ${kind}`.trim(),
      method: method.toUpperCase(),
      template,
      operation,
      kind,
      value,
    }))
  }),
)

// The example of a Drive destination has no private key, and a directory has to be allowed by the operator.
const isTried = ({ kind }: { kind: string }) => !['drive', 'directory'].includes(kind)

const queryOf = ({ parameters }: Operation) =>
  new URLSearchParams(
    parameters.flatMap(({ in: location, required, example, name }) =>
      location === 'query' && required ? [[name, String(example)] as [string, string]] : [],
    ),
  )

/** Puts ids of the workspace in place of those of the example. */
const withOwnIds = async (value: unknown, tenant: Parameters<(typeof resources.byPath)[string]>[0]): Promise<unknown> => {
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(async ([name, inner]) => {
    if (name === 'documents') {
      const ids = await resources.byPath['/documents/by-doc-id/{repo_id}/{doc_id}']!(tenant)
      return [name, (inner as object[]).map((each) => ({ ...each, ...ids }))] as const
    }
    const make = resources.byAttribute[name]
    if (!make) return [name, inner] as const
    const id = await make(tenant)
    return [name, Array.isArray(inner) ? [id] : id] as const
  })
  return Object.fromEntries(await Promise.all(entries))
}

test.each(operations.filter(isTried))('the examples of $name are accepted, twice', async ({ name, method, template, operation, value }) => {
  const tenant = await api.tenant(`acme/${name.toLowerCase().replaceAll(/[^a-z0-9]/g, '-')}`)
  for (const _ of [1, 2]) {
    const ids = await resources.idsOf(template, tenant)
    const path = template.replaceAll(/\{(\w+)\}/g, (_match, key: string) => {
      const { example } = operation.parameters.find((parameter) => parameter.name === key)!
      return encodeURIComponent(ids[key] ?? String(example))
    })
    const query = queryOf(operation).toString()
    const answer = await tenant.call(method, path + (query === '' ? '' : `?${query}`), await withOwnIds(value, tenant))
    // A conflict is one of the state, such as a second repository with the same repo_id.
    expect({ status: answer.status, json: answer.status === 409 || answer.status < 300 ? 'accepted' : answer.json }).toMatchObject({
      json: 'accepted',
    })
    expect(answer.headers.get('idempotent-replayed')).toBeNull()
  }
})
