import type { Page } from 'playwright-core'
import { openDatabase } from '../../src/db/database.ts'
import type { RelayStatus } from '../../src/domain/relay-state.ts'
import { insertDocument } from '../api/insert-document.ts'
import { startApi } from '../support/api.ts'
import { createKeys } from '../support/client.ts'
import { createTestDatabase, databaseConfig } from '../support/database.ts'
import { disposable } from '../support/disposable.ts'
import { createRoutes } from '../support/factories.ts'
import { share } from '../support/share.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { goTo, openAccount, overflowOf, startBrowser, takeScreenshot, violationsOf } from './browser.ts'
import { openConsole, testMs } from './scene.ts'

const database = share(await createTestDatabase())
const browser = share(disposable(await startBrowser(), (each) => each.close()))
const databaseGate = share(await startTcpProxy(Number(new URL(database.url).port)))
const gatedUrl = new URL(database.url)
gatedUrl.port = String(databaseGate.port)
const gatedDatabase = share(disposable(openDatabase(databaseConfig(gatedUrl.href), 'behind a gate'), (each) => each.destroy()))
let relayStatus: RelayStatus = 'working'
const relayWatch = { read: () => ({ status: relayStatus, since: new Date(), workers: [] }) }
const api = share(await startApi(gatedDatabase, { relayWatch }))
const relayGate = share(await startTcpProxy(Number(new URL(api.baseUrl).port)))
const consoleUrl = `http://127.0.0.1:${relayGate.port}/console`
afterEach(() => {
  databaseGate.open()
  relayGate.open()
  relayStatus = 'working'
})

const createScene = async () => {
  const { workspaceId, workspaceSlug, repositoryId, repoId, destinations, connections } = await createRoutes(database.db, [
    { name: 'Archive' },
  ])
  const keys = await createKeys(database.db, `acme/${workspaceSlug}`)
  const delivery = { destinationId: destinations['Archive']!, connectionId: connections['Archive']! }
  const insert = (docId: string, status: 'delivered' | 'failed' | 'pending') =>
    insertDocument(database.db, { workspaceId, repositoryId, repoId, docId, status, deliveries: [{ ...delivery, status }] })
  const open = async ({ savesData = false } = {}) => {
    const { page } = await openConsole(browser, consoleUrl, keys.member, { savesData })
    // Nothing below loads the page again.
    await page.evaluate("window.isSame = 'yes'")
    return page
  }
  return { workspaceId, destinationId: destinations['Archive']!, insert, open }
}

const documentLink = (page: Page, docId: string) => page.getByRole('link', { name: docId })
const isSame = async (page: Page) => (await page.evaluate('window.isSame')) === 'yes'

const hasLoaded = (page: Page, screen: string) =>
  page.evaluate<boolean>(`performance.getEntriesByType('resource').some(({ name }) => name.endsWith('/screens/${screen}.js'))`)

/** Waits until the page has loaded a screen that was not opened before. */
const untilLoaded = (page: Page, screen: string) => until(`the screen ${screen} has been loaded`, () => hasLoaded(page, screen))

/** Returns what is wrong with how a page looks. */
const problemsOf = async (page: Page, name: string) => {
  await takeScreenshot(page, name)
  return [...(await violationsOf(page)), ...((await overflowOf(page)) > 0 ? ['too wide'] : [])]
}

test(
  'while the relay is away, a page says so and of when its data are, and goes on by itself: by the stream, or by asking',
  async () => {
    const { insert, open } = await createScene()
    await insert('FIRST1', 'delivered')
    const streaming = await open()
    const asking = await open({ savesData: true })
    const elsewhere = await open()
    for (const page of [streaming, asking]) {
      await page.getByRole('link', { name: 'Documents', exact: true }).click()
      await documentLink(page, 'FIRST1').waitFor()
    }
    await untilLoaded(elsewhere, 'notification')
    expect(await hasLoaded(asking, 'notification')).toBe(false)

    relayGate.close()
    for (const page of [streaming, asking]) {
      await page.getByText('The relay cannot be reached. What you see is as of').waitFor()
      await page.getByText('The console retries automatically').waitFor()
      expect(await documentLink(page, 'FIRST1').count()).toBe(1)
    }
    expect(await problemsOf(streaming, 'outage-relay')).toEqual([])
    // A screen that has not been shown before says the same.
    await elsewhere.getByRole('link', { name: 'Destinations', exact: true }).click()
    await elsewhere.getByRole('alert').getByText('The relay cannot be reached.').first().waitFor()
    expect(await problemsOf(elsewhere, 'outage-relay-first')).toEqual([])

    await insert('SECOND2', 'delivered')
    await asking.route('**/console/events?*', (route) => route.abort())
    const stream = streaming.waitForResponse(
      (response) => new URL(response.url()).pathname === '/console/events' && response.status() === 200,
    )
    relayGate.open()
    for (const page of [streaming, asking]) {
      await documentLink(page, 'SECOND2').waitFor()
      await page.getByText('The relay cannot be reached.').waitFor({ state: 'detached' })
    }
    await elsewhere.getByRole('link', { name: 'Archive' }).waitFor()
    await stream
    await insert('THIRD3', 'delivered')
    for (const page of [streaming, asking]) await documentLink(page, 'THIRD3').waitFor()
    for (const page of [streaming, asking, elsewhere]) expect(await isSame(page)).toBe(true)
  },
  testMs,
)

test(
  'a screen that could not be loaded is shown when the relay answers, without a further step of the user, and the page is loaded once for it',
  async () => {
    const { insert, open } = await createScene()
    const id = await insert('FIRST1', 'delivered')
    const page = await open({ savesData: true })
    relayGate.close()
    await page.getByRole('link', { name: 'Destinations', exact: true }).click()
    await page.locator('main').getByText('The relay cannot be reached. The console retries automatically.').waitFor()
    relayGate.open()
    await page.getByRole('link', { name: 'Archive' }).waitFor()
    expect(new URL(page.url()).pathname).toBe('/console/destinations')

    // A module that the module of the screen imports.
    await page.route('**/ui/timeline-figure.js', (route) => route.abort(), { times: 1 })
    await goTo(page, `/console/documents/${id}`)
    await page.locator('.timeline .arrived').waitFor()

    let requests = 0
    await page.route('**/screens/connections.js', (route) => {
      requests += 1
      return route.abort()
    })
    await page.getByRole('link', { name: 'Connections', exact: true }).click()
    await page.getByText('This screen could not be loaded. Load the page again.').waitFor()
    expect(requests).toBe(2)
    await page.getByRole('link', { name: 'Destinations', exact: true }).click()
    await page.getByRole('link', { name: 'Archive' }).waitFor()

    // A module of the first screen.
    await page.route('**/ui/shell.js', (route) => route.abort(), { times: 1 })
    await page.goto(`${consoleUrl}/destinations`)
    await page.getByRole('link', { name: 'Archive' }).waitFor()
  },
  testMs,
)

test(
  'while no worker runs or Temporal is away, every screen says so, and a document names the part that is away, until they are back',
  async () => {
    const { insert, open } = await createScene()
    const id = await insert('WAITS1', 'pending')
    const page = await open()
    const sentences = {
      no_worker: ['No worker is running: documents are received and wait.', 'Archive waits for a worker'],
      temporal_unavailable: ['Temporal does not answer: documents are received and wait.', 'Archive waits for Temporal'],
    } as const
    for (const [status, [sentence, verdict]] of Object.entries(sentences)) {
      relayStatus = status as RelayStatus
      await page.getByRole('alert').getByText(sentence).waitFor()
      for (const screen of ['Documents', 'Destinations', 'Overview']) {
        await page.getByRole('link', { name: screen, exact: true }).click()
        await page.getByRole('heading', { name: screen, level: 1 }).waitFor()
        await page.getByRole('alert').getByText(sentence).waitFor()
      }
      expect(await problemsOf(page, `outage-${status}`)).toEqual([])
      await goTo(page, `/console/documents/${id}`)
      await page.getByText(verdict).first().waitFor()
      relayStatus = 'working'
      await page.getByText(sentence).waitFor({ state: 'detached' })
    }
    expect(await isSame(page)).toBe(true)
  },
  testMs,
)

test(
  'behind a circuit, the page of a document says what is wrong at the destination and what to do, as that of the destination does',
  async () => {
    const { destinationId, insert, open } = await createScene()
    const id = await insert('BEHIND1', 'pending')
    const { db } = database
    const trialAt = new Date(Date.now() + 3_600_000)
    const gate = { destination_id: destinationId, circuit: 'open', circuit_since: new Date(), pause_ms: 3_600_000, trial_at: trialAt }
    const error = {
      last_error: 'the certificate of the target has expired',
      last_error_code: 'certificate_refused',
      last_error_at: new Date(),
    }
    await db('destination_gates')
      .insert({ ...gate, ...error, failed_attempts: 12 })
      .onConflict('destination_id')
      .merge()
    await db('deliveries').where({ document_id: id }).update({ waiting: 'in_line' })
    const page = await open()
    await goTo(page, `/console/documents/${id}`)
    await page.getByText('Archive waits until Archive answers again').waitFor()
    const remedy = 'What to do: Renew the TLS certificate of the target, or correct ca_certificate of destination Archive'
    for (const [path, end] of [
      [`documents/${id}`, '. The relay tries again by itself.'],
      [`destinations/${destinationId}`, ', then test it again.'],
    ] as const) {
      await goTo(page, `/console/${path}`)
      await page.getByText('Last error: certificate_refused the certificate of the target has expired').waitFor()
      await page.getByText(/(ago|now), 12 failed attempts/).waitFor()
      await page.getByText(`${remedy}${end}`).waitFor()
      expect(await problemsOf(page, `circuit-${path.split('/')[0]}`)).toEqual([])
    }
    // After a change, it is not known if it was enough.
    await db('destinations')
      .where({ id: destinationId })
      .update({ updated_at: new Date(Date.now() + 1_000) })
    await page.getByText('What to do').waitFor({ state: 'detached' })
  },
  testMs,
)

test(
  'without the database, a change is refused with the reason and that nothing was changed, and can be made when it is back',
  async () => {
    const { workspaceId, insert, open } = await createScene()
    const id = await insert('FAILED1', 'failed')
    const page = await open()
    await page.getByRole('link', { name: 'Documents', exact: true }).click()
    await documentLink(page, 'FAILED1').click()
    await page.getByRole('button', { name: 'Retry the delivery to Archive' }).click()
    const dialog = page.getByRole('dialog')

    databaseGate.close()
    await dialog.getByRole('button', { name: 'Retry' }).click()
    await dialog.getByText('The database is unavailable.').waitFor()
    await dialog.getByText('Nothing was changed.').waitFor()
    expect(await problemsOf(page, 'outage-database-retry')).toEqual([])
    expect(await database.db('deliveries').where({ document_id: id }).pluck('status')).toEqual(['failed'])
    expect(await database.db('audit_logs').where({ workspace_id: workspaceId, event: 'document.retried' })).toEqual([])

    databaseGate.open()
    await dialog.getByRole('button', { name: 'Retry' }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('region', { name: 'Archive' }).getByText('Retrying').waitFor()
    expect(await database.db('deliveries').where({ document_id: id }).pluck('status')).toEqual(['retrying'])
    expect(await isSame(page)).toBe(true)
  },
  testMs,
)

test(
  'what was typed into a form stays until the relay can save it, and a change that may have been made is not reported as failed',
  async () => {
    const { workspaceId, open } = await createScene()
    const page = await open()
    await page.getByRole('link', { name: 'Repositories', exact: true }).click()
    await page.getByRole('link', { name: 'Create a repository' }).click()
    await page.locator('#repo_id').fill('Z2')
    await page.locator('#name').fill('Credit notes')
    const save = page.locator('form button[type=submit]')

    databaseGate.close()
    await save.click()
    await page.getByText('Nothing was changed.').waitFor()
    databaseGate.open()
    // The relay saves, and its answer does not arrive.
    await page.route('**/repositories', async (route) => {
      if (route.request().method() !== 'POST') return route.continue()
      await route.fetch()
      return route.abort()
    })
    await save.click()
    await page.getByText('It is not known whether the change was made.').waitFor()
    expect(await page.getByText('Nothing was changed.').count()).toBe(0)
    expect(await page.locator('#name').inputValue()).toBe('Credit notes')
    expect(await database.db('repositories').where({ workspace_id: workspaceId, repo_id: 'Z2' }).pluck('name')).toEqual(['Credit notes'])
    expect(await isSame(page)).toBe(true)
  },
  testMs,
)

test(
  'a page that is loaded without the database says what it waits for instead of asking for a key, and then shows its screen',
  async () => {
    const { insert, open } = await createScene()
    await insert('FIRST1', 'delivered')
    const page = await open()
    databaseGate.close()
    await page.goto(`${consoleUrl}/documents`)
    await page.getByRole('heading', { name: 'Waiting for the relay' }).waitFor()
    await page.getByText('The database is unavailable.').waitFor()
    expect(await problemsOf(page, 'outage-database-start')).toEqual([])
    databaseGate.open()
    await documentLink(page, 'FIRST1').waitFor()
  },
  testMs,
)

test(
  'sign-out says if the relay cannot be reached, because the session goes on',
  async () => {
    const { open } = await createScene()
    const page = await open()
    relayGate.close()
    await openAccount(page)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.locator('.account').getByText('The relay cannot be reached.').waitFor()
    expect((await page.context().cookies()).map(({ name }) => name)).toEqual(['relay_session'])
    relayGate.open()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  },
  testMs,
)
