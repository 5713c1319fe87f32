import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'

const { workspace, database } = share(await startScene())

const refusalOf = ({ status, json }: { status: number; json: { error?: { code: string; message: string } } }) =>
  [status, json.error!.code, json.error!.message] as const

test('a test document is stored like one of the source system, for every destination, whatever signatures and addresses are required', async () => {
  const { ask, keys, repositoryId, repoId } = await workspace([{ name: 'archive' }, { name: 'approval' }], {
    workspaceSettings: { receiver_allowed_cidrs: ['192.0.2.0/24'] },
  })
  await database.db('repositories').where({ id: repositoryId }).update({ signature_verification: true })
  const { status, json } = await ask('POST', `/repositories/${repositoryId}/test-document`, keys.member)
  expect(status).toBe(201)
  const { document_id: documentId, request_id: requestId } = json.data
  const document = (await ask('GET', `/documents/${documentId}`)).json.data.attributes
  expect(document).toMatchObject({ repo_id: repoId, comp_id: 'data', content_type: 'application/pdf', status: 'pending' })
  expect(document.deliveries.map((each: { destination_name: string }) => each.destination_name).toSorted()).toEqual(['approval', 'archive'])
  const request = (await ask('GET', `/requests/${requestId}`)).json.data.attributes
  expect(request).toMatchObject({ http_method: 'PUT', status_code: 201, document_ids: [documentId] })
  const body = await ask('GET', `/documents/${documentId}/content`)
  expect(body.status).toBe(200)
})

test('a test document is refused where it could not be delivered', async () => {
  const { ask, keys, repositoryId, connections } = await workspace([{ name: 'archive' }], { workspaceSettings: { receiver_max_bytes: 1 } })
  const setStatus = (status: string) => database.db('repositories').where({ id: repositoryId }).update({ status })
  const send = async (key = keys.member) => refusalOf(await ask('POST', `/repositories/${repositoryId}/test-document`, key))
  expect((await send(keys.viewer))[0]).toBe(403)
  await setStatus('inactive')
  expect(await send()).toEqual([409, 'conflict', 'The repository is inactive: it refuses documents.'])
  await setStatus('active')
  expect((await send())[2]).toMatch(/^The receiver has refused the test document: quota_exceeded: /)
  await ask('DELETE', `/connections/${Object.values(connections)[0]!}`)
  expect(await send()).toEqual([
    409,
    'conflict',
    'No connection leads from the repository to a destination: the document would be discarded.',
  ])
  expect((await ask('GET', '/documents')).json.meta.total).toBe(0)
})
