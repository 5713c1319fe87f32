import { readFile } from 'node:fs/promises'
import { insertDocument } from '../api/insert-document.ts'
import { wire } from '../api/objstore.ts'
import { startODataSystem } from '../enrichment/odata-system.ts'
import { disposable } from '../support/disposable.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'
import { startBrowser, takeScreenshot } from './browser.ts'
import { createCheck, openConsole, testMs } from './scene.ts'

const { api, database } = share(await startScene())
const browser = share(disposable(await startBrowser(), (each) => each.close()))
const odata = share(await startODataSystem({ "/orders/A_Order('DOC1')": { body: { d: { Customer: 'Acme Ltd', Net: '1190.00' } } } }))
const consoleUrl = `${api.baseUrl}/console`

const steps = [
  {
    kind: 'http',
    name: 'order',
    path: "/A_Order('{doc_id}')",
    fields: [
      { name: 'customer', path: '$.d.Customer' },
      { name: 'city', path: '$.d.City', optional: true },
    ],
  },
]

let workspaces = 0
/** Creates a workspace with a repository that has a document. */
const createWorkspace = async () => {
  workspaces += 1
  const tenant = await api.tenant(`acme/enrichments-${workspaces}`)
  const repositoryId = (await tenant.call('POST', '/repositories', { repo_id: 'Z1', name: 'Orders' })).json.data.id as string
  const documentId = await insertDocument(database.db, { workspaceId: tenant.id, repositoryId, repoId: 'Z1', docId: 'DOC1' })
  const open = (level: 'viewer' | 'member' | 'admin', locale = 'en-GB') => openConsole(browser, consoleUrl, tenant.keys[level], { locale })
  const create = async (): Promise<string> => {
    const body = {
      name: 'Orders',
      repository_ids: [repositoryId],
      http: { url: `${odata.origin}/orders` },
      credentials: odata.credentials,
      steps,
    }
    return (await tenant.call('POST', '/enrichments', body)).json.data.id
  }
  /** Ends the enrichment of the document without its optional fields. */
  const complete = async () => {
    const note = [{ name: 'invoice', status: 'done', error: 'the PDF is encrypted', at: new Date().toISOString() }]
    await database
      .db('document_enrichments')
      .where({ document_id: documentId })
      .update({ status: 'complete', steps: JSON.stringify(note) })
  }
  /** Stores how far the enrichment of the document is. */
  const enrich = (enrichmentId: string) =>
    database.db('document_enrichments').insert({
      document_id: documentId,
      workspace_id: tenant.id,
      enrichment_id: enrichmentId,
      status: 'failed',
      fields: JSON.stringify({ customer: 'Acme Ltd' }),
      steps: JSON.stringify([{ name: 'order', status: 'failed', error: 'the system answered 503', at: new Date().toISOString() }]),
      attempts: 7,
      waits_until: new Date(),
      ends_at: new Date(),
    })
  return { ...tenant, repositoryId, documentId, open, create, enrich, complete }
}

test(
  'the screens of enrichments are legible, accessible and without errors',
  async () => {
    const { keys, documentId, create, enrich } = await createWorkspace()
    const none = await createWorkspace()
    const check = createCheck(browser)
    expect(await check(consoleUrl, none.keys.admin, [['enrichments-none', '/enrichments', '.empty']])).toEqual([])
    const id = await create()
    await enrich(id)
    const problems = await check(consoleUrl, keys.admin, [
      ['enrichments', '/enrichments', 'td .badge.bad'],
      ['enrichment', `/enrichments/${id}`, '#try-document'],
      ['enrichment-new', '/enrichments/new', '#steps'],
      ['overview-enrichment', '/overview', '.notice a[href^=enrichments]'],
      ['document-enriched', `/documents/${documentId}`, '#business-data'],
    ])
    expect(problems).toEqual([])
  },
  testMs,
)

test(
  'an enrichment is created, tried on a document, changed and deleted',
  async () => {
    const { call, open, repositoryId, documentId } = await createWorkspace()
    const { page, errors } = await open('admin')
    await page.getByRole('link', { name: 'Repositories' }).click()
    await page.getByRole('link', { name: 'Enrichments' }).click()
    await page.getByRole('link', { name: 'Create an enrichment' }).click()
    await page.getByLabel('Name').fill('Orders')
    await page.getByLabel('Z1').check()
    await page.getByLabel('Wait of deliveries').fill('9')
    await page.getByLabel('It calls a system over HTTP').check()
    await page.getByLabel('Address').fill(`${odata.origin}/orders`)
    await page.getByLabel('Sign-in').selectOption({ label: 'User name and password' })
    await page.getByLabel('User name').fill(odata.credentials.username)
    await page.getByLabel('Password').fill(odata.credentials.password)
    await page.getByLabel('Steps').fill(JSON.stringify([{ ...steps[0], path: '/A_Order({order})' }]))
    await page.getByRole('button', { name: 'Create an enrichment' }).click()
    await page.locator('.problem', { hasText: 'order' }).waitFor()
    await page.getByLabel('Steps').fill(JSON.stringify(steps))
    await page.getByRole('button', { name: 'Create an enrichment' }).click()

    await page.getByRole('button', { name: 'Try', exact: true }).click()
    await page.getByRole('cell', { name: 'Acme Ltd' }).waitFor()
    await page.getByText('city is not in the answer').waitFor()
    await page.getByText(`GET ${odata.origin}/orders/A_Order('DOC1')`).waitFor()
    await page.getByText('Answer', { exact: true }).click()
    await page.getByText('"Net": "1190.00"').waitFor()
    await takeScreenshot(page, 'enrichment-tried')
    const list = async () => (await call('GET', '/enrichments')).json.data
    const [created] = await list()
    expect(created.attributes).toMatchObject({ name: 'Orders', repository_ids: [repositoryId], wait_seconds: 9, has_credentials: true })

    // The system is replaced as a whole, so the form sends all of it.
    await page.getByRole('button', { name: 'Edit' }).click()
    await page.getByLabel('Headers').fill('x-tenant: 7')
    await page.getByLabel('Active').uncheck()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.locator('header .badge', { hasText: 'Switched off' }).waitFor()
    expect((await list())[0].attributes).toMatchObject({
      is_active: false,
      has_credentials: true,
      http: { url: `${odata.origin}/orders`, headers: { 'x-tenant': '7' } },
    })
    expect((await call('GET', `/documents/${documentId}`)).json.data.attributes.enrichments).toEqual([])

    // Another address needs the credentials again, in any way that the API has. What was typed stays.
    await page.getByRole('button', { name: 'Edit' }).click()
    await page.getByLabel('Address').fill(`${odata.origin}/other`)
    await page.getByRole('button', { name: 'Save' }).click()
    await page.locator('.problem', { hasText: 'must not be sent to another address' }).waitFor()
    await page.getByLabel('Sign-in').selectOption({ label: 'Secret header' })
    await page.getByLabel('Secret header: name').fill('X-Key')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.locator('.problem', { hasText: 'Enter a value.' }).waitFor()
    await page.getByLabel('Secret header: value').fill('canary')
    await page.getByRole('button', { name: 'Save' }).click()
    // The message about the change before may still be there.
    const changed = await until(
      'the address is changed',
      async () => (await list())[0].attributes,
      ({ http }) => http.url === `${odata.origin}/other`,
    )
    expect(changed).toMatchObject({ has_credentials: true })

    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('No enrichment has been created yet.').waitFor()
    expect(await list()).toEqual([])
    expect(errors.filter((error) => !error.includes('status of 422'))).toEqual([])
  },
  testMs,
)

test(
  'a new enrichment starts from a ready one, whose values can be changed',
  async () => {
    const { call, open } = await createWorkspace()
    const { page, errors } = await open('admin')
    await page.goto(`${consoleUrl}/enrichments/new`)
    const start = page.getByLabel('Start from')
    await start.selectOption('fi-invoice')
    expect(await page.getByLabel('Address').inputValue()).toBe('https://erp.example.com:44300/sap/opu/odata/sap')
    await start.selectOption('e-invoice')
    expect(await page.getByLabel('Address').count()).toBe(0)
    await start.selectOption({ label: 'MM invoice (RMRP), remote function calls' })
    const ready = JSON.parse(await readFile(new URL('../../docs/enrichments/mm-invoice.json', import.meta.url), 'utf8'))
    expect(JSON.parse(await page.getByLabel('Steps').inputValue())).toEqual(ready.steps)
    await start.selectOption('fi-invoice')
    await page.getByLabel('Address').fill('https://erp.acme.example/odata')
    await takeScreenshot(page, 'enrichment-start-from')
    await page.getByRole('button', { name: 'Create an enrichment' }).click()
    await page.getByRole('button', { name: 'Edit' }).waitFor()
    const { json } = await call('GET', '/enrichments')
    expect(json.data).toMatchObject([
      {
        attributes: {
          name: 'FI invoices',
          repository_ids: [],
          wait_seconds: 60,
          http: { url: 'https://erp.acme.example/odata' },
          steps: [{ kind: 'link' }, { when: { erp_object_type: ['BKPF'] } }, { when: { erp_object_type: ['BKPF'] } }],
        },
      },
    ])
    // It is changed as it is: nothing starts it again.
    await page.getByRole('button', { name: 'Edit' }).click()
    await page.getByLabel('Name').waitFor()
    expect(await start.count()).toBe(0)
    expect(errors).toEqual([])
  },
  testMs,
)

test(
  'the page of a document shows what was found, and has it fetched again',
  async () => {
    const { call, open, documentId, create, enrich, complete } = await createWorkspace()
    await enrich(await create())
    const { page, errors } = await open('member', 'de-DE')
    await page.goto(`${consoleUrl}/documents/${documentId}`)
    const card = page.locator('section', { has: page.locator('#business-data') })
    await card.getByText('the system answered 503').waitFor()
    await card.getByText('Acme Ltd').waitFor()
    await takeScreenshot(page, 'document-business-data')
    await card.getByRole('button', { name: 'Erneut abfragen' }).press('Enter')
    await card.locator('.badge', { hasText: 'Läuft' }).waitFor()
    expect((await call('GET', `/documents/${documentId}`)).json.data.attributes.enrichments).toMatchObject([
      { status: 'pending', attempts: 0 },
    ])
    await card.getByRole('link', { name: 'Anreicherung anzeigen' }).click()
    await page.getByRole('button', { name: 'Ausprobieren' }).waitFor()
    expect(await page.locator('#try-document').inputValue()).toBe(documentId)

    // What optional fields lack is shown without a click, although nothing has failed.
    await complete()
    await page.goto(`${consoleUrl}/documents/${documentId}`)
    await card.getByText('the PDF is encrypted').waitFor()
    await card.getByText('Problem, oder was fehlt').waitFor()
    expect(errors).toEqual([])
  },
  testMs,
)

test(
  'the page of a document says of each copy if data that were found late have been brought to it',
  async () => {
    const workspace = await createWorkspace()
    const { id: workspaceId, open } = workspace
    const { repositoryId, destinationId, connectionId } = await wire(workspace, 'Z2')
    const deliveries = [{ destinationId, connectionId, status: 'delivered' as const }]
    const document = { workspaceId, repositoryId, repoId: 'Z2', docId: 'DOC2', status: 'delivered' as const, deliveries }
    const documentId = await insertDocument(database.db, document)
    const late = { status: 'failed', error: 'the object is gone' }
    await database.db('late_data').insert({ document_id: documentId, destination_id: destinationId, ...late })
    const { page, errors } = await open('viewer')
    await page.goto(`${consoleUrl}/documents/${documentId}`)
    await page.getByText('could not be brought to the copy').waitFor()
    await page.getByText('the object is gone').waitFor()
    await takeScreenshot(page, 'document-late-data')
    expect(errors).toEqual([])
  },
  testMs,
)

test(
  'a viewer reads enrichments, and neither changes nor tries them',
  async () => {
    const { open, create } = await createWorkspace()
    const id = await create()
    const { page, errors } = await open('viewer')
    await page.goto(`${consoleUrl}/enrichments/${id}`)
    await page.locator('.facts').first().waitFor()
    expect(await page.locator('main').getByRole('button').count()).toBe(0)
    expect(errors).toEqual([])
  },
  testMs,
)
