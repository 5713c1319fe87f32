import type { Browser, BrowserContext, Page } from 'playwright-core'
import { insertDocument } from '../api/insert-document.ts'
import { startApi } from '../support/api.ts'
import { createTestDatabase } from '../support/database.ts'
import { createFolder } from '../support/folder.ts'
import { startOpenIdServer } from '../support/openid-provider.ts'
import { share } from '../support/share.ts'
import { writeSignInFile } from '../support/sign-in-file.ts'
import { openAccount, openPage, overflowOf, startBrowser, takeScreenshot, violationsOf } from './browser.ts'

// A limit for a busy machine: each test takes a few seconds.
const testMs = 600_000

const accounts = {
  ada: { groups: ['clerks', 'operators'], email: 'ada@example.com', email_verified: true },
  nora: { groups: ['visitors'], email: 'nora@example.com', email_verified: true },
}
const access = [
  { value: 'operators', workspace: 'acme/prod', level: 'admin' },
  { value: 'clerks', workspace: 'acme/test', level: 'viewer' },
]

const database = share(await createTestDatabase())
const folder = share(await createFolder())
const provider = share(await startOpenIdServer({ accounts }))
const variables = { RELAY_OIDC_FILE: await writeSignInFile(`${folder.path}/oidc.json`, provider, { access }) }
const api = share(await startApi(database.db, { variables }))
provider.register([`${api.baseUrl}/console/sign-in/callback`])
const prod = await api.tenant('acme/prod')
const trial = await api.tenant('acme/test')
const prodId = await prod.create('/repositories', { repo_id: 'P1', name: 'Only in production' })
for (let count = 0; count < 5; count += 1) await prod.send('PUT', `create&pVersion=0045&contRep=P1&docId=D${count}`, 'without a component')
const repositoryId = await trial.create('/repositories', { repo_id: 'T1', name: 'Only in the test workspace' })
for (const [id, repoId, status] of [
  [repositoryId, 'T1', 'failed'],
  [prodId, 'P1', 'delivered'],
] as const) {
  const { workspace_id: workspaceId } = await database.db('repositories').where({ id }).first('workspace_id')
  await insertDocument(database.db, { workspaceId, repositoryId: id, repoId, status })
}

let browser: Browser
beforeAll(async () => {
  browser = await startBrowser()
}, testMs)
afterAll(() => browser.close())

/** Opens a page in a browser of its own, which trusts the certificate of the provider. */
const openSignIn = async (
  locale = 'en-GB',
  view: { width: number; colorScheme: 'light' | 'dark' } = { width: 1280, colorScheme: 'light' },
) => {
  const { page, errors } = await openPage(browser, { ...view, locale, ignoreHTTPSErrors: true })
  return { context: page.context(), page, errors }
}

const goToProvider = async (page: Page, path = '') => {
  await page.goto(`${api.baseUrl}/console/${path}`)
  await page.getByRole('link', { name: 'Example Corp' }).click()
  await page.waitForURL(`${provider.issuer}/**`)
}

const signIn = async (page: Page, account: keyof typeof accounts, path?: string) => {
  await goToProvider(page, path)
  await page.getByLabel('Name').fill(account)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL(`${api.baseUrl}/**`)
}

const cookieNames = async (context: BrowserContext) => (await context.cookies(api.baseUrl)).map(({ name }) => name)

test(
  'a person signs in, sees the page that was asked for, works in two workspaces, and signs out',
  async () => {
    const { context, page, errors } = await openSignIn()
    await signIn(page, 'ada', 'repositories?q=Only')
    await page.getByText('Only in production').waitFor()
    expect(page.url()).toBe(`${api.baseUrl}/console/repositories?q=Only`)
    expect(await cookieNames(context)).toContain('relay_session')
    expect(await page.evaluate('document.cookie')).toBe('')
    const account = page.locator('.account')
    expect(await account.textContent()).toContain('ada@example.com')
    expect(await account.textContent()).toContain('Administrator')
    await openAccount(page)
    expect(await violationsOf(page)).toEqual([])
    await takeScreenshot(page, 'person')

    // A change is recorded with the name of the person.
    const created = JSON.stringify({
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"repo_id":"P2","name":"Of Ada"}',
    })
    expect(await page.evaluate(`fetch('../api/acme/prod/repositories', ${created}).then(({ status }) => status)`)).toBe(201)
    await page.goto(`${api.baseUrl}/console/audit?event=repository.created`)
    await page.locator('#main td').getByText('ada@example.com').waitFor()

    await account.getByLabel('Workspace').selectOption('acme/test')
    await page.waitForURL(`${api.baseUrl}/console/overview`)
    await openAccount(page)
    await account.getByText('Viewer').waitFor()
    await page.goto(`${api.baseUrl}/console/repositories`)
    await page.getByText('Only in the test workspace').waitFor()
    expect(await page.getByText('Only in production').count()).toBe(0)
    expect(await account.getByLabel('Workspace').inputValue()).toBe('acme/test')
    await takeScreenshot(page, 'person-other-workspace')

    // Another tab begins with the workspace that was chosen last. The first one keeps its own.
    const second = await context.newPage()
    await second.goto(`${api.baseUrl}/console/repositories`)
    await second.getByText('Only in the test workspace').waitFor()
    await second.locator('.account').getByLabel('Workspace').selectOption('acme/prod')
    await second.waitForURL(`${api.baseUrl}/console/overview`)
    await page.reload()
    await page.getByText('Only in the test workspace').waitFor()
    await second.close()

    await openAccount(page)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('link', { name: 'Sign in with Example Corp' }).waitFor()
    expect(await cookieNames(context)).not.toContain('relay_session')
    expect(errors).toEqual([])

    // The provider still knows the person: one click is enough.
    await page.getByRole('link', { name: 'Sign in with Example Corp' }).click()
    await page.getByText('Only in the test workspace').waitFor()
  },
  testMs,
)

test.each(['en-GB', 'de-DE'] as const)(
  'a person sees on one page which of the workspaces has trouble, and goes there (%s)',
  async (locale) => {
    const isGerman = locale === 'de-DE'
    const { page, errors } = await openSignIn(locale)
    await signIn(page, 'ada', 'overview?workspace=acme/prod')
    const workspace = page.locator('.account').getByLabel(isGerman ? 'Arbeitsbereich' : 'Workspace')
    await workspace.waitFor()
    expect(await workspace.inputValue()).toBe('acme/prod')
    await page.getByRole('link', { name: isGerman ? 'Alle Arbeitsbereiche vergleichen' : 'Compare all workspaces' }).click()
    const table = page.getByRole('table', { name: isGerman ? 'Arbeitsbereiche' : 'Workspaces' })
    await table.waitFor()
    expect(await table.locator('tbody tr td:first-child a').allTextContents()).toEqual(['acme/test', 'acme/prod'])
    expect(await violationsOf(page)).toEqual([])
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 900 })
      expect(await overflowOf(page)).toBe(0)
      await takeScreenshot(page, `workspaces-${locale}-${width}`)
    }
    await page.setViewportSize({ width: 1280, height: 900 })
    await table.getByRole('link', { name: isGerman ? 'Anfragen an 1 Repository abgewiesen' : 'Requests to 1 repository refused' }).click()
    await page.waitForURL(`${api.baseUrl}/console/requests?status_class=4xx`)
    await page.getByRole('link', { name: isGerman ? 'Übersicht' : 'Overview', exact: true }).click()
    await page
      .getByText(isGerman ? 'Die letzten Anfragen an das Repository P1 wurden alle' : 'The latest requests to the repository P1 were all')
      .waitFor()
    await page.goto(`${api.baseUrl}/console/workspaces`)
    await table.getByRole('link', { name: isGerman ? '1 Dokument' : '1 document' }).click()
    await page.waitForURL(`${api.baseUrl}/console/attention`)
    await workspace.waitFor()
    expect(await workspace.inputValue()).toBe('acme/test')
    // A link of a mail, to a workspace that is not theirs.
    await page.goto(`${api.baseUrl}/console/requests?repo_id=T1&workspace=other/prod`)
    await page
      .getByText(isGerman ? 'Dieser Link führt zum Arbeitsbereich other/prod' : 'This link leads to the workspace other/prod')
      .waitFor()
    expect(page.url()).toBe(`${api.baseUrl}/console/requests?repo_id=T1`)
    expect(errors).toEqual([])
  },
  testMs,
)

test.each([
  ['en-GB', 'nora', 'Sign in', 'You are signed in at Example Corp, but none of your groups opens a workspace here.'],
  ['en-GB', 'ada', 'Cancel', 'The sign-in at Example Corp was cancelled or refused.'],
  ['de-DE', 'ada', 'Cancel', 'Die Anmeldung bei Example Corp wurde abgebrochen oder abgelehnt.'],
] as const)(
  'a sign-in that fails says why on the sign-in page, and can be repeated (%s, %s, %s)',
  async (locale, account, button, sentence) => {
    const { context, page, errors } = await openSignIn(locale)
    await goToProvider(page, 'documents?q=4711')
    await page.getByLabel('Name').fill(account)
    await page.getByRole('button', { name: button }).click()
    await page.getByText(sentence).waitFor()
    expect(page.url()).toBe(`${api.baseUrl}/console/documents?q=4711`)
    await page.locator('#key').waitFor()
    await takeScreenshot(page, `sign-in-${button.toLowerCase().replaceAll(' ', '-')}-${locale}`)
    expect(await cookieNames(context)).toEqual([])
    await page.reload()
    await page.getByRole('link', { name: 'Example Corp' }).waitFor()
    expect(await page.getByText(sentence).count()).toBe(0)
    expect(errors).toEqual([])
  },
  testMs,
)

test(
  'after an account without access, the provider asks for another one',
  async () => {
    const { page } = await openSignIn()
    await signIn(page, 'nora', 'repositories')
    await page.getByText('none of your groups opens a workspace here').waitFor()
    await page.getByRole('link', { name: 'Sign in with Example Corp' }).click()
    await page.getByLabel('Name').fill('ada')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('Only in production').waitFor()
    expect(page.url()).toBe(`${api.baseUrl}/console/repositories`)
  },
  testMs,
)

test(
  'while the provider is away, the sign-in page says so, and a key still signs in',
  async () => {
    const { context, page } = await openSignIn()
    await using fresh = await startApi(database.db, { variables })
    provider.setAway(true)
    try {
      await page.goto(`${fresh.baseUrl}/console/documents`)
      await page.getByRole('link', { name: 'Sign in with Example Corp' }).click()
      await page.getByText('Example Corp does not answer.').waitFor()
      await page.locator('#key').fill(prod.keys.viewer)
      await page.keyboard.press('Enter')
      await page.locator('#main h1').waitFor()
      expect(await page.locator('.account').textContent()).toContain('acme/prod')
    } finally {
      provider.setAway(false)
      await context.close()
    }
  },
  testMs,
)

test.each([
  ['en-GB', { width: 1280, colorScheme: 'light' }],
  ['de-DE', { width: 375, colorScheme: 'dark' }],
] as const)(
  'the sign-in page with a provider is accessible and fits (%s, %j)',
  async (locale, view) => {
    const { page, errors } = await openSignIn(locale, view)
    await page.goto(`${api.baseUrl}/console/`)
    await page.getByRole('link', { name: 'Example Corp' }).waitFor()
    await takeScreenshot(page, `sign-in-${view.width}-${view.colorScheme}`)
    expect(await violationsOf(page)).toEqual([])
    expect(await overflowOf(page)).toBe(0)
    expect(errors).toEqual([])
  },
  testMs,
)
