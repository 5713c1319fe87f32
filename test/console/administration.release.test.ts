import { newId } from '../../src/base/ids.ts'
import { disposable } from '../support/disposable.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { insertManifest } from '../support/manifest.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'
import { goTo, openAccount, startBrowser, takeScreenshot } from './browser.ts'
import { createCheck, openConsole, testMs } from './scene.ts'

const { api, database } = share(await startScene())
const target = share(await startHttpTarget())
const browser = share(disposable(await startBrowser(), (each) => each.close()))
const consoleUrl = `${api.baseUrl}/console`

let workspaces = 0
/** Creates a workspace with a destination that notices can be sent to. */
const createWorkspace = async () => {
  workspaces += 1
  const tenant = await api.tenant(`acme/administration-${workspaces}`)
  const webhook = await tenant.call('POST', '/destinations', {
    name: 'On call',
    connector_type: 'webhook',
    config: { url: 'https://ops.example/hook' },
    credentials: {},
  })
  const open = (level: 'viewer' | 'member' | 'admin', locale = 'en-GB') => openConsole(browser, consoleUrl, tenant.keys[level], { locale })
  return { ...tenant, destinationId: webhook.json.data.id as string, open }
}
type Workspace = Awaited<ReturnType<typeof createWorkspace>>

/** Records that a destination has got a manifest, without its time stamp. */
const insertCopy = ({ id, destinationId }: Workspace, day: string) =>
  database.db('manifest_copies').insert({ workspace_id: id, destination_id: destinationId, day, has_stamp: false })

const createNotification = async ({ call, destinationId }: Workspace, name = 'Night shift'): Promise<string> => {
  const body = { name, events: ['delivery.failed', 'source.silent'], destination_id: destinationId }
  return (await call('POST', '/notifications', body)).json.data.id
}

const createSubscription = async ({ call, destinationId }: Workspace): Promise<string> => {
  const body = { name: 'Data warehouse', events: ['document.delivered', 'document.failed'], destination_id: destinationId }
  return (await call('POST', '/event-subscriptions', body)).json.data.id
}

/** Records that a notification has announced an incident, and that its destination refuses the notice. */
const announce = async ({ id: workspaceId }: Workspace, notificationId: string): Promise<void> => {
  const { db } = database
  const incidentId = newId()
  const at = new Date()
  const workspace = { workspace_id: workspaceId }
  const incident = { id: incidentId, ...workspace, event: 'delivery.failed', subject: 'Archive', count: 3, details: '{}' }
  await db('incidents').insert({ ...incident, opened_at: at, last_seen_at: at })
  const data = {
    workspace: 'acme/prod',
    incident_id: incidentId,
    summary: '3 deliveries to destination Archive failed.',
    opened_at: at.toISOString(),
    count: 3,
    document: { id: newId(), repo_id: 'Z1', doc_id: 'D1', comp_id: 'data' },
  }
  await db('notices').insert({
    id: newId(),
    ...workspace,
    notification_id: notificationId,
    incident_id: incidentId,
    transition: 'opened',
    data: JSON.stringify(data),
    status: 'failed',
    attempts: 4,
    last_error: 'HTTP 410: the channel is gone',
    last_error_code: 'http_410',
    created_at: at,
  })
}

test(
  'the screens of the administration are legible, accessible and without errors',
  async () => {
    const workspace = await createWorkspace()
    const { call, keys, destinationId } = workspace
    const notificationId = await createNotification(workspace)
    await announce(workspace, notificationId)
    const day = await insertManifest(database.db, workspace.id)
    await insertCopy(workspace, day)
    const subscriptionId = await createSubscription(workspace)
    await database.db('event_subscriptions').update({
      attempts: 4,
      failing_since: new Date(Date.now() - 3_600_000),
      next_attempt_at: new Date(Date.now() + 60_000),
      last_error: 'the target answered 503 Service Unavailable',
      last_error_code: 'http_503',
    })
    await call('POST', '/legal-holds', { erp_object_type: 'BKPF', erp_object_id: '100019000047112026', reason: 'Tax audit 2026' })
    await call('POST', '/api-keys', { name: 'Archiving program', level: 'member', expires_at: '2099-12-31T00:00:00Z' })
    await call('PATCH', '/settings', {
      max_retries: 3,
      content_days: 90,
      rfc: {
        url: 'https://erp.example',
        client: '100',
        allowed_functions: ['Z_ARCHIVE_INSERT'],
        credentials: { user: 'RELAY', password: 'canary' },
      },
    })
    await call('PATCH', `/destinations/${destinationId}`, { config: { url: 'https://ops.example/other' }, credentials: {} })
    const problems = await createCheck(browser, { includesSignIn: true })(consoleUrl, keys.admin, [
      ['audit', '/audit', `section:has-text("Manifests of days") a[download][href$="/manifests/${day}/timestamp"]`],
      ['audit-none', '/audit?event_prefix=cert.', '.empty'],
      ['keys', '/keys', 'td button'],
      ['holds', '/holds', 'td button'],
      ['hold-new', '/holds?erp_object_type=BKPF&erp_object_id=4711', '#reason'],
      ['settings', '/settings', '#max_retries'],
      ['notifications', '/notifications', 'td a[href^=notifications]'],
      // The notice is about another workspace, as in that of the operator.
      ['notification', `/notifications/${notificationId}`, 'td a[href$="workspace=acme%2Fprod"]'],
      ['notification-new', '/notifications/new', '#name'],
      ['subscriptions', '/subscriptions', 'td a[href^=subscriptions]'],
      ['subscription', `/subscriptions/${subscriptionId}`, '.facts'],
      ['subscription-new', '/subscriptions/new', '#name'],
    ])
    expect(problems).toEqual([])
  },
  testMs,
)

test(
  'each manifest names the destinations that have a copy, and says which copy lacks the time stamp',
  async () => {
    const workspace = await createWorkspace()
    const { id, destinationId, open } = workspace
    const [without, copied] = [await insertManifest(database.db, id), await insertManifest(database.db, id)]
    await insertCopy(workspace, copied)
    const { page, errors } = await open('admin')
    await goTo(page, '/console/audit')
    const copiesOf = (day: string) => page.locator('section:has-text("Manifests of days") tr', { hasText: day }).getByRole('cell').last()
    await copiesOf(copied).getByText('without time stamp').waitFor()
    expect(await copiesOf(copied).getByRole('link', { name: 'On call' }).getAttribute('href')).toBe(`destinations/${destinationId}`)
    expect(await copiesOf(without).innerText()).toBe('–')
    await database.db('manifest_copies').update({ has_stamp: true })
    await page.reload()
    await copiesOf(copied).getByRole('link', { name: 'On call' }).waitFor()
    expect(await copiesOf(copied).innerText()).not.toContain('stamp')
    expect(errors).toEqual([])
  },
  testMs,
)

test(
  'settings out of their bounds are not sent, the others are saved, and nobody overwrites what somebody else has saved',
  async () => {
    const { call, open } = await createWorkspace()
    const settings = async () => (await call('GET', '/settings')).json.data.attributes
    const { page, errors } = await open('admin')
    await page.getByRole('link', { name: 'Administration' }).click()
    await page.getByLabel('Attempts after the first one').fill('101')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.locator('.problem', { hasText: 'Enter a number from 0 to 100.' }).waitFor()
    await page.locator('#max_retries:focus').waitFor()
    expect((await settings()).max_retries).toBe(10)

    await page.getByLabel('Attempts after the first one').fill('4')
    await page.getByLabel('Content of settled documents').fill('90')
    await page.getByLabel('Allowed addresses').fill('10.0.0.0/8\nnonsense')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.locator('.problem', { hasText: 'must be an address range' }).waitFor()
    await page.getByLabel('Allowed addresses').fill('10.0.0.0/8')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.', { exact: true }).first().waitFor()
    // The form comes back when it has loaded what was saved.
    await page.locator('#max_retries').waitFor()
    expect(await settings()).toMatchObject({ max_retries: 4, content_days: 90, receiver_allowed_cidrs: ['10.0.0.0/8'] })

    await call('PATCH', '/settings', { max_retries: 7 })
    await page.getByLabel('Attempts after the first one').fill('5')
    // A page that was hidden loads everything again. The form refers to what it has shown.
    const loaded = page.waitForResponse((response) => response.url().endsWith('/settings'))
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await loaded
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Somebody else has saved other values meanwhile.').waitFor()
    expect((await settings()).max_retries).toBe(7)
    await page.getByRole('button', { name: 'Load the current values' }).click()
    await until('the current value is shown', async () => (await page.getByLabel('Attempts after the first one').inputValue()) === '7')

    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Nothing has been changed.').waitFor()

    await page.getByRole('link', { name: 'Audit log' }).click()
    await page.locator('.changes li', { hasText: 'max_retries' }).filter({ hasText: '10' }).filter({ hasText: '4' }).waitFor()
    await page.getByLabel('Event').selectOption({ label: 'Settings changed' })
    await page.waitForURL(/event=settings.updated/)
    const csv = await page.evaluate<string>('fetch(document.querySelector("a[download]").href).then((answer) => answer.text())')
    expect(csv.trim().split('\r\n').slice(1)).toHaveLength(2)
    expect(csv).not.toContain('destination.created')
    expect(errors.filter((error) => !/status of (412|422)/.test(error))).toEqual([])
  },
  testMs,
)

test(
  'in German, the errors of the relay are German sentences, and what the relay says beyond them is marked as English',
  async () => {
    const { call, open } = await createWorkspace()
    await call('POST', '/repositories', { repo_id: 'Z1', name: 'Invoices' })
    const { page } = await open('admin', 'de-DE')
    await page.getByRole('link', { name: 'Verwaltung' }).click()
    await page.getByLabel('Erlaubte Adressen').fill('nonsense')
    await page.getByRole('button', { name: 'Speichern' }).click()
    await page.locator('.problem[lang=en]', { hasText: 'must be an address range' }).waitFor()
    const alert = page.getByRole('alert')
    await alert.getByText('Einige Werte sind ungültig. Was falsch ist, steht bei den Feldern.').waitFor()
    expect(await alert.locator('[lang=en]').count()).toBe(0)
    await takeScreenshot(page, 'settings-refused-german')

    await page.goto(`${consoleUrl}/repositories/new`)
    await page.getByRole('button', { name: 'Repository anlegen' }).click()
    await page.locator('#repo_id:focus').waitFor()
    // What the form finds by itself, it says in German.
    expect(await page.locator('.problem').allInnerTexts()).toEqual(['Geben Sie einen Wert ein.', 'Geben Sie einen Wert ein.'])
    expect(await page.locator('.problem[lang]').count()).toBe(0)
    await page.locator('#repo_id').fill('Z1')
    await page.locator('#name').fill('Invoices')
    await page.getByRole('button', { name: 'Repository anlegen' }).click()
    await alert.getByText('Der aktuelle Zustand lässt das nicht zu.').waitFor()
    expect(await alert.locator('[lang=en]').innerText()).toBe('This workspace already has a repository with repo_id Z1.')
    await takeScreenshot(page, 'repository-refused-german')
    await openAccount(page)
    await page.getByLabel('Sprache').selectOption({ label: 'English' })
    await alert.getByText('This workspace already has a repository with repo_id Z1.').waitFor()
    expect(await alert.getByText('Zustand').count()).toBe(0)
    await page.getByLabel('Language').selectOption({ label: 'Deutsch' })

    await page.goto(`${consoleUrl}/destinations/01ARZ3NDEKTSV4RRFFQ69G5FAV`)
    await alert.getByText('Nicht vorhanden oder gelöscht.').waitFor()
    expect(await alert.locator('[lang=en]').count()).toBe(0)
  },
  testMs,
)

test(
  'a key is created, shown once and works, until it is revoked; the key of the session warns',
  async () => {
    const { path, open } = await createWorkspace()
    const { page, errors } = await open('admin')
    await page.getByRole('link', { name: 'Administration' }).click()
    await page.getByRole('link', { name: 'Keys' }).click()
    await page.getByRole('button', { name: 'Create a key' }).click()
    await page.getByLabel('Name').fill('Archiving program')
    await page.getByLabel('Level').selectOption('member')
    await page.getByLabel('Valid until').fill('2099-12-31')
    await page.getByRole('button', { name: 'Create a key' }).click()
    const key = (await page.locator('.new-key .mono').textContent())!
    const status = async () => (await api.call('GET', `${path}/documents`, { key })).status
    expect(await status()).toBe(200)
    await page.getByRole('button', { name: 'I have stored it' }).click()
    await page
      .getByRole('row', { name: /Archiving program/ })
      .getByText('Member', { exact: true })
      .waitFor()
    await page.reload()
    await page.getByRole('row', { name: /Archiving program/ }).waitFor()
    expect(await page.content()).not.toContain(key)

    await page.getByRole('button', { name: 'Revoke the key Archiving program' }).click()
    const dialog = page.getByRole('dialog')
    expect(await dialog.getByText('You are signed in with this key').count()).toBe(0)
    await dialog.getByRole('button', { name: 'Revoke' }).click()
    await page.getByRole('row', { name: /Archiving program/ }).waitFor({ state: 'detached' })
    expect(await status()).toBe(401)

    await page
      .getByRole('row', { name: /This session/ })
      .getByRole('button')
      .click()
    await dialog.getByText('You are signed in with this key').waitFor()
    await dialog.getByRole('button', { name: 'Revoke' }).click()
    await page.getByText('The session has ended.').waitFor()
    expect(errors.filter((error) => !error.includes('status of 401'))).toEqual([])
  },
  testMs,
)

test(
  'a legal hold is set with a reason, shown, and lifted with another one',
  async () => {
    const { call, open } = await createWorkspace()
    const holds = async () => (await call('GET', '/legal-holds')).json.data.map(({ attributes }: { attributes: object }) => attributes)
    const { page, errors } = await open('admin')
    await page.goto(`${consoleUrl}/holds?erp_object_type=BKPF&erp_object_id=4711`)
    await page.getByLabel('Reason').fill('Tax audit 2026')
    await page.getByRole('button', { name: 'Set a hold' }).click()
    await page.getByRole('cell', { name: 'Tax audit 2026' }).waitFor()
    expect(await holds()).toMatchObject([{ erp_object_type: 'BKPF', erp_object_id: '4711', reason: 'Tax audit 2026' }])

    await page.getByRole('button', { name: 'Lift the hold on Business object BKPF 4711' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Lift' }).click()
    await dialog.locator('.notice').waitFor()
    await dialog.getByLabel('Reason').fill('The audit has ended')
    await dialog.getByRole('button', { name: 'Lift' }).click()
    await page.getByText('Nothing is on hold.').waitFor()
    expect(await holds()).toEqual([])
    expect(errors.filter((error) => !/status of 422/.test(error))).toEqual([])
  },
  testMs,
)

test(
  'a notification is created, changed and deleted',
  async () => {
    const { call, destinationId, open } = await createWorkspace()
    const { page, errors } = await open('admin')
    await page.getByRole('link', { name: 'Notifications' }).click()
    await page.getByRole('link', { name: 'Create a notification' }).click()
    await page.getByLabel('Name').fill('Night shift')
    await page.getByLabel('Source system silent').uncheck()
    await page.getByLabel('Quiet time').fill('604801')
    await page.getByLabel('Destination', { exact: true }).selectOption({ label: 'On call' })
    await page.getByRole('button', { name: 'Create a notification' }).click()
    await page.getByText('Enter a number from 0 to 604,800.').waitFor()
    await page.getByLabel('Quiet time').fill('60')
    await page.getByLabel('Silence of a source').fill('48')
    await page.getByRole('button', { name: 'Create a notification' }).click()
    await page.getByText('Nothing has been announced yet.').waitFor()
    const list = async () => (await call('GET', '/notifications')).json.data
    const [created] = await list()
    expect(created.attributes).toMatchObject({ name: 'Night shift', destination_id: destinationId, quiet_seconds: 60, silence_hours: 48 })
    expect(created.attributes.events).not.toContain('source.silent')

    target.answerWith((_, response) => void response.writeHead(403).end())
    await call('PATCH', `/destinations/${destinationId}`, { config: { url: `${target.origin}/hook` }, credentials: {} })
    await page.getByRole('button', { name: 'Send a test' }).click()
    await page.getByText('the target answered 403 Forbidden').waitFor()
    target.answerWith((_, response) => void response.end())
    await page.getByRole('button', { name: 'Send a test' }).click()
    await page.getByText('Destination On call has accepted the test message.').waitFor()
    await takeScreenshot(page, 'notification-tested')

    await page.getByRole('button', { name: 'Edit' }).click()
    await page.getByLabel('Active').uncheck()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.locator('header .badge', { hasText: 'Switched off' }).waitFor()
    expect((await list())[0].attributes).toMatchObject({ name: 'Night shift', is_active: false, quiet_seconds: 60 })

    await page.getByRole('button', { name: 'Delete' }).click()
    const asked: string[] = []
    page.on('request', (request) => asked.push(`${request.method()} ${new URL(request.url()).pathname}`))
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('No notification has been created yet.').waitFor()
    expect(await list()).toEqual([])
    // What the page showed is not asked for again, because it no longer exists.
    const sinceDeletion = asked.slice(asked.findIndex((request) => request.startsWith('DELETE ')))
    expect(sinceDeletion.filter((request) => request.includes(created.id))).toEqual([expect.stringMatching(/^DELETE /)])
    expect(errors).toEqual([])
  },
  testMs,
)

test(
  'a subscription is created, sent again from its beginning, changed and deleted',
  async () => {
    const { call, open } = await createWorkspace()
    const { page, errors } = await open('admin')
    await page.getByRole('link', { name: 'Notifications' }).click()
    await page.getByRole('link', { name: 'Subscriptions' }).click()
    await page.getByText('No subscription has been created yet.').waitFor()
    await page.getByRole('link', { name: 'Create a subscription' }).click()
    await page.getByLabel('Name', { exact: true }).fill('Data warehouse')
    await page.getByLabel('Document received').check()
    await page.getByLabel('Destination', { exact: true }).selectOption({ label: 'On call' })
    await page.getByRole('button', { name: 'Create a subscription' }).click()
    await page.getByText('Everything was sent').waitFor()
    const list = async () => (await call('GET', '/event-subscriptions')).json.data
    const [created] = await list()
    expect(created.attributes).toMatchObject({
      name: 'Data warehouse',
      events: expect.arrayContaining(['document.received', 'document.delivered', 'document.failed']),
    })

    await page.getByRole('button', { name: 'Send again' }).click()
    await page.getByLabel('Cursor').fill('nonsense')
    await page.locator('form').getByRole('button', { name: 'Send again' }).click()
    await page.locator('.problem', { hasText: 'must be the id of an event' }).waitFor()
    await page.getByLabel('Cursor').fill('')
    await page.locator('form').getByRole('button', { name: 'Send again' }).click()
    await page.getByText('The subscription was set to that place.').first().waitFor()
    expect((await list())[0].attributes.cursor).toBe('0'.repeat(37))

    await page.getByRole('button', { name: 'Edit' }).click()
    await page.getByLabel('Active').uncheck()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.locator('header .badge', { hasText: 'Switched off' }).waitFor()
    await takeScreenshot(page, 'subscription-switched-off')
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('No subscription has been created yet.').waitFor()
    expect(await list()).toEqual([])
    expect(errors.filter((error) => !/status of 4(00|22)/.test(error))).toEqual([])
  },
  testMs,
)

test(
  'a viewer reads settings, notifications and the audit log, changes nothing and sees no keys',
  async () => {
    const workspace = await createWorkspace()
    const notificationId = await createNotification(workspace)
    const { page, errors } = await workspace.open('viewer')
    const entries = page.getByRole('navigation', { name: 'Screens' }).getByRole('link')
    expect(await entries.allTextContents()).toEqual(['Overview', 'Documents', 'Needs attention', 'Requests'])
    for (const [path, shows] of [
      ['/settings', 'dt'],
      ['/notifications', 'td a[href^=notifications]'],
      [`/notifications/${notificationId}`, '.facts'],
      ['/audit', 'td:has-text("Key admin key")'],
    ] as const) {
      await page.goto(consoleUrl + path)
      await page.locator(shows).first().waitFor()
      expect(await page.getByRole('link', { name: 'Keys' }).count()).toBe(0)
      const buttons = page.locator('main').getByRole('button')
      const links = page.locator('main').getByRole('link', { name: /create/i })
      expect((await buttons.filter({ hasNotText: 'Find' }).count()) + (await links.count())).toBe(0)
    }
    // A click on a name finds what else its key has changed.
    await page.goto(`${consoleUrl}/audit`)
    await page.getByRole('link', { name: 'Key admin key' }).first().click()
    await page.waitForURL(/[?&]actor=admin(\+|%20)key/)
    expect(await page.getByLabel('Who').inputValue()).toBe('admin key')
    await page.getByLabel('Who').fill('nobody')
    await page.getByLabel('Who').press('Enter')
    await page.getByText('No entry matches the filters.').waitFor()
    await page.goto(`${consoleUrl}/keys`)
    await page.getByText('Only keys of the level Administrator show this screen.').waitFor()
    expect(errors.filter((error) => !error.includes('status of 403'))).toEqual([])
  },
  testMs,
)
