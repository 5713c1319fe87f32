import { newId } from '../../src/base/ids.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { createSigner } from '../support/signer.ts'

const { database, api, acme, other } = share(await startScene({ limits: { endpoints: { maxCertificates: 3 } } }))
const [signer, second] = [share(await createSigner('DSA 1024')), share(await createSigner('RSA 2048', '/CN=ABC'))]

const repository = async (repoId: string): Promise<string> =>
  (await acme.call('POST', '/repositories', { repo_id: repoId, name: 'A' })).json.data.id
const auditOf = (subjectId: string) => database.db('audit_logs').where({ subject_id: subjectId }).orderBy('id')

test('a certificate can be added as active, in base64 of the PKCS #7 file that the source system exports', async () => {
  const id = await repository('B1')
  const body = { auth_id: 'CN=TST', certificate: signer.pkcs7.toString('base64'), status: 'active' }
  const added = await acme.call('POST', `/repositories/${id}/certificates`, body)
  expect([added.status, added.json.data.attributes.status]).toEqual([201, 'active'])
  expect((await auditOf(added.json.data.id)).map(({ event }) => event)).toEqual(['cert.received', 'cert.activated'])
  const again = await acme.call('POST', `/repositories/${id}/certificates`, { ...body, certificate: signer.pem, status: 'inactive' })
  expect([again.status, again.json.error.code]).toEqual([409, 'conflict'])
})

test('the audit entry of a change names the member to whom the key belongs', async () => {
  const id = await repository('C1')
  const workspace = await database.db('workspaces').where({ user_slug: 'acme', workspace_slug: 'prod' }).first()
  const memberId = newId()
  await database.db('members').insert({ id: memberId, workspace_id: workspace.id, email: 'a@example.com', name: 'A' })
  const created = await acme.call('POST', '/api-keys', { name: 'hers', level: 'admin', user_id: memberId })
  const { key } = created.json.data.attributes
  const added = await api.call('POST', `${acme.path}/repositories/${id}/certificates`, {
    key,
    body: { auth_id: 'CN=TST', certificate: signer.pem },
  })
  expect(await auditOf(added.json.data.id)).toMatchObject([{ actor_type: 'api_key', user_id: memberId }])
})

test('an invalid certificate is refused with the path of the invalid value', async () => {
  const id = await repository('D1')
  const path = `/repositories/${id}/certificates`
  const refused = async (body: object) => {
    const { status, json } = await acme.call('POST', path, body)
    return [status, json.error.code, (json.error.details ?? []).map((detail: { path: string }) => detail.path)]
  }
  const good = { auth_id: 'CN=TST', certificate: signer.pem }
  expect(await refused({ ...good, certificate: 'garbage' })).toEqual([422, 'validation_failed', ['certificate']])
  expect(await refused({ ...good, certificate: 'A'.repeat(256 * 1024 + 1) })).toEqual([422, 'validation_failed', ['certificate']])
  expect(await refused({ ...good, auth_id: '' })).toEqual([422, 'validation_failed', ['auth_id']])
  expect(await refused({ ...good, auth_id: 'a\nb' })).toEqual([422, 'validation_failed', ['auth_id']])
  expect(await refused({ ...good, status: 'new' })).toEqual([422, 'validation_failed', ['status']])
  expect(await refused({ certificate: signer.pem })).toEqual([400, 'invalid_request', ['auth_id']])

  const { json } = await acme.call('POST', path, good)
  const one = `${path}/${json.data.id}`
  expect((await acme.call('PATCH', one, {})).status).toBe(400)
  expect((await acme.call('PATCH', one, { status: 'active', name: 'x' })).status).toBe(400)
  for (const auth_id of ['A', 'B']) expect((await acme.call('POST', path, { ...good, auth_id })).status).toBe(201)
  expect(await refused({ ...good, certificate: second.pem })).toEqual([409, 'conflict', []])
})

test('a key that is too short is refused, and what is unusual about a certificate is in its warnings', async () => {
  const path = `/repositories/${await repository('F1')}/certificates`
  const md5 = await createSigner('RSA 1024', '/CN=MD5', 'md5')
  const [shortRsa, shortCurve, curve] = [await createSigner('RSA 512'), await createSigner('secp112r1'), await createSigner('P-192')]
  const add = async (certificate: string) => acme.call('POST', path, { auth_id: 'CN=TST', certificate })
  for (const { pem } of [shortRsa, shortCurve]) {
    const { status, json } = await add(pem)
    expect([status, json.error.details]).toEqual([
      422,
      [{ path: 'certificate', message: 'has a key of less than 1024 bits (elliptic curve: 160)' }],
    ])
  }
  const warningsOf = async (certificate: string) => (await add(certificate)).json.data.attributes.warnings
  expect(await warningsOf(second.pem)).toEqual([])
  expect(await warningsOf(curve.pem)).toEqual([{ code: 'short_key', message: 'The key has 192 bits. Use at least 224.' }])
  expect(await warningsOf(md5.pem)).toEqual([
    { code: 'short_key', message: 'The key has 1024 bits. Use at least 2048.' },
    { code: 'md5', message: expect.any(String) },
  ])
  await database.db('certificates').where({ subject: 'CN=MD5' }).update({ valid_to: '2021-01-01T00:00:00Z' })
  expect((await acme.call('GET', path)).json.data.at(-1).attributes.warnings.at(-1)).toEqual({
    code: 'expired',
    message: 'The certificate expired at 2021-01-01T00:00:00.000Z.',
  })
  await Promise.all([md5, shortRsa, shortCurve, curve].map((created) => created.remove()))
})

test('all inactive certificates of a repository are deleted together', async () => {
  const id = await repository('G1')
  const path = `/repositories/${id}/certificates`
  const add = (auth_id: string, status = 'inactive') => acme.call('POST', path, { auth_id, certificate: second.pem, status })
  for (const authId of ['CN=1', 'CN=2']) await add(authId)
  const kept = await add('CN=3', 'active')
  const elsewhere = `/repositories/${await repository('G2')}/certificates`
  await acme.call('POST', elsewhere, { auth_id: 'CN=1', certificate: second.pem })

  const all = `${path}?status=inactive`
  expect((await api.call('DELETE', acme.path + all, { key: acme.keys.member })).status).toBe(403)
  expect((await other.call('DELETE', all)).status).toBe(404)
  for (const query of ['', '?status=active', '?status=inactive&auth_id=CN%3D1'])
    expect((await acme.call('DELETE', path + query)).status).toBe(400)
  expect((await acme.call('GET', path)).json.meta.total).toBe(3)
  expect((await acme.call('DELETE', all)).status).toBe(204)
  expect((await acme.call('GET', path)).json.data).toEqual([kept.json.data])
  expect((await acme.call('GET', elsewhere)).json.meta.total).toBe(1)
  expect((await acme.call('DELETE', all)).status).toBe(204)
})

test('only admins of the same workspace can change certificates', async () => {
  const id = await repository('E1')
  const path = `/repositories/${id}/certificates`
  const body = { auth_id: 'CN=TST', certificate: signer.pem }
  const { json } = await acme.call('POST', path, body)
  const one = `${path}/${json.data.id}`
  for (const level of ['viewer', 'member'] as const) {
    const key = acme.keys[level]
    expect((await api.call('GET', acme.path + path, { key })).status).toBe(200)
    expect((await api.call('POST', acme.path + path, { key, body })).status).toBe(403)
    expect((await api.call('PATCH', acme.path + one, { key, body: { status: 'active' } })).status).toBe(403)
    expect((await api.call('DELETE', acme.path + one, { key })).status).toBe(403)
  }
  expect((await other.call('GET', path)).status).toBe(404)
  expect((await other.call('POST', path, body)).status).toBe(404)
  expect((await other.call('PATCH', one, { status: 'active' })).status).toBe(404)
  expect((await other.call('DELETE', one)).status).toBe(404)
  const elsewhere = await repository('E2')
  expect((await acme.call('PATCH', `/repositories/${elsewhere}/certificates/${json.data.id}`, { status: 'active' })).status).toBe(404)
  expect((await acme.call('DELETE', `${path}/nonsense`)).status).toBe(404)
})
