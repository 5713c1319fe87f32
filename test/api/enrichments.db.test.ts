import { readdir, readFile } from 'node:fs/promises'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'

const { api, acme, other } = share(await startScene())

const link = { kind: 'link' }
const vendor = {
  kind: 'http',
  name: 'vendor',
  path: "/A_Supplier('{erp_object_id[4:14]|trim_zeros}')",
  fields: [{ name: 'vendor_name', path: '$.d.SupplierName' }],
}
const http = { url: 'https://erp.example.com/sap/opu/odata', headers: { 'x-tenant': 'canary-header' } }

const repository = async (repoId: string, tenant = acme): Promise<string> =>
  (await tenant.call('POST', '/repositories', { repo_id: repoId, name: repoId })).json.data.id
const create = (body: object, tenant = acme) =>
  tenant.call('POST', '/enrichments', { name: 'Invoices', repository_ids: [], steps: [link], ...body })
const refusalOf = ({ status, json }: Awaited<ReturnType<typeof create>>) => ({ status, details: json.error.details })

test('an enrichment is created, listed, changed and deleted, and never shows its credentials', async () => {
  const fresh = await api.tenant('acme/enriched')
  const [first, second] = [await repository('E1', fresh), await repository('E2', fresh)]
  const body = {
    repository_ids: [second, first],
    http,
    steps: [link, vendor],
    credentials: { username: 'RELAY', password: 'canary-odata' },
  }
  const created = await create(body, fresh)
  expect(created.status).toBe(201)
  const { id, attributes } = created.json.data
  expect(attributes).toMatchObject({
    repository_ids: [second, first],
    is_active: true,
    wait_seconds: 60,
    late_days: 7,
    http,
    has_credentials: true,
    steps: [
      { kind: 'link', name: 'link' },
      { ...vendor, method: 'GET', fields: [{ ...vendor.fields[0], type: 'string', optional: false }] },
    ],
  })
  const listed = await fresh.call('GET', '/enrichments')
  expect(listed.json).toMatchObject({ data: [created.json.data], meta: { total: 1 } })
  expect(JSON.stringify(listed.json)).not.toContain('canary-odata')
  const seen = await fresh.call('GET', `/enrichments/${id}`, undefined, { key: fresh.keys.viewer })
  expect(JSON.stringify(seen.json)).not.toContain('canary-header')

  const moved = await fresh.call('PATCH', `/enrichments/${id}`, { http: { url: 'https://other.example.com' } })
  expect(refusalOf(moved)).toMatchObject({ status: 422, details: [{ path: 'credentials' }] })
  const changed = await fresh.call('PATCH', `/enrichments/${id}`, {
    is_active: false,
    repository_ids: [first],
    http: { ...http, headers: {} },
  })
  expect(changed.json.data.attributes).toMatchObject({ is_active: false, repository_ids: [first], has_credentials: true })
  for (const format of ['', '.csv']) {
    const audit = await fresh.call('GET', `/audit-logs${format}?subject_id=${id}`, undefined, { key: fresh.keys.viewer })
    expect(audit.text).toContain('http')
    expect(audit.text).not.toMatch(/canary-(?:header|odata)/)
  }
  const without = await fresh.call('PATCH', `/enrichments/${id}`, { http: null, steps: [link] })
  expect(without.json.data.attributes).toMatchObject({ http: null, has_credentials: false })

  expect((await fresh.call('DELETE', `/enrichments/${id}`)).status).toBe(204)
  expect((await fresh.call('GET', `/enrichments/${id}`)).status).toBe(404)
})

test('a repository has up to ten enrichments, which a deleted repository leaves', async () => {
  const id = await repository('O1')
  const created = await create({ name: 'First', repository_ids: [id] })
  for (let count = 1; count < 10; count += 1) expect((await create({ repository_ids: [id] })).status).toBe(201)
  expect(refusalOf(await create({ repository_ids: [await repository('O3'), id] }))).toEqual({
    status: 422,
    details: [{ path: 'repository_ids.1', message: 'is served by 10 enrichments already' }],
  })
  const { id: first } = created.json.data
  expect((await acme.call('PATCH', `/enrichments/${first}`, { repository_ids: [id], name: 'Still' })).status).toBe(200)
  expect(refusalOf(await create({ repository_ids: [await repository('O1', other)] })).details[0].path).toBe('repository_ids.0')
  await acme.call('DELETE', `/repositories/${id}`)
  const { json } = await acme.call('GET', `/enrichments/${created.json.data.id}`)
  expect(json.data.attributes.repository_ids).toEqual([])
})

const field = { name: 'total', path: '$.exports.TOTAL' }
const rfc = { kind: 'rfc', name: 'total', function: 'Z_TOTAL', fields: [field] }

test.each([
  ['a step of the kind http without a system', { steps: [vendor] }, 'steps.0.kind'],
  ['a path that is no JSONPath', { steps: [{ ...rfc, fields: [{ ...field, path: 'exports.TOTAL' }] }] }, 'steps.0.fields.0.path'],
  ['a placeholder that no earlier step fills', { steps: [{ ...rfc, imports: { ID: '{vendor}' } }] }, 'steps.0.imports.ID'],
  ['an unknown filter', { steps: [{ ...rfc, imports: { ID: '{doc_id|reverse}' } }] }, 'steps.0.imports.ID'],
  ['a parameter that no function has', { steps: [{ ...rfc, imports: { 'A B': '1' } }] }, 'steps.0.imports.A B'],
  ['two fields of one name', { steps: [rfc, { ...rfc, name: 'again' }] }, 'steps.1.fields.0.name'],
  ['a condition without a condition', { steps: [{ ...rfc, when: {} }] }, 'steps.0.when'],
  ['a condition of no type', { steps: [{ ...rfc, when: { erp_object_type: [] } }] }, 'steps.0.when.erp_object_type'],
  ['a condition on a field that no earlier step has', { steps: [{ ...rfc, when: { fields: ['total'] } }] }, 'steps.0.when.fields.0'],
  ['a field that names the document', { steps: [{ ...rfc, fields: [{ ...field, name: 'doc_id' }] }] }, 'steps.0.fields.0.name'],
  ['a path that leaves the system', { http, steps: [{ ...vendor, path: '//evil.example.com/' }] }, 'steps.0.path'],
  ['a wait of a day', { wait_seconds: 86_400 }, 'wait_seconds'],
  ['a secret in the headers', { http: { ...http, headers: { authorization: 'Basic x' } } }, 'http.headers.authorization'],
  ['credentials without TLS', { http: { url: 'http://192.0.2.1' }, credentials: { bearer_token: 'x' } }, 'http.url'],
])('%s is refused', async (_, body, path) => {
  const refusal = refusalOf(await create(body))
  expect(refusal).toMatchObject({ status: 422, details: [{ path }] })
})

test.each([
  ['a condition with an unknown name', { ...rfc, when: { object_type: ['BKPF'] } }, 'steps.0.when.object_type'],
  ['a condition of the link', { ...link, when: { erp_object_type: ['BKPF'] } }, 'steps.0.when'],
])('%s is unknown', async (_, step, path) => {
  const { status, details } = refusalOf(await create({ steps: [step] }))
  expect({ status, paths: details.map((each: { path: string }) => each.path) }).toEqual({
    status: 400,
    paths: expect.arrayContaining([path]),
  })
})

test('every ready enrichment of the documentation is accepted', async () => {
  const folder = new URL('../../docs/enrichments/', import.meta.url)
  const names = await readdir(folder)
  expect(names.length).toBeGreaterThan(0)
  for (const name of names) {
    const created = await create(JSON.parse(await readFile(new URL(name, folder), 'utf8')) as object)
    expect({ name, status: created.status, refusal: created.json.error }).toEqual({ name, status: 201, refusal: undefined })
  }
})
