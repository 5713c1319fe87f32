import type { KeyLevel } from '../../src/security/levels.ts'
import { disposable } from '../support/disposable.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { part } from '../support/source-system.ts'
import { startBrowser } from './browser.ts'
import { createCheck, openConsole, testMs } from './scene.ts'

const scene = share(await startScene())
const browser = share(disposable(await startBrowser(), (each) => each.close()))
const consoleUrl = `${scene.api.baseUrl}/console`

const createWorkspace = async () => {
  const workspace = await scene.workspace()
  return { ...workspace, open: (level: KeyLevel) => openConsole(browser, consoleUrl, workspace.keys[level]) }
}

const invoice = '{"invoice":{"number":4711,"total":119.00,"api_token":"canary-token"},"lines":[{"text":"Paper"},{"text":"Ink"}]}'
const orders =
  '<?xml version="1.0"?><ORDERS05><IDOC BEGIN="1"><E1EDK01><BELNR>4500012345</BELNR><password>canary-password</password></E1EDK01></IDOC></ORDERS05>'
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC',
  'base64',
)

test(
  'the screens of requests are legible, accessible and without errors',
  async () => {
    const { source, captureOf, keys } = await createWorkspace()
    const type = (contentType: string) => ({ headers: { 'content-type': contentType } })
    const json = await captureOf(
      await source.create('INVOICE4711', invoice, { headers: { 'content-type': 'application/json', authorization: 'Basic canary' } }),
    )
    const xml = await captureOf(await source.create('ORDER4711', orders, type('application/xml')))
    const image = await captureOf(await source.create('SCAN4711', png, type('image/png')))
    const binary = await captureOf(await source.create('DRAWING4711', Buffer.from([...Array(600).keys()]), type('application/acad')))
    const parts = await captureOf(
      await source.createParts('PARTS4711', [part('data', 'the text', 'text/plain'), part('note', Buffer.from([0, 1, 255]))]),
    )
    const refused = await captureOf(await source.get('UNKNOWN', '&compId=data&secKey=canary'))
    const problems = await createCheck(browser)(consoleUrl, keys.admin, [
      ['requests', '/requests', 'td a[href^=requests]'],
      ['requests-filtered', '/requests?status_class=4xx&method=GET&repo_id=Z1', 'td a[href^=requests]'],
      ['requests-none', '/requests?doc_id=nothing', '.empty'],
      ['request-json', `/requests/${json.id}`, 'pre'],
      ['request-xml', `/requests/${xml.id}`, 'pre'],
      ['request-image', `/requests/${image.id}`, 'img.preview'],
      ['request-binary', `/requests/${binary.id}`, '.hex'],
      ['request-parts', `/requests/${parts.id}`, '.part .hex'],
      ['request-refused', `/requests/${refused.id}`, '.redacted'],
    ])
    expect(problems).toEqual([])
  },
  testMs,
)

test(
  'an administrator finds a request, reads it without its secrets, and replays it',
  async () => {
    const { source, captureOf, ask, open } = await createWorkspace()
    const [document] = (await captureOf(await source.create('INVOICE4711', 'hello', { headers: { 'content-type': 'text/plain' } })))
      .document_ids
    const secret = await captureOf(
      await source.create('INVOICE4712', invoice, { headers: { 'content-type': 'application/json', 'x-api-key': 'canary-key' } }),
    )
    await captureOf(await source.get('OTHER'))
    await source.delete('INVOICE4711')

    const { page, errors } = await open('admin')
    // The list is drawn after the text has been typed, which must stay.
    const typed = Promise.withResolvers<void>()
    await page.route('**/requests?*', async (route) => {
      await typed.promise
      await route.continue()
    })
    await page.getByRole('link', { name: 'Requests' }).click()
    await page.getByLabel('Document id (docId), complete').fill('INVOICE4711')
    typed.resolve()
    await page.getByRole('link', { name: 'GET get' }).waitFor()
    await page.keyboard.press('Enter')
    await page.waitForURL(/doc_id=INVOICE4711/)
    await page.getByLabel('Answer').selectOption('201')
    await page.waitForURL(/status_code=201/)
    await page.getByRole('link', { name: 'PUT create' }).click()
    await page.locator('pre', { hasText: 'hello' }).waitFor()
    expect(await page.getByRole('link', { name: document }).getAttribute('href')).toBe(`documents/${document}`)
    await page.getByRole('table', { name: 'Query' }).getByRole('row', { name: 'docId INVOICE4711' }).waitFor()

    await page.getByRole('button', { name: 'Replay' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('with the same bytes, URL, headers and source address').waitFor()
    await dialog.getByRole('button', { name: 'Replay' }).click()
    await page.locator('.notice', { hasText: 'The request has been replayed.' }).waitFor()
    const replayId = page.url().split('/').at(-1)!
    const replayed = (await ask('GET', `/requests/${replayId}`)).json.data.attributes
    expect(replayed).toMatchObject({ status_code: 201, document_ids: [expect.any(String)] })
    expect(replayed.document_ids).not.toEqual([document])
    await page.getByRole('link', { name: replayed.document_ids[0] }).waitFor()
    // The document exists now. The replay of the replay is refused, and nothing says that it has succeeded.
    await page.getByRole('button', { name: 'Replay' }).click()
    await dialog.getByRole('button', { name: 'Replay' }).click()
    await page.locator('.notice.bad', { hasText: 'The replay was answered with 403' }).waitFor()
    await page.locator('.notice.warn', { hasText: 'document_exists' }).getByText('Nothing: the first document is stored.').waitFor()
    expect(await page.locator('.notice.good').count()).toBe(0)

    await page.getByRole('link', { name: 'Requests', exact: true }).click()
    await page.getByLabel('Error').selectOption('document_not_found')
    await page.waitForURL(/error_code=document_not_found/)
    await page.locator('td', { hasText: '404' }).locator('code', { hasText: 'document_not_found' }).waitFor()
    await page.locator('tbody tr').nth(1).waitFor({ state: 'detached' })

    await page.goto(`${consoleUrl}/requests/${secret.id}`)
    await page.locator('pre mark', { hasText: 'removed' }).waitFor()
    await page.getByText('"number": 4711').waitFor()
    expect(await page.content()).not.toContain('canary')
    // As of a document that is discarded: parts of its body are gone, so the relay refuses to replay it, and the dialog says why.
    await scene.db('captured_bodies').where({ request_id: secret.id }).update({ pieces: null })
    await page.getByRole('button', { name: 'Replay' }).click()
    await dialog.getByRole('button', { name: 'Replay' }).click()
    await dialog.getByText('parts of its body were redacted').waitFor()
    expect(errors.filter((error) => !error.includes('status of 409'))).toEqual([])
  },
  testMs,
)

test(
  'a body that is no longer stored is said to be gone, and a viewer cannot replay',
  async () => {
    const { source, captureOf, open } = await createWorkspace()
    const { id } = await captureOf(await source.create('INVOICE4711', 'hello', { headers: { 'content-type': 'text/plain' } }))
    await scene.db('captured_bodies').where({ request_id: id }).delete()
    const { page, errors } = await open('viewer')
    await page.goto(`${consoleUrl}/requests/${id}`)
    await page.getByText('The body is no longer stored.').waitFor()
    expect(await page.getByRole('button', { name: 'Replay' }).count()).toBe(0)
    expect(errors.filter((error) => !error.includes('status of 404'))).toEqual([])
  },
  testMs,
)
