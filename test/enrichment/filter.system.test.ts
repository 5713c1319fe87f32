import { startHttpTarget } from '../support/http-target.ts'
import { startRelay, until, type Running } from '../support/relay.ts'
import { fault, result, startRfcSystem } from '../support/rfc-system.ts'
import { share } from '../support/share.ts'
import { createTimeSkippingTemporal } from '../support/temporal.ts'

const env = share(await createTimeSkippingTemporal())
const relay = share(await startRelay(env))
const target = share(await startHttpTarget())

/** The company codes of the documents that the system knows. */
const companies = new Map<string, string>()
const system = share(
  await startRfcSystem({
    Z_COMPANY: (parameters) => {
      const company = companies.get(String(parameters['DOC_ID']))
      return company === undefined ? fault('NOT_FOUND') : result('Z_COMPANY', parameters, `<COMP_CODE>${company}</COMP_CODE>`)
    },
  }),
)

const step = {
  kind: 'rfc',
  name: 'company',
  function: 'Z_COMPANY',
  imports: { DOC_ID: '{doc_id}' },
  fields: [{ name: 'company_code', path: '$.exports.COMP_CODE' }],
}

/** Creates a workspace in which documents of some company codes go to `filtered`, and all of them to `other`, if it has that. */
const createScene = async ({ createRoutes }: Running, names: string[], enrichment: object) => {
  const routes = await createRoutes(names.map((name) => ({ name, config: { url: `${target.origin}/${name}` } })))
  const { call, repositoryId, connections } = routes
  const settings = { filter: { fields: { company_code: ['1000', '1100'] } }, path_template: '{meta.company_code}/{doc_id}/{comp_id}' }
  expect((await call('PATCH', `/connections/${connections['filtered']}`, { settings })).status).toBe(200)
  const rfc = { url: system.url, client: '100', credentials: system.logon, allowed_functions: ['Z_COMPANY'] }
  expect((await call('PATCH', '/settings', { rfc })).status).toBe(200)
  const body = { name: 'Companies', repository_ids: [repositoryId], steps: [step], ...enrichment }
  expect((await call('POST', '/enrichments', body)).status).toBe(201)
  return routes
}

const sentTo = (name: string, docId: string) =>
  target.arrivals.filter(
    ({ url, headers }) => url === `/${name}` && headers['x-relay-event-type'] === 'document' && headers['x-relay-doc-id'] === docId,
  ).length

test('a connection for a company code gets its documents, and no others', async () => {
  await relay.run(async (running) => {
    const routes = await createScene(running, ['filtered', 'other'], { wait_seconds: 60 })
    companies.set('MATCHES', '1100').set('DIFFERS', '2000')
    const matching = await routes.receive('hello', 'MATCHES')
    await until(env, 'it is delivered', async () => (await matching.status()) === 'delivered', 1_000)
    expect((await matching.deliveries())['filtered']).toMatchObject({ status: 'delivered', path: '1100/MATCHES/data' })

    const different = await routes.receive('hello', 'DIFFERS')
    await until(env, 'the other is delivered', async () => (await different.status()) === 'delivered', 1_000)
    expect(Object.entries(await different.deliveries())).toMatchObject([['other', { status: 'delivered' }]])
    expect(await different.status()).toBe('delivered')
    expect([sentTo('filtered', 'MATCHES'), sentTo('filtered', 'DIFFERS'), sentTo('other', 'DIFFERS')]).toEqual([1, 0, 1])
    expect((await different.handle('filtered').describe()).status.name).toBe('COMPLETED')
  })
})

test('a delivery waits for the data that its filter needs, and others do not wait for it', async () => {
  await relay.run(async (running) => {
    const routes = await createScene(running, ['filtered', 'other'], { wait_seconds: 3, late_days: 1 })
    const document = await routes.receive('hello', 'LATER')
    await until(env, 'the other is delivered', async () => (await document.deliveries())['other']!.status === 'delivered', 2_000)
    const waiting = async () =>
      (await document.deliveries())['filtered'] as unknown as { status: string; waiting_for: { reason: string } | null }
    await until(env, 'the filtered one waits', async () => (await waiting()).waiting_for?.reason === 'data', 1_000)
    expect(await waiting()).toMatchObject({ status: 'pending', attempts: 0 })
    companies.set('LATER', '1000')
    const isDelivered = async () => {
      await document.makeTryDue()
      return (await waiting()).status === 'delivered'
    }
    await until(env, 'it is delivered', isDelivered, 1_000)
    expect([sentTo('filtered', 'LATER'), sentTo('other', 'LATER')]).toEqual([1, 1])
    expect((await document.deliveries())['filtered']).toMatchObject({ path: '1000/LATER/data', attempts: 1 })
  })
})

test('a document that no filter selects is discarded, also if its data is never found', async () => {
  await relay.run(async (running) => {
    const routes = await createScene(running, ['filtered'], { wait_seconds: 3, late_days: 0 })
    companies.set('NOWHERE', '3000')
    for (const docId of ['NOWHERE', 'UNKNOWN']) {
      const document = await routes.receive('hello', docId)
      await until(env, `${docId} is discarded`, async () => (await document.status()) === 'discarded', 1_000)
      expect(await document.deliveries()).toEqual({})
      expect(sentTo('filtered', docId)).toBe(0)
    }
    const preview = { repository_ids: [routes.repositoryId], settings: { filter: { fields: { company_code: '3000' } } } }
    const { json } = await routes.call('POST', '/connections/preview', preview)
    const met = json.data.documents.map((each: { doc_id: string; unmet_condition: string | null }) => [each.doc_id, each.unmet_condition])
    expect(Object.fromEntries(met)).toEqual({ NOWHERE: null, UNKNOWN: 'fields' })
  })
})
