import { X509Certificate } from 'node:crypto'
import { newId } from '../../src/ids.ts'
import { createSigner } from '../support/signer.ts'
import { startScene } from './api.ts'

const { database, api, acme, other, stop } = await startScene({ variables: { RELAY_REPOSITORY_MAX_CERTIFICATES: '3' } })
const [signer, second] = [await createSigner('DSA 1024'), await createSigner('RSA 2048', '/CN=ABC')]
afterAll(async () => {
  await Promise.all([signer.remove(), second.remove()])
  await stop()
})

const repository = async (repoId: string): Promise<string> =>
  (await acme.call('POST', '/repositories', { repo_id: repoId, name: 'A' })).json.data.id
const auditOf = (subjectId: string) => database.db('audit_logs').where({ subject_id: subjectId }).orderBy('id')

test('a certificate is added inactive, shown with its fingerprints, and activated, deactivated and deleted', async () => {
  const id = await repository('A1')
  const path = `/repositories/${id}/certificates`
  const added = await acme.call('POST', path, { auth_id: 'CN=TST', certificate: signer.pem })
  const { fingerprint, fingerprint256 } = new X509Certificate(signer.der)
  const hex = (text: string) => text.replaceAll(':', '').toLowerCase()
  expect({ status: added.status, data: added.json.data }).toEqual({
    status: 201,
    data: {
      id: expect.any(String),
      type: 'certificate',
      attributes: {
        auth_id: 'CN=TST',
        status: 'inactive',
        subject: 'C=DE, O=SAP Trust Community, OU=SAP Web AS, CN=TST',
        issuer: 'C=DE, O=SAP Trust Community, OU=SAP Web AS, CN=TST',
        serial_number: expect.stringMatching(/^[0-9a-f]+$/),
        valid_from: expect.any(String),
        valid_to: expect.any(String),
        key_algorithm: 'dsa',
        key_bits: 1024,
        fingerprint_sha1: hex(fingerprint),
        fingerprint_sha256: hex(fingerprint256),
        received_at: expect.any(String),
        updated_at: expect.any(String),
      },
    },
  })
  expect((await acme.call('GET', path)).json).toEqual({ data: [added.json.data], meta: { current_page: 1, per_page: 25, total: 1 } })

  const { id: certificateId, attributes } = added.json.data
  const shown = async () => (await acme.call('GET', `/repositories/${id}`)).json.data.attributes.certificates
  const { subject, valid_from, valid_to } = attributes
  expect(await shown()).toEqual([{ id: certificateId, subject, valid_from, valid_to, status: 'inactive' }])

  for (const status of ['active', 'active', 'inactive'] as const) {
    const changed = await acme.call('PATCH', `${path}/${certificateId}`, { status })
    expect([changed.status, changed.json.data.attributes.status]).toEqual([200, status])
    expect((await shown())[0].status).toBe(status)
  }
  expect((await acme.call('DELETE', `${path}/${certificateId}`)).status).toBe(204)
  expect((await acme.call('DELETE', `${path}/${certificateId}`)).status).toBe(404)
  expect(await shown()).toEqual([])

  const log = await auditOf(certificateId)
  expect(log.map(({ event }) => event)).toEqual(['cert.received', 'cert.activated', 'cert.deactivated', 'cert.deleted'])
  for (const entry of log) {
    expect(entry).toMatchObject({
      subject_type: 'Certificate',
      actor_type: 'api_key',
      metadata: { fingerprint_sha256: attributes.fingerprint_sha256, valid_to },
    })
  }
})

test('a certificate may come active, in base64 of what the source system has exported', async () => {
  const id = await repository('B1')
  const body = { auth_id: 'CN=TST', certificate: signer.pkcs7.toString('base64'), status: 'active' }
  const added = await acme.call('POST', `/repositories/${id}/certificates`, body)
  expect([added.status, added.json.data.attributes.status]).toEqual([201, 'active'])
  expect((await auditOf(added.json.data.id)).map(({ event }) => event)).toEqual(['cert.received', 'cert.activated'])
  const again = await acme.call('POST', `/repositories/${id}/certificates`, { ...body, certificate: signer.pem, status: 'inactive' })
  expect([again.status, again.json.error.code]).toEqual([409, 'conflict'])
})

test('a change carries the member whose key made it', async () => {
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

test('what is wrong with a certificate is told', async () => {
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

test('certificates are the business of admins, and of their own workspace', async () => {
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
