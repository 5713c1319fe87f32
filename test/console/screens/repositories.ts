import { setTimeout as delay } from 'node:timers/promises'
import { insertDocumentMigration } from '../../api/insert-document-migration.ts'
import { captureAt } from '../../support/factories.ts'
import { startForwardProxy } from '../../support/forward-proxy.ts'
import { startOldContentServer } from '../../support/old-content-server.ts'
import { createSigner } from '../../support/signer.ts'
import { takeScreenshot } from '../browser.ts'
import { startConsole, testMs, unknownObject } from '../scene.ts'

const { relay, createScene, checkScreens } = await startConsole()
const [signer, renewed] = [await createSigner('RSA 2048'), await createSigner('DSA 1024')]
const [oldServer, proxy] = [await startOldContentServer(), await startForwardProxy()]
afterAll(() => Promise.all([signer.remove(), renewed.remove(), oldServer.stop(), proxy.stop()]))

// Longer than a page waits until it loads what the relay tells of.
const answerDelayMs = 4_000

const daysFromNow = (days: number) => new Date(Date.now() + days * 86_400_000)

test(
  'the screens of repositories are legible, accessible and without errors',
  async () => {
    await relay.run(async (running) => {
      const { routes, keys, consoleUrl } = await createScene(running)
      const { call, repositoryId, workspaceId } = routes
      // An open receiver, one with certificates, and an inactive one that has never been used.
      const signed = (await call('POST', '/repositories', { repo_id: 'Z2', name: 'Outgoing invoices', signature_verification: true })).json
        .data
      const upstream = { url: 'https://archive.example/ContentServer/ContentServer.dll', cont_rep: 'Z3' }
      const migrated = (await call('POST', '/repositories', { repo_id: 'Z3', name: 'Migrated invoices', upstream })).json.data
      const idle = (await call('POST', '/repositories', { repo_id: 'CRMORDER_2026', name: 'Orders of the sales portal' })).json.data
      await call('PATCH', `/repositories/${idle.id}`, { status: 'inactive' })
      const request = await captureAt(relay.db, workspaceId, new Date(Date.now() - 7_200_000))
      await relay.db('captured_requests').where({ id: request }).update({ repo_id: 'Z1' })
      const add = async (authId: string, certificate: string, status: string) => {
        const { json } = await call('POST', `/repositories/${signed.id}/certificates`, { auth_id: authId, certificate, status })
        return json.data.id as string
      }
      await add('CN=TST,OU=I0020123456,OU=SAPWebAS,O=SAPTrustCommunity,C=DE', signer.pem, 'active')
      const old = await add('CN=TST', renewed.pem, 'active')
      await relay
        .db('certificates')
        .where({ id: old })
        .update({ valid_to: daysFromNow(-40) })
      const current = await add('CN=PRD', signer.pem, 'inactive')
      await relay
        .db('certificates')
        .where({ id: current })
        .update({ valid_to: daysFromNow(400) })
      await add('CN=QAS', renewed.pem, 'inactive')

      const moved = (await call('POST', '/repositories', { repo_id: 'Z9', name: 'Moved from another server' })).json.data
      await call('PATCH', `/repositories/${moved.id}`, { upstream: { url: 'https://archive.example/archive', cont_rep: 'Z9' } })
      const stopped = await insertDocumentMigration(relay.db, workspaceId, moved.id, 'paused')
      await relay.db('document_migrations').where({ id: stopped }).update({ missing: 3, damaged: 2 })
      const waiting = await insertDocumentMigration(relay.db, workspaceId, moved.id)
      const reason = 'upstream: the content server cannot be reached: connect ECONNREFUSED'
      await relay.db('document_migrations').where({ id: waiting }).update({ waiting_reason: reason })

      const problems = await checkScreens(consoleUrl, keys.admin, [
        ['repositories', '/repositories', 'td a'],
        ['repositories-none', '/repositories?status=inactive&page=2', '.empty'],
        ['repository-open', `/repositories/${repositoryId}`, '.card p.quiet + p.quiet'],
        ['repository-signed', `/repositories/${signed.id}`, '.fingerprint'],
        ['repository-add-certificate', `/repositories/${idle.id}?add=certificate`, 'textarea'],
        ['repository-edit', `/repositories/${signed.id}?edit=1`, 'form'],
        ['repository-upstream', `/repositories/${migrated.id}`, '.card code'],
        ['repository-edit-upstream', `/repositories/${migrated.id}?edit=1`, '#upstream-url'],
        ['repository-new', '/repositories/new', 'form'],
        ['repository-migrations', `/repositories/${moved.id}`, 'progress'],
      ])
      expect(problems).toEqual([])
    })
  },
  testMs,
)

test(
  'an administrator creates a repository, reads what to enter, compares the certificate, activates it and requires signatures',
  async () => {
    await relay.run(async (running) => {
      const scene = await createScene(running)
      const { call } = scene.routes
      const { page, errors } = await scene.open('admin')
      await page.getByRole('link', { name: 'Repositories' }).click()
      await page.getByRole('link', { name: 'Create a repository' }).click()
      await page.getByLabel('Repository', { exact: true }).fill('Z7')
      await page.getByLabel('Name', { exact: true }).fill('Delivery notes')
      await page.getByRole('button', { name: 'Create a repository' }).click()
      await page.getByRole('heading', { name: 'Z7 · Delivery notes' }).waitFor()
      await page.getByText('Whoever can reach the receiver').waitFor()
      const [id] = (await call('GET', '/repositories?per_page=100')).json.data
        .filter(({ attributes }: { attributes: { repo_id: string } }) => attributes.repo_id === 'Z7')
        .map((each: { id: string }) => each.id)

      // What to enter leads to the receiver of this workspace.
      const entered = async (name: string) => (await page.locator('.steps .facts > div', { hasText: name }).locator('.mono').textContent())!
      const receiver = `http://${await entered('HTTP server')}:${await entered('Port number')}/${await entered('HTTP script')}`
      expect(receiver).toBe(`${scene.consoleUrl.replace('/console', '')}/receiver/${scene.workspace}`)
      await page.getByRole('button', { name: 'Copy: Z7' }).waitFor()

      await page.getByRole('link', { name: 'Add a certificate' }).click()
      await page.getByLabel('Name of the signer (authId)').fill('CN=TST')
      await page.getByLabel('Or choose a file').setInputFiles({ name: 'tst.p7b', mimeType: 'application/pkcs7-mime', buffer: signer.pkcs7 })
      await page.getByRole('button', { name: 'Add a certificate' }).click()
      const certificate = page.getByRole('listitem').filter({ hasText: 'CN=TST' }).first()
      const { attributes } = await certificate
        .waitFor()
        .then(async () => (await call('GET', `/repositories/${id}/certificates`)).json.data[0])
      expect(attributes.status).toBe('inactive')
      const comparison = page.getByLabel('Compare the certificate of CN=TST')
      await comparison.fill(attributes.fingerprint_sha1.replaceAll(/(..)/g, '$1:').slice(0, -1).toUpperCase())
      await page.getByText('Equal: this is the certificate').waitFor()
      await comparison.fill(attributes.fingerprint_sha256.replace(/^../, (digits: string) => (digits === '00' ? '01' : '00')))
      await page.getByText('Different: this is another certificate').waitFor()
      await page.getByRole('button', { name: 'Activate: certificate of CN=TST' }).click()
      await page.getByRole('dialog').getByText('Anybody can send a certificate').waitFor()
      await page.getByRole('dialog').getByRole('button', { name: 'Activate' }).click()
      await page.getByRole('button', { name: 'Deactivate: certificate of CN=TST' }).waitFor()
      expect((await call('GET', `/repositories/${id}/certificates`)).json.data[0].attributes.status).toBe('active')

      await page.getByRole('link', { name: 'Edit' }).click()
      await page.getByLabel('Require signed requests').check()
      await page.getByLabel('Accept mCreate').uncheck()
      await page.getByLabel('Fetch documents from an earlier content server').check()
      await page.getByLabel('Address of the earlier content server').fill(oldServer.url)
      await page.getByLabel('Repository there').fill('Z1')
      await page.getByLabel('Proxy', { exact: true }).fill(proxy.url)
      await page.getByLabel('User and password of the proxy').fill(`relay:${proxy.password}`)
      await page.getByLabel('Allowed addresses of that server').fill('10.1.0.0/16\n127.0.0.0/8')
      await page.getByRole('button', { name: 'Save' }).click()
      await page.getByRole('link', { name: 'Edit' }).waitFor()
      expect((await call('GET', `/repositories/${id}`)).json.data.attributes).toMatchObject({
        signature_verification: true,
        accepts_mcreate: false,
        upstream: {
          url: oldServer.url,
          cont_rep: 'Z1',
          auth_id: null,
          proxy_url: proxy.url.replace('//', '//***@'),
          allowed_cidrs: ['10.1.0.0/16', '127.0.0.0/8'],
          delivers: false,
        },
        warnings: [{ code: 'not_connected' }],
      })

      await page.getByRole('button', { name: 'Test it' }).click()
      await page.getByText('serves the repository Z1 and answers unsigned requests').waitFor()
      expect(new Set(proxy.targets)).toEqual(new Set([new URL(oldServer.url).host]))

      // The stored user and password are kept.
      await page.getByRole('link', { name: 'Edit' }).click()
      expect(await page.getByLabel('User and password of the proxy').getAttribute('type')).toBe('password')
      await page.getByLabel('Allowed addresses of that server').fill('127.0.0.0/8')
      await page.getByRole('button', { name: 'Save' }).click()
      await page.getByRole('button', { name: 'Test it' }).click()
      await page.getByText('serves the repository Z1 and answers unsigned requests').waitFor()

      await page.getByRole('button', { name: 'Deactivate: certificate of CN=TST' }).click()
      await page.getByText('It is the last active certificate').waitFor()
      await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
      await page.getByRole('button', { name: 'Delete', exact: true }).click()
      await page.getByRole('dialog').getByText('1 certificate is deleted').waitFor()
      // The answer is late, and the relay tells of the change before it: a page that asked again would get 404.
      await page.route(`**/repositories/${id}?keep_connections=*`, async (route) => {
        const response = await route.fetch()
        await delay(answerDelayMs)
        await route.fulfill({ response })
      })
      await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
      await page.getByRole('heading', { name: 'Repositories' }).waitFor()
      expect((await call('GET', `/repositories/${id}`)).status).toBe(404)
      expect(errors).toEqual([])
    })
  },
  testMs,
)

test(
  'a deletion says what goes with it; a change of something else meanwhile is not overwritten; a viewer sees no buttons',
  async () => {
    await relay.run(async (running) => {
      const scene = await createScene(running)
      const { call, repositoryId } = scene.routes
      const { page } = await scene.open('member')
      await page.goto(`${scene.consoleUrl}/repositories/${repositoryId}?edit=1`)
      await page.getByLabel('Name', { exact: true }).fill('Renamed')
      await call('PATCH', `/repositories/${repositoryId}`, { name: 'Renamed by somebody else' })
      await page.getByRole('button', { name: 'Save' }).click()
      await page.getByText('Somebody else has saved other values meanwhile.').waitFor()
      expect((await call('GET', `/repositories/${repositoryId}`)).json.data.attributes.name).toBe('Renamed by somebody else')

      await page.goto(`${scene.consoleUrl}/repositories/${repositoryId}`)
      await page.getByRole('button', { name: 'Deactivate' }).click()
      await page.getByText('refuses every request of the source system').waitFor()
      await page.getByRole('dialog').getByRole('button', { name: 'Deactivate' }).click()
      await page.getByRole('button', { name: 'Activate', exact: true }).waitFor()
      expect((await call('GET', `/repositories/${repositoryId}`)).json.data.attributes.status).toBe('inactive')
      expect(await page.getByRole('button', { name: 'Delete' }).count()).toBe(0)

      const admin = await scene.open('admin')
      await admin.page.goto(`${scene.consoleUrl}/repositories/${repositoryId}`)
      await admin.page.getByRole('button', { name: 'Delete', exact: true }).click()
      await admin.page.getByText('deliveries that they hold are cancelled').waitFor()

      const viewer = await scene.open('viewer')
      for (const path of ['/repositories', `/repositories/${repositoryId}`, '/repositories/new']) {
        await viewer.page.goto(scene.consoleUrl + path)
        await viewer.page.locator(`main td, main .facts, ${unknownObject}`).first().waitFor()
        const changing = viewer.page.locator('main').getByRole('button', { name: /create|edit|activate|delete|add|save/i })
        expect(await changing.count()).toBe(0)
        expect(
          await viewer.page
            .locator('main')
            .getByRole('link', { name: /create|edit|^add/i })
            .count(),
        ).toBe(0)
      }
    })
  },
  testMs,
)

test(
  'a member sends a test document from the page of a repository, and is led to it',
  async () => {
    await relay.run(async (running) => {
      const scene = await createScene(running)
      const { page, errors } = await scene.open('member')
      await page.goto(`${scene.consoleUrl}/repositories/${scene.routes.repositoryId}`)
      await page.getByRole('button', { name: 'Send a test document' }).click()
      await page.getByRole('link', { name: 'Show the document' }).click()
      await page
        .getByText(/^TEST-/)
        .first()
        .waitFor()
      expect((await scene.routes.call('GET', '/documents')).json.data[0].attributes.doc_id).toMatch(/^TEST-/)
      expect(errors).toEqual([])
    })
  },
  testMs,
)

test(
  'an administrator pauses and resumes a migration on the page of its repository',
  async () => {
    await relay.run(async (running) => {
      const scene = await createScene(running)
      const { call, repositoryId, workspaceId } = scene.routes
      await call('PATCH', `/repositories/${repositoryId}`, { upstream: { url: 'https://archive.example/archive', cont_rep: 'Z1' } })
      const id = await insertDocumentMigration(relay.db, workspaceId, repositoryId)
      const statusOf = async () => (await call('GET', `/document-migrations/${id}`)).json.data.attributes.status
      const { page, errors } = await scene.open('admin')
      await page.goto(`${scene.consoleUrl}/repositories/${repositoryId}`)
      await page.getByText('4 of 10 rows').waitFor()
      await page.getByRole('button', { name: 'Pause' }).click()
      await page.getByRole('button', { name: 'Resume' }).waitFor()
      expect(await statusOf()).toBe('paused')
      await page.getByRole('button', { name: 'Resume' }).click()
      await page.getByRole('button', { name: 'Pause' }).waitFor()
      expect(await statusOf()).toBe('running')
      expect(errors).toEqual([])
    })
  },
  testMs,
)

test(
  'an administrator checks a repository, and reads what each check found',
  async () => {
    await relay.run(async (running) => {
      const scene = await createScene(running)
      const { page, errors } = await scene.open('admin')
      await page.goto(`${scene.consoleUrl}/repositories/${scene.routes.repositoryId}`)
      await page.getByRole('button', { name: 'Check', exact: true }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByText('They are delivered like any others, to').waitFor()
      await dialog.getByRole('button', { name: 'Check' }).click()
      const table = page.getByRole('table', { name: 'Check' })
      await table.getByText('create by PUT stores a component, which get returns').waitFor()
      expect(await table.getByText('Passed').count()).toBe(7)
      await takeScreenshot(page, 'repository-check')
      expect(errors).toEqual([])
    })
  },
  testMs,
)
