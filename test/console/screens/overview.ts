import type { Page } from 'playwright-core'
import { createSignInLinks } from '../../../src/access/sign-in-links.ts'
import { createKeyRing } from '../../../src/security/seal.ts'
import { apiKeyParts } from '../../support/api-key.ts'
import { testConfig } from '../../support/factories.ts'
import { until } from '../../support/until.ts'
import { openPage, takeScreenshot } from '../browser.ts'
import { signIn, startConsole, testMs } from '../scene.ts'

const { relay, browser, createScene, checkScreens } = await startConsole()

/** Returns the sum of a column of a table of numbers. */
const sumOf = async (page: Page, table: string, column: number) => {
  const cells = await page.getByRole('table', { name: table }).locator(`tbody td:nth-child(${column})`).allTextContents()
  return cells.reduce((sum, cell) => sum + Number(cell), 0)
}

test(
  'the overview is legible and accessible: empty, in order and with failures',
  async () => {
    await relay.run(async (running) => {
      const scene = await createScene(running, { retry_initial_interval_seconds: 3_600 })
      const { keys, consoleUrl } = scene
      expect(await checkScreens(consoleUrl, keys.viewer, [['first-steps', '/overview', '.first-steps']])).toEqual([])
      await scene.receiveRefused()
      scene.workflow.answerWith((_, response) => {
        response.statusCode = 503
        response.end('Try again later')
      })
      const retrying = await scene.routes.receive('hello')
      await until('a delivery is retried', async () => (await retrying.deliveries())['Approval workflow']!.status === 'retrying')
      const problems = await checkScreens(consoleUrl, keys.viewer, [
        ['overview', '/overview', '.plot canvas'],
        ['overview-month', '/overview?range=30d', '.choices [aria-current]:last-child'],
      ])
      expect(problems).toEqual([])
    })
  },
  testMs,
)

test(
  'the console is shown by a browser whose language is no BCP 47 tag',
  async () => {
    await relay.run(async (running) => {
      const { routes, keys, consoleUrl } = await createScene(running)
      await routes.receive('hello')
      const { page, errors } = await openPage(browser, { width: 1280, colorScheme: 'light', locale: 'en-GB' })
      // What Chromium answers where LANG is C.
      await page.addInitScript(
        "for (const [name, value] of Object.entries({ language: 'en-US@posix', languages: ['en-US@posix'] })) " +
          'Object.defineProperty(Navigator.prototype, name, { get: () => value })',
      )
      await signIn(page, consoleUrl, keys.viewer)
      await page.locator('.plot canvas').first().waitFor()
      await page.getByRole('link', { name: 'Documents', exact: true }).click()
      await page.locator('#main tbody time').first().waitFor()
      expect(errors).toEqual([])
    })
  },
  testMs,
)

test(
  'the overview says what needs attention, and its tiles, plots and tables have the numbers of the API',
  async () => {
    await relay.run(async (running) => {
      const scene = await createScene(running)
      const { page, errors } = await scene.open('viewer')
      // The console begins with the first steps, and with the overview once a document has been received.
      await page.waitForURL(/\/start$/)
      const first = await scene.routes.receive('hello')
      await until('the document has arrived', async () => (await first.status()) === 'delivered')
      await page.getByRole('link', { name: 'Go to the overview' }).click()
      await page.getByText('Everything delivered.').waitFor()
      await scene.receiveRefused()
      await scene.receiveRefused()
      await page.getByText('2 documents need attention.').waitFor()
      const tile = (name: string) => page.locator('.tile', { hasText: name }).locator('.value')
      expect(await tile('Documents received').textContent()).toBe('3')
      // The other deliveries of these documents may arrive later.
      await until('the other deliveries are shown', async () => (await tile('Deliveries made').textContent()) === '7')
      expect(await tile('Failed attempts').textContent()).toBe('2')
      expect(await tile('Time to delivery (Median)').textContent()).toMatch(/^[\d.]+ m?s$/)
      for (const summary of await page.getByText('Show as table').all()) await summary.click()
      expect(await sumOf(page, 'Received and delivered: table', 2)).toBe(3)
      expect(await sumOf(page, 'Received and delivered: table', 3)).toBe(7)
      expect(await sumOf(page, 'Received and delivered: table', 4)).toBe(2)

      await page.getByRole('link', { name: '7 days' }).click()
      await page.waitForURL(/overview\?range=7d/)
      const figure = page.locator('.figure', { hasText: 'Received and delivered' })
      await figure.getByText('Show as table').click()
      const rows = page.getByRole('table', { name: 'Received and delivered: table' }).locator('tbody tr')
      await until('the table has every hour', async () => (await rows.count()) === 7 * 24)
      expect(await tile('Documents received').textContent()).toBe('3')
      await page.getByRole('link', { name: 'Show what failed' }).click()
      await page.getByRole('heading', { name: 'Needs attention' }).waitFor()

      const { repositoryId } = scene.routes
      const unused = { auth_id: null, certificate: null, ca_certificate: null, proxy_url: null, allowed_cidrs: null }
      const upstream = { url: 'https://archive.example/archive', cont_rep: 'Z1', ...unused }
      await relay
        .db('repositories')
        .where({ id: repositoryId })
        .update({ upstream: JSON.stringify({ ...upstream, delivers: false }) })
      await relay.db('upstream_failures').insert({
        repository_id: repositoryId,
        failing_since: new Date(Date.now() - 600_000),
        last_error: 'upstream: the content server answers 500',
      })
      await page.getByRole('link', { name: 'Overview' }).click()
      await page.getByText('The earlier content server of the repository Z1 fails.').waitFor()
      await page.getByRole('link', { name: 'Show the repository' }).click()
      await page.getByText('Below, test it to see what it says.').waitFor()
      expect(errors).toEqual([])
    })
  },
  testMs,
)

test(
  'the page learns of changes by a stream, and asks by itself where the stream does not arrive',
  async () => {
    await relay.run(async (running) => {
      const scene = await createScene(running)
      // Without a document, the console would show the first steps.
      const first = await scene.routes.receive('hello')
      await until('the document has arrived', async () => (await first.status()) === 'delivered')
      const { page } = await scene.open('viewer')
      await page.getByRole('heading', { name: 'Overview' }).waitFor()
      const [stream] = await Promise.all([page.waitForResponse(/\/console\/events\?/), page.reload()])
      expect(stream.status()).toBe(200)
      await scene.receiveRefused()
      await page.getByText('1 document needs attention.').waitFor()

      const behindProxy = await scene.open('viewer')
      await behindProxy.page.route('**/console/events?*', (route) => route.abort())
      await behindProxy.page.reload()
      await behindProxy.page.getByText('1 document needs attention.').waitFor()
      await scene.receiveRefused()
      await behindProxy.page.getByText('2 documents need attention.').waitFor()
    })
  },
  testMs,
)

test(
  'a link signs a browser in until it expires, and does not stay in its address',
  async () => {
    await relay.run(async (running) => {
      const { keys, consoleUrl } = await createScene(running)
      const links = createSignInLinks(createKeyRing(testConfig().RELAY_SECRET_KEYS))
      const { id } = apiKeyParts(keys.viewer)
      const token = links.create(id, 600_000)
      const open = async (ofLink: string) => {
        const { page } = await openPage(browser, { width: 1280, colorScheme: 'light', locale: 'en-GB' })
        await page.goto(`${consoleUrl}/#sign-in=${ofLink}`)
        return page
      }
      const page = await open(token)
      await page.getByRole('heading', { name: 'First steps' }).waitFor()
      expect(page.url()).toBe(`${consoleUrl}/start`)
      expect(await page.evaluate('document.cookie')).toBe('')
      const expired = links.create(id, -1)
      const second = await open(expired)
      await second.getByText('This link has expired.').waitFor()
      expect(second.url()).not.toContain(expired)
    })
  },
  testMs,
)

test(
  'an empty workspace shows the first steps, and a test document that arrives ends them',
  async () => {
    await relay.run(async (running) => {
      const scene = await createScene(running)
      const { page, errors } = await scene.open('member')
      await page.getByRole('heading', { name: 'First steps', level: 1 }).waitFor()
      // The steps are filled when the lists are there.
      await page.locator('.step.done').nth(2).waitFor()
      expect(await page.locator('.step.done h2').allTextContents()).toEqual([
        'Create a destination',
        'Create a repository',
        'Connect the repository to the destination',
      ])
      await page.getByRole('button', { name: 'Send a test document to Z1' }).click()
      await page.getByText('The relay has stored the test document.').waitFor()
      await page.getByText('The document has arrived at every destination.').waitFor()
      expect(scene.archive.arrivals.at(-1)!.body.subarray(0, 5).toString()).toBe('%PDF-')
      expect(await page.locator('.step.done').count()).toBe(4)
      await takeScreenshot(page, 'first-steps-done')
      await page.getByRole('link', { name: 'Go to the overview' }).click()
      await page.getByText('Everything delivered.').waitFor()
      await page.getByRole('link', { name: 'First steps, with a test document' }).click()
      await page.getByText('The document has arrived at every destination.').waitFor()
      // A screen for administrators says who can see it.
      await page.goto(`${scene.consoleUrl}/keys`)
      await page.getByText('Only keys of the level Administrator show this screen.').waitFor()
      expect(errors).toEqual([])
    })
  },
  testMs,
)
