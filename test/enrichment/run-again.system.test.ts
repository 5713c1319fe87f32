import { startHttpTarget } from '../support/http-target.ts'
import { startRelay } from '../support/relay.ts'
import { share } from '../support/share.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { until } from '../support/until.ts'
import { startODataSystem } from './odata-system.ts'

const env = share(await startTemporalServer())
const relay = share(await startRelay(env))
const target = share(await startHttpTarget())
const entities: Parameters<typeof startODataSystem>[0] = {}
const odata = share(await startODataSystem(entities))

test('an enrichment that waits for hours makes its next try at once', async () => {
  await relay.run(async ({ createRoutes }) => {
    const { call, repositoryId, receive } = await createRoutes([{ name: 'web', config: { url: target.origin } }])
    const step = { kind: 'http', name: 'order', path: "/A_Order('{doc_id}')", fields: [{ name: 'customer', path: '$.d.Customer' }] }
    const http = { url: odata.origin }
    const body = { name: 'Orders', repository_ids: [repositoryId], wait_seconds: 0, http, credentials: odata.credentials, steps: [step] }
    expect((await call('POST', '/enrichments', body)).status).toBe(201)
    const document = await receive('hello', 'AGAIN')
    const row = () => relay.db('document_enrichments').where({ document_id: document.id }).first()
    await until('the first try has ended', async () => (await row()).attempts > 0)
    await relay
      .db('document_enrichments')
      .where({ document_id: document.id })
      .update({ next_try_at: new Date(Date.now() + 10_800_000) })
    entities["/A_Order('AGAIN')"] = { body: { d: { Customer: 'Acme Ltd' } } }
    expect((await call('POST', `/documents/${document.id}/enrich`)).status).toBe(202)
    await until('it is complete', async () => (await row()).status === 'complete')
    expect((await row()).fields).toEqual({ customer: 'Acme Ltd' })
  })
})
