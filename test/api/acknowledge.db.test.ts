import { newId } from '../../src/base/ids.ts'
import type { DeliveryStatus, DocumentStatus } from '../../src/domain/delivery-states.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { insertDocument } from './insert-document.ts'
import { wire } from './objstore.ts'

const { database, api, acme, other } = share(await startScene())
const wired = await wire(acme, 'A1')

const insert = (status: DocumentStatus & DeliveryStatus = 'failed', workspaceId = acme.id, { repositoryId, ...ids } = wired) =>
  insertDocument(database.db, { workspaceId, repositoryId, repoId: 'A1', status, deliveries: [{ ...ids, status }] })
const acknowledge = (id: string, options?: { key: string }) => acme.call('POST', `/documents/${id}/acknowledge`, undefined, options)

test('acknowledging failed documents empties the list of those that need attention', async () => {
  const tenant = await api.tenant('acme/attention')
  const own = await wire(tenant, 'A1')
  const [first, second] = [await insert('failed', tenant.id, own), await insert('failed', tenant.id, own)]
  const idsOf = async (query: string) => (await tenant.call('GET', `/documents?${query}`)).json.data.map(({ id }: { id: string }) => id)
  const { status, json } = await tenant.call('POST', `/documents/${first}/acknowledge`, undefined, { key: tenant.keys.member })
  expect(status).toBe(200)
  expect(json.data.attributes).toMatchObject({ status: 'failed', acknowledged_at: expect.any(String) })
  expect(await idsOf('status=failed&acknowledged=false')).toEqual([second])
  expect(await idsOf('acknowledged=true')).toEqual([first])
  expect(await idsOf('status=failed')).toEqual([second, first])
})

test('repeating it changes nothing and leaves no second entry', async () => {
  const id = await insert()
  const first = await acknowledge(id)
  expect((await acknowledge(id)).json).toEqual(first.json)
  expect(await database.db('audit_logs').where({ event: 'document.acknowledged', subject_id: id })).toHaveLength(1)
})

test('a retry ends the acknowledgement, so a document that fails again needs attention again', async () => {
  const id = await insert()
  await acknowledge(id)
  expect((await acme.call('POST', `/documents/${id}/retry`)).status).toBe(200)
  await database.db('deliveries').where({ document_id: id }).update({ status: 'failed' })
  expect((await acme.call('GET', `/documents/${id}`)).json.data.attributes).toMatchObject({ status: 'failed', acknowledged_at: null })
})

test.each(['pending', 'retrying', 'delivered'] as const)('a document that is %s cannot be acknowledged', async (status) => {
  expect((await acknowledge(await insert(status))).json.error).toMatchObject({ code: 'conflict', message: expect.stringContaining(status) })
})

test('deliveries that are still open are named, and go on', async () => {
  const second = await wire(acme, 'A2')
  const documentId = await insert()
  const deliveryTo = async ({ destinationId, connectionId }: typeof wired, status: DeliveryStatus) =>
    database.db('deliveries').insert({
      document_id: documentId,
      destination_id: destinationId,
      workspace_id: acme.id,
      connection_id: connectionId,
      path: 'x',
      status,
    })
  await deliveryTo(second, 'held')
  const { status, json } = await acknowledge(documentId)
  const { destinationId } = second
  const open = { destination_id: destinationId, destination_name: expect.any(String), status: 'held' }
  expect([status, json.meta]).toEqual([200, { open_deliveries: [open] }])
  const [entry] = await database.db('audit_logs').where({ event: 'document.acknowledged', subject_id: documentId })
  expect(entry.metadata).toMatchObject({ open_destination_ids: [destinationId] })

  await database.db('deliveries').where({ document_id: documentId, destination_id: destinationId }).update({ status: 'delivered' })
  expect((await acknowledge(documentId)).json).not.toHaveProperty('meta')
})

test.each<[string, DeliveryStatus, DeliveryStatus, boolean, string]>([
  ['is delivered', 'retrying', 'delivered', true, 'B0'],
  ['is cancelled', 'held', 'cancelled', true, 'B1'],
  ['goes on', 'pending', 'retrying', true, 'B2'],
  ['fails', 'retrying', 'failed', false, 'B3'],
])(
  'a delivery that was open when its document was acknowledged, and %s: the document stays failed',
  async (_, open, then, isKept, repoId) => {
    const { destinationId, connectionId } = await wire(acme, repoId)
    const id = await insert()
    const ref = { document_id: id, destination_id: destinationId }
    await database.db('deliveries').insert({ ...ref, workspace_id: acme.id, connection_id: connectionId, path: 'x', status: open })
    await acknowledge(id)
    await database.db('deliveries').where(ref).update({ status: then })
    const { attributes } = (await acme.call('GET', `/documents/${id}`)).json.data
    expect([attributes.status, attributes.acknowledged_at !== null]).toEqual(['failed', isKept])
    expect(await database.db('deliveries').where({ document_id: id, needs_attention: true })).toHaveLength(isKept ? 0 : 2)
  },
)

test('a retry of one of two failed deliveries ends the acknowledgement', async () => {
  const second = await wire(acme, 'A3')
  const id = await insert()
  const ref = { document_id: id, destination_id: second.destinationId }
  await database.db('deliveries').insert({ ...ref, workspace_id: acme.id, connection_id: second.connectionId, path: 'x', status: 'failed' })
  await acknowledge(id)
  await database.db('deliveries').where(ref).update({ status: 'retrying' })
  expect((await acme.call('GET', `/documents/${id}`)).json.data.attributes).toMatchObject({ status: 'failed', acknowledged_at: null })
})

test('it requires the level member and a document of the same workspace', async () => {
  const id = await insert()
  expect((await acknowledge(id, { key: acme.keys.viewer })).status).toBe(403)
  expect((await other.call('POST', `/documents/${id}/acknowledge`)).status).toBe(404)
  expect((await acknowledge(newId())).status).toBe(404)
})
