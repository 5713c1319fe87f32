import { startHttpTarget } from '../support/http-target.ts'
import { startRelay } from '../support/relay.ts'
import { share } from '../support/share.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { until } from '../support/until.ts'
import { startODataSystem } from './odata-system.ts'

// A real server: the one that skips time does not reset activities.
const env = share(await startTemporalServer())
const relay = share(await startRelay(env))
const target = share(await startHttpTarget())
const entities: Parameters<typeof startODataSystem>[0] = {}
const odata = share(await startODataSystem(entities))

test('an enrichment that waits for hours makes its next try at once, in the same workflow', async () => {
  await relay.run(async ({ createRoutes }) => {
    const { call, repositoryId, receive } = await createRoutes([{ name: 'web', config: { url: target.origin } }])
    const step = { kind: 'http', name: 'order', path: "/A_Order('{doc_id}')", fields: [{ name: 'customer', path: '$.d.Customer' }] }
    const http = { url: odata.origin }
    const body = { name: 'Orders', repository_ids: [repositoryId], wait_seconds: 0, http, credentials: odata.credentials, steps: [step] }
    expect((await call('POST', '/enrichments', body)).status).toBe(201)
    const document = await receive('hello', 'AGAIN')
    const row = () => relay.db('document_enrichments').where({ document_id: document.id }).first()
    await until('the first try has ended', async () => (await row()).attempts > 0)
    // After so many tries, the next one is due in three hours.
    await relay.db('document_enrichments').where({ document_id: document.id }).update({ attempts: 20 })
    await until('the next try has ended', async () => (await row()).attempts > 20)
    const waits = async () => (await document.handle().describe()).raw.pendingActivities?.some(({ lastFailure }) => lastFailure)
    await until('Temporal knows that it waits', async () => (await waits()) === true)

    entities["/A_Order('AGAIN')"] = { body: { d: { Customer: 'Acme Ltd' } } }
    expect((await call('POST', `/documents/${document.id}/enrich`)).status).toBe(202)
    await document.handle().result()
    expect(await row()).toMatchObject({ status: 'complete', fields: { customer: 'Acme Ltd' } })
    const own = env.client.workflow.getHandle(`${document.handle().workflowId}@enrichment`)
    await expect(own.describe()).rejects.toThrow(/not found/i)
  })
})
