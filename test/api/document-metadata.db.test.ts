import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { insertDocument } from './insert-document.ts'
import { wire } from './objstore.ts'

const { database, acme, other } = share(await startScene())
const { repositoryId } = await wire(acme, 'A1')

const insert = (docId: string, compId = 'data') =>
  insertDocument(database.db, { workspaceId: acme.id, repositoryId, repoId: 'A1', docId, compId })
const path = (docId: string, repoId = 'A1') => `/documents/by-doc-id/${repoId}/${encodeURIComponent(docId)}/metadata`
const metadataOf = async (id: string) => (await acme.call('GET', `/documents/${id}`)).json.data.attributes.metadata

test('metadata of a docId is set on all of its documents, including superseded ones', async () => {
  const [first, second, stranger] = [await insert('D 1/ä'), await insert('D 1/ä', 'note'), await insert('D2')]
  await database.db('documents').where({ id: first }).update({ superseded_at: new Date() })
  const body = { erp_object_type: 'BKPF', erp_object_id: '1000-4711' }
  const metadata = { ...body, ar_object: 'ZINVOICE' }
  for (const key of [acme.keys.member, acme.keys.admin]) {
    const { status, json } = await acme.call('PUT', path('D 1/ä'), body, { key })
    expect({ status, json }).toEqual({
      status: 200,
      json: { data: { repo_id: 'A1', doc_id: 'D 1/ä', documents: 2, metadata, file_name: null, description: null } },
    })
  }
  expect([await metadataOf(first), await metadataOf(second)]).toEqual([metadata, metadata])
  expect(await metadataOf(stranger)).toEqual({ erp_object_type: null, erp_object_id: null, ar_object: 'ZINVOICE' })

  await acme.call('PUT', path('D 1/ä'), { ar_object: null })
  expect(await metadataOf(first)).toEqual({ ...body, ar_object: null })
})

test.each([
  [{}, 400],
  [{ colour: 'red' }, 400],
  [{ ar_object: 5 }, 400],
  [{ ar_object: '' }, 422],
  [{ ar_object: 'x'.repeat(256) }, 422],
  [{ file_name: '' }, 422],
  [{ file_name: ' a.pdf' }, 422],
  [{ file_name: '..' }, 422],
  [{ file_name: 'C:\\Temp\\a.pdf' }, 422],
  [{ file_name: '../a.pdf' }, 422],
  [{ file_name: 'a\u202efdp.exe' }, 422],
  [{ file_name: 'a\n.pdf' }, 422],
  [{ file_name: 'ä'.repeat(256) }, 422],
  [{ file_name: 'ä'.repeat(255) }, 200],
  [{ file_name: null, description: null }, 200],
])('PUT %j is answered with %d', async (body, status) => {
  await insert('D3')
  expect((await acme.call('PUT', path('D3'), body)).status).toBe(status)
})

test('an unknown repository or workspace is 404, and a viewer is refused', async () => {
  await insert('D4')
  const body = { ar_object: 'A' }
  expect((await acme.call('PUT', path('D4', 'B1'), body)).status).toBe(404)
  expect((await acme.call('PUT', path('D4\0'), body)).status).toBe(404)
  expect((await other.call('PUT', path('D4'), body)).status).toBe(404)
  expect((await acme.call('PUT', path('D4'), body, { key: acme.keys.viewer })).status).toBe(403)
})

test('metadata of several documents are set together, and each unknown repository is named', async () => {
  const [first, second] = [await insert('M1'), await insert('M2')]
  const documents = [
    { repo_id: 'A1', doc_id: 'M1', file_name: 'one.pdf' },
    { repo_id: 'A1', doc_id: 'M2', file_name: 'two.pdf', erp_object_type: 'BKPF' },
    { repo_id: 'A1', doc_id: 'M3', description: 'later' },
  ]
  const batch = (body: object) => acme.call('PUT', '/documents/metadata', body, { key: acme.keys.member })
  const { status, json } = await batch({ documents })
  expect(status).toBe(200)
  expect(json.data).toMatchObject([
    { documents: 1, file_name: 'one.pdf' },
    { documents: 1, file_name: 'two.pdf' },
    { documents: 0, description: 'later' },
  ])
  expect(await metadataOf(second)).toMatchObject({ erp_object_type: 'BKPF' })
  expect((await acme.call('GET', `/documents/${first}`)).json.data.attributes.file_name).toBe('one.pdf')

  const unknown = await batch({ documents: [...documents, { repo_id: 'B1', doc_id: 'M4', file_name: 'three.pdf' }] })
  expect({ status: unknown.status, details: unknown.json.error.details }).toMatchObject({
    status: 422,
    details: [{ path: 'documents.3.repo_id' }],
  })
  for (const [wrong, refused] of [
    [[], 422],
    [Array.from({ length: 501 }, (_, index) => ({ repo_id: 'A1', doc_id: `N${index}`, file_name: 'a' })), 422],
    [[{ repo_id: 'A1', doc_id: 'M1' }], 400],
    [[{ repo_id: 'A1', file_name: 'a' }], 400],
    [[{ repo_id: 'A1', doc_id: 'M1', file_name: 'a/b' }], 422],
  ] as const) {
    expect((await batch({ documents: wrong })).status).toBe(refused)
  }
})
