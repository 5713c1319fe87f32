import { createWebhook } from '../../src/connectors/webhook/index.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { contextOf, payloadOf } from '../connectors/payloads.ts'
import { disposable } from '../support/disposable.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'

const webhook = createWebhook()

const outbound = share(disposable(createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] }), (each) => each.close()))
const scene = share(await startScene())

const installationId = async (): Promise<string> => (await scene.db('installation').first('id')).id

/** Delivers a document to the receiver, as an attempt at a destination with its address does. */
const deliverBack = async (path: string, docId: string, id: string) => {
  const url = `${scene.api.baseUrl}${path}?create&pVersion=0047&contRep=Z1&docId=${docId}&compId=data`
  const target = { config: webhook.config.parse({ url, method: 'PUT' }), credentials: {} }
  return webhook.deliver(payloadOf(Buffer.from('hello')), target, contextOf(outbound, { installationId: id }))
}

test('a document that comes back to the relay that has sent it is refused, captured, and not sent again', async () => {
  const workspace = await scene.workspace()
  await expect(deliverBack(workspace.path, 'L1', await installationId())).rejects.toMatchObject({
    code: 'http_508',
    permanent: true,
    answer: { status: 508, body: expect.stringContaining('loop_detected') as string },
  })
  expect(await workspace.countRows()).toEqual({ archiveDocuments: 0, documents: 0, contents: 0 })
  const captured = () => scene.db('captured_requests').where({ workspace_id: workspace.workspaceId })
  const [row] = await until('the request is captured', captured, (rows) => rows.length > 0)
  expect(row).toMatchObject({ status_code: 508, request_headers: { 'x-relay-hops': await installationId() } })
})

test('a document of another installation is received, and a list of installations is searched', async () => {
  const workspace = await scene.workspace()
  const other = '01K9R4B6ZD8M2V7X0QF3N5T1CE'
  await expect(deliverBack(workspace.path, 'L2', other)).resolves.toMatchObject({ answer: { status: 201 } })
  await expect(deliverBack(workspace.path, 'L3', `${other}, ${await installationId()}`)).rejects.toMatchObject({ code: 'http_508' })
})

test('the installation has one id, whatever is started', async () => {
  const insert = scene.db('installation').insert({ id: '01K9R4B6ZD8M2V7X0QF3N5T1CE' })
  await expect(insert).rejects.toThrow('installation_is_only_row_key')
  expect(await installationId()).toMatch(/^[0-9A-Z]{26}$/)
})
