import { until } from '../../support/until.ts'
import { overflowOf, takeScreenshot } from '../browser.ts'
import { startConsole, testMs, unknownObject } from '../scene.ts'

const { relay, createScene, checkScreens } = await startConsole()

test(
  'the screens of connections are legible, accessible and without errors, with many connections, one and none',
  async () => {
    await relay.run(async (running) => {
      const { routes, keys, consoleUrl, open } = await createScene(running)
      const { call, connections, destinations, repositoryId } = routes
      const repositoryIds = [repositoryId]
      for (const [repoId, name] of [
        ['Z2', 'Outgoing invoices'],
        ['Z3', 'Delivery notes'],
        ['CRMORDER_2026', 'Orders of the sales portal'],
      ]) {
        repositoryIds.push((await call('POST', '/repositories', { repo_id: repoId, name })).json.data.id)
      }
      const filtered = {
        name: 'PDF invoices for the approval workflow of the shared service centre',
        repository_ids: repositoryIds.slice(0, 2),
        destination_ids: [destinations['Approval workflow'], destinations['Archive']],
        settings: {
          filter: { content_types: ['application/pdf', 'image/tiff'], comp_ids: ['data'], max_bytes: 20_000_000 },
          path_template: '{repo_id}/{yyyy}/{mm}/{ar_object}/{doc_id}-{comp_id}.{ext}',
        },
      }
      const { id } = (await call('POST', '/connections', filtered)).json.data
      const inactive = {
        name: 'Delivery notes',
        repository_ids: [repositoryIds[2]],
        destination_ids: [destinations['Archive']],
        is_active: false,
      }
      await call('POST', '/connections', inactive)
      await call('PATCH', `/connections/${connections['Mail room']}`, { is_active: false })
      for (const docId of ['FA163E4C0E1B1EDBA9D7C3F0A1B24711', 'FA163E4C0E1B1EDBA9D7C3F0A1B24712']) await routes.receive('hello', docId)

      const problems = await checkScreens(consoleUrl, keys.admin, [
        ['connections', '/connections', 'td a'],
        ['connections-none', '/connections?q=nothing+like+it', '.empty'],
        ['connection', `/connections/${id}`, 'td .badge'],
        ['connection-held', `/connections/${connections['Mail room']}`, 'td .mono'],
        ['connection-edit', `/connections/${id}?edit=1`, 'td .badge'],
        ['connection-new', '/connections/new', 'form .checks'],
      ])
      expect(problems).toEqual([])

      for (let number = 1; number <= 45; number += 1) {
        const ends = {
          repository_ids: [repositoryIds[number % repositoryIds.length]],
          destination_ids: [Object.values(destinations)[(number * 2) % 3]],
        }
        await call('POST', '/connections', { name: `Connection ${number}`, is_active: number % 5 > 0, ...ends })
      }
      const { page } = await open('viewer')
      await page.goto(`${consoleUrl}/connections`)
      await page.getByRole('link', { name: 'Connection 45' }).waitFor()
      expect(await page.locator('.links path').count()).toBe(102)
      expect(await overflowOf(page)).toBe(0)
      await takeScreenshot(page, 'connections-50')
    })
  },
  testMs,
)

test(
  'an operator switches a connection off and on, sees what it holds, and the documents arrive',
  async () => {
    await relay.run(async (running) => {
      const scene = await createScene(running)
      const { routes } = scene
      const id = routes.connections['Mail room']
      const { page, errors } = await scene.open('member')
      await page.getByRole('link', { name: 'Connections' }).click()
      await page.getByRole('button', { name: 'Switch off: to Mail room' }).click()
      await page.getByRole('dialog').getByText('the source system notices nothing').waitFor()
      await page.getByRole('dialog').getByRole('button', { name: 'Switch off' }).click()
      const row = page.getByRole('row').filter({ hasText: 'to Mail room' })
      await row.getByText('Inactive').waitFor()
      expect((await routes.call('GET', `/connections/${id}`)).json.data.is_active).toBe(false)

      const document = await routes.receive('hello')
      await until('the others have it', async () => {
        const deliveries = await document.deliveries()
        return deliveries['Archive']!.status === 'delivered' && deliveries['Mail room']!.status === 'held'
      })
      await row.getByText('1 delivery').waitFor()
      await page.getByLabel('State').selectOption({ label: 'Holds deliveries' })
      await page.waitForURL(/state=held/)
      expect(await page.getByRole('table').getByRole('row').count()).toBe(2)
      await row.getByRole('link', { name: 'to Mail room' }).click()
      await page.getByRole('link', { name: 'Show held deliveries' }).click()
      await page.waitForURL(new RegExp(`connection_id=${id}&delivery_status=held`))
      await until('the held document is shown', async () => (await page.getByRole('table').getByRole('row').count()) === 2)
      await page.goBack()
      await page.getByRole('button', { name: 'Switch on' }).click()
      await page.getByRole('dialog').getByText('What the connection holds is delivered now').waitFor()
      await page.getByRole('dialog').getByText('1 delivery').waitFor()
      await page.getByRole('dialog').getByRole('button', { name: 'Switch on' }).click()
      await page.getByRole('button', { name: 'Switch off' }).waitFor()
      await until('the document has arrived', async () => (await document.status()) === 'delivered')
      await page.locator('main header .badge', { hasText: 'Active' }).waitFor()
      expect(errors).toEqual([])
    })
  },
  testMs,
)

test(
  'a connection is created and changed with a preview on real documents, and a deletion says what it leaves without a destination',
  async () => {
    await relay.run(async (running) => {
      const scene = await createScene(running)
      const { routes } = scene
      const { call, destinations } = routes
      const text = await routes.receive('hello', 'INVOICE4711')
      await until('the document has arrived', async () => (await text.status()) === 'delivered')
      const { page } = await scene.open('admin')
      await page.goto(`${scene.consoleUrl}/connections/new`)
      await page.getByLabel('Name', { exact: true }).fill('Invoices by month')
      expect(await page.getByRole('button', { name: 'Create a connection' }).isDisabled()).toBe(true)
      await page.getByLabel('Z1').check()
      await page.getByText('Z1/INVOICE4711/data').waitFor()
      await page.getByLabel('Archive').check()
      await page.getByLabel('Content types').fill('application/pdf')
      await page.getByText('0 of the newest 1 document would be forwarded').waitFor()
      await page.getByText('another content type').waitFor()
      await page.getByLabel('Content types').fill('application/pdf, text/plain')
      await page.getByLabel('Path template').fill('{doc_id}')
      await page.getByText('must contain {comp_id}').waitFor()
      await page.getByLabel('Path template').fill('{yyyy}/{doc_id}-{comp_id}.{ext}')
      const year = new Date().getUTCFullYear()
      await page.getByText(`${year}/INVOICE4711-data.txt`).waitFor()
      await page.getByText('1 of the newest 1 document would be forwarded').waitFor()
      await page.getByRole('button', { name: 'Create a connection' }).click()
      await page.getByRole('heading', { name: 'Invoices by month' }).waitFor()
      const created = (await call('GET', '/connections')).json.data.find(({ name }: { name: string }) => name === 'Invoices by month')
      expect(created).toMatchObject({
        is_active: true,
        repositories: [{ repo_id: 'Z1' }],
        destinations: [{ id: destinations['Archive'] }],
        settings: { filter: { content_types: ['application/pdf', 'text/plain'] }, path_template: '{yyyy}/{doc_id}-{comp_id}.{ext}' },
      })

      await page.getByRole('link', { name: 'Edit' }).click()
      await page.getByLabel('Content types').fill('')
      await page.getByLabel('Mail room').check()
      await page.getByRole('button', { name: 'Save' }).click()
      await page.getByRole('link', { name: 'Edit' }).waitFor()
      const changed = (await call('GET', `/connections/${created.id}`)).json.data
      expect(changed.settings).toEqual({ path_template: '{yyyy}/{doc_id}-{comp_id}.{ext}' })
      expect(changed.destinations.map(({ name }: { name: string }) => name)).toEqual(['Archive', 'Mail room'])

      for (const id of Object.values(routes.connections)) await call('DELETE', `/connections/${id}`)
      await page.getByRole('button', { name: 'Delete' }).click()
      await page.getByRole('dialog').getByText('Without a destination from then on').waitFor()
      await page.getByRole('dialog').getByText('Z1').waitFor()
      await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
      await page.getByText('There is no connection yet').waitFor()
      expect((await call('GET', '/connections')).json.data).toEqual([])

      const viewer = await scene.open('viewer')
      const { data } = (
        await call('POST', '/connections', { name: 'A', repository_ids: [routes.repositoryId], destination_ids: [destinations['Archive']] })
      ).json
      for (const path of ['/connections', `/connections/${data.id}`, '/connections/new']) {
        await viewer.page.goto(scene.consoleUrl + path)
        await viewer.page.locator(`main td, main .facts, ${unknownObject}`).first().waitFor()
        const main = viewer.page.locator('main')
        expect(await main.getByRole('button', { name: /create|edit|switch|delete|save/i }).count()).toBe(0)
        expect(await main.getByRole('link', { name: /create|edit/i }).count()).toBe(0)
      }
      // A viewer also sees the preview.
      await viewer.page.goto(`${scene.consoleUrl}/connections/${data.id}`)
      await viewer.page.getByText('Z1/INVOICE4711/data').waitFor()
    })
  },
  testMs,
)
