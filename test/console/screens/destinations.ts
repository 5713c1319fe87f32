import { ulid } from 'ulid'
import { ensurePartitions } from '../../../src/db/partitions.ts'
import { until } from '../../support/until.ts'
import { takeScreenshot } from '../browser.ts'
import { startConsole, testMs } from '../scene.ts'

const { relay, createScene, checkScreens } = await startConsole()

const hourMs = 3_600_000

/** Inserts attempts of the last day, some of which have failed. */
const insertAttempts = async (workspaceId: string, documentId: string, destinationId: string, failedHours: readonly number[]) => {
  for (let hours = 0; hours < 24; hours += 1) {
    const startedAt = new Date(Date.now() - hours * hourMs)
    await ensurePartitions(relay.db, startedAt)
    const outcomes = [
      ...Array<string>((hours * 7) % 11).fill('delivered'),
      ...(failedHours.includes(hours) ? ['retryable', 'permanent'] : []),
    ]
    for (const outcome of outcomes) {
      await relay.db('delivery_attempts').insert({
        id: ulid(startedAt.getTime()),
        workspace_id: workspaceId,
        document_id: documentId,
        destination_id: destinationId,
        number: 1,
        started_at: startedAt,
        duration_ms: 1,
        outcome,
        error_code: outcome === 'delivered' ? null : 'http_503',
      })
    }
  }
}

test(
  'the destinations and their forms are legible, accessible and without errors',
  async () => {
    await relay.run(async (running) => {
      const scene = await createScene(running, { retry_initial_interval_seconds: 3_600 })
      const { routes, keys, consoleUrl } = scene
      const [archive, mail] = [routes.destinations['Archive']!, routes.destinations['Mail room']!]
      scene.workflow.answerWith((_, response) => {
        response.statusCode = 503
        response.end('Closed for maintenance')
      })
      const document = await scene.receiveRefused('FA163E4C0E1B1EDBA9D7C3F0A1B24711')
      await until('a delivery is retried', async () => (await document.deliveries())['Approval workflow']!.status === 'retrying')
      await insertAttempts(routes.workspaceId, document.id, archive, [])
      await insertAttempts(routes.workspaceId, document.id, mail, [3, 4, 5])
      const trial = { circuit: 'open', circuit_since: new Date(), trial_at: new Date(Date.now() + hourMs), pause_ms: hourMs }
      await relay.db('destination_gates').where({ destination_id: mail }).update(trial)

      const problems = await checkScreens(consoleUrl, keys.admin, [
        ['destinations', '/destinations', '.sparkline'],
        ['destination', `/destinations/${mail}`, '.bars'],
        ['destination-week', `/destinations/${archive}?range=week`, '.bars'],
        ['destination-kinds', '/destinations/new', '.kinds a'],
        ['destination-new', '/destinations/new?type=email', '#config-host'],
        ['destination-edit', `/destinations/${mail}?edit=yes`, '#config-url'],
      ])
      expect(problems).toEqual([])
    })
  },
  testMs,
)

test(
  'an administrator creates a destination with a form, mends it after a test, changes it and deletes it',
  async () => {
    await relay.run(async (running) => {
      const scene = await createScene(running)
      const { routes } = scene
      const { page, errors } = await scene.open('admin')
      const destinations = async (): Promise<{ id: string; attributes: { name: string; config: object } }[]> =>
        (await routes.call('GET', '/destinations')).json.data
      await page.getByRole('link', { name: 'Destinations', exact: true }).click()
      await page.getByRole('link', { name: 'Create a destination' }).click()
      await page.getByRole('link', { name: /^Webhook/ }).click()

      // What the form can tell, it tells by itself, at the first field that is wrong.
      await page.getByRole('button', { name: 'Create' }).click()
      await page.getByText('Enter a value.').first().waitFor()
      await page.getByLabel('Name', { exact: false }).first().fill('Ledger')
      // A message that only the relay can give also stands at the field.
      await page.getByRole('textbox', { name: 'URL', exact: true }).fill('ftp://ledger.example')
      await page.getByRole('button', { name: 'Test these settings' }).click()
      await page.locator('#config-url-help .problem').waitFor()
      await takeScreenshot(page, 'destination-new-invalid')
      expect(await page.getByRole('textbox', { name: 'URL', exact: true }).getAttribute('aria-invalid')).toBe('true')

      scene.archive.answerWith(({ url }, response) => {
        response.statusCode = url === '/ledger' ? 200 : 404
        response.end(url === '/ledger' ? 'ok' : 'There is no such ledger')
      })
      await page.getByRole('textbox', { name: 'URL', exact: true }).fill(`${scene.archive.origin}/leger`)
      expect(await page.getByLabel('Secret header: name').count()).toBe(0)
      await page.getByLabel('Sign-in').selectOption({ label: 'Secret header' })
      await page.getByRole('button', { name: 'Generate: Signing secret' }).click()
      expect(await page.getByLabel('Signing secret', { exact: true }).inputValue()).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
      await takeScreenshot(page, 'destination-new-sign-in')
      await page.getByLabel('Secret header: name').fill('X-Ledger-Key')
      await page.getByLabel('Secret header: value').fill('canary-ledger')
      await page.getByRole('button', { name: 'Test these settings' }).click()
      await page.getByText('The test failed:').first().waitFor()
      await page.getByRole('alert').getByText('404').waitFor()
      await page.getByRole('alert').getByText('What to do: Correct the configuration of destination Ledger, then test it again.').waitFor()
      expect((await destinations()).map(({ attributes }) => attributes.name)).not.toContain('Ledger')

      await page.getByRole('textbox', { name: 'URL', exact: true }).fill(`${scene.archive.origin}/ledger`)
      await page.getByRole('button', { name: 'Test these settings' }).click()
      await page.getByText('The test succeeded.').first().waitFor()
      await page.getByRole('button', { name: 'Create' }).click()
      await page.getByRole('heading', { name: 'Ledger' }).waitFor()
      const { id } = (await destinations()).find(({ attributes }) => attributes.name === 'Ledger')!
      expect(new URL(page.url()).pathname).toBe(`/console/destinations/${id}`)

      await page.getByRole('link', { name: 'Edit' }).click()
      await page.getByText('The stored credentials are kept. Sign-in: Secret header.').waitFor()
      await page.getByRole('button', { name: 'Replace the credentials' }).click()
      expect(await page.getByLabel('Sign-in').inputValue()).toBe('header')
      await page.getByRole('button', { name: 'Keep the stored credentials' }).click()
      expect(await page.content()).not.toContain('canary')
      await page.getByText('Further settings').click()
      await page.getByLabel('HTTP method').selectOption('PUT')
      await page.getByLabel('Concurrent deliveries').fill('0')
      await page.getByRole('button', { name: 'Save' }).click()
      await page.getByText('Enter a number from 1 to 1,000.').waitFor()
      await takeScreenshot(page, 'destination-edit-invalid')
      await page.getByLabel('Concurrent deliveries').fill('4')
      // Another person changes the destination.
      await routes.call('PATCH', `/destinations/${id}`, { name: 'Ledger 2026' })
      await page.getByRole('button', { name: 'Save' }).click()
      await page.getByText('Somebody else has saved other values meanwhile.').waitFor()
      await page.getByRole('button', { name: 'Load the current values' }).click()
      await page.getByRole('heading', { name: 'Edit Ledger 2026' }).waitFor()
      await page.getByText('Further settings').click()
      await page.getByLabel('HTTP method').selectOption('PUT')
      await page.getByLabel('Concurrent deliveries').fill('4')
      // The stored credentials serve a test of the change, but not at another address.
      await page.getByRole('textbox', { name: 'URL', exact: true }).fill(`${scene.mail.origin}/ledger`)
      await page.getByRole('button', { name: 'Test these settings' }).click()
      await page.getByText('the stored credentials must not be sent to another address').waitFor()
      await page.getByRole('button', { name: 'Keep the stored credentials' }).click()
      await page.getByRole('textbox', { name: 'URL', exact: true }).fill(`${scene.archive.origin}/ledger`)
      await page.getByRole('button', { name: 'Test these settings' }).click()
      await page.getByText('The test succeeded.').first().waitFor()
      expect(scene.archive.arrivals.at(-1)).toMatchObject({ method: 'PUT', headers: { 'x-ledger-key': 'canary-ledger' } })
      expect(scene.mail.arrivals).toEqual([])
      await page.getByRole('button', { name: 'Save' }).click()
      await page.locator('dd', { hasText: /^4$/ }).waitFor()
      expect((await routes.call('GET', `/destinations/${id}`)).json.data.attributes.config).toEqual({
        url: `${scene.archive.origin}/ledger`,
        method: 'PUT',
        max_concurrent_deliveries: 4,
      })

      const connection = { name: 'To the ledger', repository_ids: [routes.repositoryId], destination_ids: [id] }
      expect((await routes.call('POST', '/connections', connection)).status).toBe(201)
      const other = (await routes.call('POST', '/destinations', {
        name: 'Second archive',
        connector_type: 'webhook',
        config: { url: `${scene.archive.origin}/second` },
        credentials: {},
      })) as { json: { data: { id: string } } }
      const both = { name: 'To both', is_active: false, repository_ids: [routes.repositoryId], destination_ids: [id, other.json.data.id] }
      const kept = (await routes.call('POST', '/connections', both)).json.data.id as string
      await routes.receive('hello')
      const delivered = () => scene.archive.arrivals.find(({ method, url }) => method === 'PUT' && url === '/ledger')
      const arrived = async () =>
        (await routes.call('GET', `/documents/search?destination_id=${id}&delivery_status=delivered`)).json.data.length === 1
      await until('the document has arrived', arrived)
      expect(delivered()!.headers['x-ledger-key']).toBe('canary-ledger')

      await page.getByRole('button', { name: 'Delete' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByText('To the ledger').waitFor()
      await dialog.getByText('stay without it').waitFor()
      // Without it, the question names who loses what.
      await dialog.getByLabel('Keep the connections').uncheck()
      await dialog.getByText(`Second archive loses the documents of ${routes.repoId}`).waitFor()
      await dialog.getByLabel('Keep the connections').check()
      await dialog.getByText('stay without it').waitFor()
      await dialog.getByText('No delivery is open or failed.').waitFor()
      await takeScreenshot(page, 'destination-delete')
      await dialog.getByRole('button', { name: 'Delete' }).click()
      await page.getByRole('heading', { name: 'Destinations' }).waitFor()
      await page.getByRole('link', { name: 'Ledger 2026' }).waitFor({ state: 'detached' })
      expect((await routes.call('GET', `/destinations/${id}`)).status).toBe(404)
      expect((await routes.call('GET', `/connections/${kept}`)).json.data.destinations).toMatchObject([{ name: 'Second archive' }])
      // Chromium logs each answer of 4xx, which the form shows.
      expect(errors.filter((error) => !/status of 4(04|12|22)/.test(error))).toEqual([])
    })
  },
  testMs,
)

test(
  'a viewer can neither create, change nor delete a destination, and a member cannot delete',
  async () => {
    await relay.run(async (running) => {
      const scene = await createScene(running)
      const id = scene.routes.destinations['Archive']!
      for (const [level, actions] of [
        ['viewer', []],
        ['member', ['Test the destination']],
      ] as const) {
        const { page } = await scene.open(level)
        await page.goto(`${scene.consoleUrl}/destinations`)
        await page.getByRole('link', { name: 'Archive' }).waitFor()
        expect(await page.getByRole('link', { name: 'Create a destination' }).count()).toBe(level === 'viewer' ? 0 : 1)
        await page.goto(`${scene.consoleUrl}/destinations/${id}`)
        await page.locator('.facts').first().waitFor()
        expect(await page.locator('main button').allInnerTexts()).toEqual(actions)
        await page.goto(`${scene.consoleUrl}/destinations/${id}?edit=yes`)
        await page.locator(level === 'viewer' ? '.notice.info' : 'main form').waitFor()
        expect(await page.locator('main form').count()).toBe(level === 'viewer' ? 0 : 1)
        await page.context().close()
      }
    })
  },
  testMs,
)

test(
  'the page of a destination that was repaired offers to retry what has failed there, and says how much has arrived',
  async () => {
    await relay.run(async (running) => {
      const scene = await createScene(running)
      const documents = [await scene.receiveRefused(), await scene.receiveRefused()]
      const { page, errors } = await scene.open('member')
      await page.goto(`${scene.consoleUrl}/destinations/${scene.routes.destinations['Mail room']!}`)
      await page.getByText('2 deliveries failed here. Retry them?').waitFor()
      // What fails in a test also fails in a retry.
      await page.getByRole('button', { name: 'Test the destination' }).click()
      await page.getByText('The test failed:').waitFor()
      await page.getByText('2 deliveries failed here. Retry them?').waitFor({ state: 'hidden' })
      await page.getByRole('link', { name: 'Edit' }).click()
      await page.getByLabel('Name', { exact: false }).first().fill('Mail room, repaired')
      await page.getByRole('button', { name: 'Save' }).click()
      await page.getByRole('heading', { name: 'Mail room, repaired' }).waitFor()
      await page.getByText('2 deliveries failed here before that. Retry them now?').waitFor()
      await page.getByText('Before the last change of the destination').waitFor()
      await takeScreenshot(page, 'destination-failed-here')
      scene.mail.answerWith((_, response) => void response.end('ok'))
      await page.getByRole('button', { name: 'Retry failed deliveries' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByText('2 failed deliveries of 2 documents to Mail room, repaired').waitFor()
      await dialog.getByRole('button', { name: 'Retry all' }).click()
      await page.getByText('Bulk retry has ended: 2 of 2 deliveries').waitFor()
      await page.getByText('2 deliveries have arrived, 0 failed again, 0 open.').waitFor()
      await takeScreenshot(page, 'destination-retried-here')
      for (const document of documents) expect(await document.status()).toBe('delivered')
      expect(errors).toEqual([])
    })
  },
  testMs,
)
