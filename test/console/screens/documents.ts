import { apiKeyParts } from '../../support/api-key.ts'
import { until } from '../../support/until.ts'
import { openAccount, openPage, takeScreenshot } from '../browser.ts'
import { startConsole, testMs, unknownObject } from '../scene.ts'

const { relay, browser, createScene, checkScreens } = await startConsole()

test(
  'every screen is legible, accessible and without errors: light and dark, wide and narrow, German and English',
  async () => {
    await relay.run(async (running) => {
      // No retry falls due while the screens are looked at.
      const scene = await createScene(running, { retry_initial_interval_seconds: 3_600 })
      const { routes, keys, consoleUrl } = scene
      scene.workflow.answerWith((_, response) => {
        response.statusCode = 404
        response.end('{"error":"There is no inbox with this name"}')
      })
      const failed = await routes.receive('{"invoice":4711,"amount":"119.00 EUR"}', 'FA163E4C0E1B1EDBA9D7C3F0A1B24711')
      await until('the document has failed', async () => (await failed.status()) === 'failed')
      scene.mail.answerWith((_, response) => {
        response.statusCode = 503
        response.end('Try again later')
      })
      const retrying = await routes.receive('hello', 'FA163E4C0E1B1EDBA9D7C3F0A1B24712')
      await until('a delivery is retried', async () => (await retrying.deliveries())['Mail room']!.status === 'retrying')
      scene.mail.answerWith((_, response) => void response.end('ok'))
      scene.workflow.answerWith((_, response) => void response.end('ok'))
      const delivered = await routes.receive('hello', 'FA163E4C0E1B1EDBA9D7C3F0A1B24713')
      await until('the document has arrived', async () => (await delivered.status()) === 'delivered')

      const objects = { FA163E4C0E1B1EDBA9D7C3F0A1B24711: '100019000047112026', FA163E4C0E1B1EDBA9D7C3F0A1B24712: '200019000047112025' }
      for (const [docId, key] of Object.entries(objects)) {
        await routes.call('PUT', `/documents/by-doc-id/Z1/${docId}/metadata`, { erp_object_type: 'BKPF', erp_object_id: key })
      }

      const problems = await checkScreens(consoleUrl, keys.member, [
        ['documents', '/documents', 'td a'],
        ['documents-marked', '/documents?q=4711+2026', 'td mark'],
        ['documents-found', '/documents?q=FA163E&delivery_status=failed', 'td a'],
        ['documents-filtered', '/documents?status=discarded', '.empty'],
        ['document-failed', `/documents/${failed.id}`, '.verdict.bad'],
        ['document-retrying', `/documents/${retrying.id}`, '.timeline .next'],
        ['document-delivered', `/documents/${delivered.id}`, '.timeline .arrived'],
        ['document-unknown', '/documents/01ARZ3NDEKTSV4RRFFQ69G5FAV', unknownObject],
        ['destinations', '/destinations', 'td a'],
        ['destination', `/destinations/${routes.destinations['Approval workflow']}`, '.facts'],
        ['unknown', '/nothing/here', 'main p a'],
      ])
      expect(problems).toEqual([])
    })
  },
  testMs,
)

test(
  'an operator signs in, finds a failed document, reads why, retries it and watches it arrive',
  async () => {
    await relay.run(async (running) => {
      const scene = await createScene(running)
      scene.workflow.answerWith((_, response) => {
        response.statusCode = 404
        response.end('There is no such inbox')
      })
      const document = await scene.routes.receive('hello', 'INVOICE4711')
      await until('the document has failed', async () => (await document.status()) === 'failed')
      const known = { erp_object_type: 'BKPF', erp_object_id: '1000-1900004711-2026' }
      await scene.routes.call('PUT', '/documents/by-doc-id/Z1/INVOICE4711/metadata', known)

      const { page, errors } = await scene.open('member')
      await page.getByRole('link', { name: 'Documents', exact: true }).click()
      await page.getByLabel('Document id or business key').fill('invoice')
      await page.keyboard.press('Enter')
      await page.waitForURL(/q=invoice/)
      await page.getByLabel('Status').selectOption({ label: 'Failed' })
      await page.waitForURL(/q=invoice&status=failed/)
      const object = 'Invoice 1900004711, company 1000, 2026'
      // The text of the row, and the key on the page of the document, find the document.
      await page.getByRole('link', { name: object }).click()
      await page.getByRole('heading', { name: object, level: 1 }).waitFor()
      for (const text of [object, `${known.erp_object_type} ${known.erp_object_id}`]) {
        await page.getByText(text).first().waitFor()
        await page.getByRole('link', { name: 'Documents', exact: true }).click()
        await page.getByLabel('Document id or business key').fill(text)
        await page.keyboard.press('Enter')
        await page.waitForURL(/q=/)
        await page.locator('td a mark').first().waitFor()
        expect(await page.locator('td a mark').allInnerTexts()).toEqual(['1900004711', '1000', '2026'])
        await page.getByRole('link', { name: object }).click()
      }
      expect(await page.locator('.verdict').innerText()).toMatch(
        /^2 of 3 destinations have it\. Approval workflow failed .+: the target answered 404 Not Found\.$/,
      )
      const delivery = page.getByRole('region', { name: 'Approval workflow' })
      await delivery.getByText('http_404').first().waitFor()
      await delivery.getByText('What to do:').waitFor()
      await delivery.getByText('There is no such inbox').first().waitFor()
      expect(await page.getByRole('link', { name: 'Workflow in Temporal' }).getAttribute('href')).toBe(
        `https://temporal.example/ui/namespaces/default/workflows/${encodeURIComponent(document.handle().workflowId)}`,
      )

      scene.workflow.answerWith((_, response) => void response.end('ok'))
      await delivery.getByRole('button', { name: 'Retry the delivery to Approval workflow' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Retry' }).click()
      await delivery.getByText('Delivered').first().waitFor()
      await page.locator('main header .badge', { hasText: 'Delivered' }).first().waitFor()
      expect(await document.status()).toBe('delivered')
      expect(scene.workflow.arrivals.at(-1)!.body.toString()).toBe('hello')

      await page.getByText('Preview').click()
      await page.locator('pre', { hasText: 'hello' }).waitFor()
      await openAccount(page)
      await page.getByRole('button', { name: 'Sign out' }).click()
      await page.getByRole('heading', { name: 'Sign in' }).waitFor()
      expect(await page.context().cookies()).toEqual([])
      expect(errors).toEqual([])
    })
  },
  testMs,
)

test(
  'an operator has the next attempt made now, instead of in an hour',
  async () => {
    await relay.run(async (running) => {
      const scene = await createScene(running, { retry_initial_interval_seconds: 3_600 })
      scene.mail.answerWith((_, response) => {
        response.statusCode = 503
        response.end('Try again later')
      })
      const document = await scene.routes.receive('hello', 'HASTENED1')
      await until('a delivery is retried', async () => (await document.deliveries())['Mail room']!.status === 'retrying')
      scene.mail.answerWith((_, response) => void response.end('ok'))
      const { page, errors } = await scene.open('member')
      await page.goto(`${scene.consoleUrl}/documents/${document.id}`)
      await page.locator('.verdict', { hasText: '2 of 3 destinations have it. Mail room waits for the next attempt.' }).waitFor()
      await page.getByRole('button', { name: 'Try now: Mail room' }).click()
      await page.locator('.verdict', { hasText: '3 of 3 destinations have it.' }).waitFor()
      expect(await document.status()).toBe('delivered')
      expect(errors).toEqual([])
    })
  },
  testMs,
)

test(
  'selected documents are retried together, and each row says what happened',
  async () => {
    await relay.run(async (running) => {
      const scene = await createScene(running)
      const failed = [await scene.receiveRefused('SELECTED1'), await scene.receiveRefused('SELECTED2')]
      scene.mail.answerWith((_, response) => void response.end('ok'))
      const arrived = await scene.routes.receive('hello', 'SELECTED3')
      await until('the document has arrived', async () => (await arrived.status()) === 'delivered')
      const { page, errors } = await scene.open('member')
      await page.getByRole('link', { name: 'Needs attention 2 documents' }).waitFor()
      await page.getByRole('link', { name: 'Documents', exact: true }).click()
      await page.getByRole('checkbox', { name: 'Select SELECTED1' }).focus()
      await page.keyboard.press('Space')
      await page.getByText('1 selected').waitFor()
      await page.getByRole('checkbox', { name: 'Select all documents of this page' }).check()
      await page.getByText('3 selected').waitFor()
      await takeScreenshot(page, 'documents-selected')
      await page.getByRole('button', { name: 'Retry selected' }).click()
      await page.getByText('Done for 2 of 3 documents.').waitFor()
      const outcome = (docId: string) => page.getByRole('row', { name: docId }).locator('.outcome').innerText()
      expect([await outcome('SELECTED1'), await outcome('SELECTED2')]).toEqual(['Retry started', 'Retry started'])
      expect(await outcome('SELECTED3')).not.toBe('Retry started')
      for (const document of failed) await until('the document has arrived', async () => (await document.status()) === 'delivered')
      await page.getByRole('link', { name: 'Needs attention', exact: true }).waitFor()
      // The refusal of the document that has arrived.
      expect(errors.filter((error) => !error.includes('status of 409'))).toEqual([])
    })
  },
  testMs,
)

test(
  'a viewer sees everything and can change nothing',
  async () => {
    await relay.run(async (running) => {
      const scene = await createScene(running)
      const document = await scene.receiveRefused()
      const { page, errors } = await scene.open('viewer')
      await openAccount(page)
      await page.getByText('Viewer: may read').waitFor()
      for (const path of [`/documents/${document.id}`, '/attention', `/destinations/${scene.routes.destinations['Mail room']}`]) {
        await page.goto(scene.consoleUrl + path)
        await page.locator('.facts').first().waitFor()
        expect(await page.getByRole('button', { name: /retry|test|try/i }).count()).toBe(0)
      }
      expect(errors).toEqual([])
    })
  },
  testMs,
)

test(
  'everything can be done with the keyboard, and the focus follows',
  async () => {
    await relay.run(async (running) => {
      const scene = await createScene(running)
      const document = await scene.receiveRefused('KEYBOARD1')
      const { page, errors } = await openPage(browser, { width: 1280, colorScheme: 'light', locale: 'en-GB' })
      const focused = () =>
        page.evaluate<string>('document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent.trim()')
      /** Presses Tab until the element with this name has the focus, and checks that the focus is visible on the way. */
      const tabTo = async (name: string) => {
        for (let presses = 0; presses < 60; presses += 1) {
          await page.keyboard.press('Tab')
          const [element, outline] = await page.evaluate<[string, string]>(
            '[document.activeElement.outerHTML.slice(0, 100), getComputedStyle(document.activeElement).outlineStyle]',
          )
          // After the last element of the page, the browser itself has the focus.
          if (!element.startsWith('<body')) expect({ element, outline }).not.toEqual({ element, outline: 'none' })
          if ((await focused()) === name) return
        }
        throw new Error(`Tab does not lead to ${name}`)
      }

      await page.goto(`${scene.consoleUrl}/documents`)
      await page.locator('#key:focus').waitFor()
      await page.keyboard.type(scene.keys.member)
      await page.keyboard.press('Enter')
      await page.getByRole('link', { name: 'KEYBOARD1' }).waitFor()
      await tabTo('Skip to the content')
      await page.keyboard.press('Enter')
      expect(await page.evaluate('document.activeElement.id')).toBe('main')
      await tabTo('KEYBOARD1')
      await page.keyboard.press('Enter')
      await page.locator('h1:focus', { hasText: 'KEYBOARD1' }).waitFor()
      // From every screen, / leads to the search.
      await page.keyboard.press('/')
      expect(await focused()).toBe('Find documents')
      await page.keyboard.type('board1/')
      await page.keyboard.press('Enter')
      await page.waitForURL(/\/documents\?q=board1%2F$/)
      await page.locator('h1:focus').waitFor()
      await page.keyboard.press('/')
      await page.keyboard.type('keyboard1')
      await page.keyboard.press('Enter')
      await page.waitForURL(/\/documents\?q=keyboard1$/)
      await page.getByRole('link', { name: 'KEYBOARD1' }).click()
      await page.locator('h1', { hasText: 'KEYBOARD1' }).waitFor()

      const retry = 'Retry the delivery to Mail room'
      await tabTo(retry)
      await page.keyboard.press('Enter')
      await page.getByRole('dialog').waitFor()
      // The dialog keeps the focus, and Escape closes it and gives the focus back.
      expect(await page.evaluate('document.activeElement.closest("dialog") !== null')).toBe(true)
      await page.keyboard.press('Escape')
      // By its tag: the role of a dialog ends when the browser hides it, and the page removes it a moment later.
      await page.locator('dialog').waitFor({ state: 'detached' })
      expect(await focused()).toBe(retry)
      scene.mail.answerWith((_, response) => void response.end('ok'))
      await page.keyboard.press('Enter')
      await page.getByRole('dialog').waitFor()
      await tabTo('Retry')
      await page.keyboard.press('Enter')
      await until('the document has arrived', async () => (await document.status()) === 'delivered')
      await page.goBack()
      await page.getByRole('link', { name: 'KEYBOARD1' }).waitFor()
      expect(errors).toEqual([])
    })
  },
  testMs,
)

/** Types into the search field as soon as it exists, before the browser has drawn it. */
const typeAtOnce = `new MutationObserver((_, observer) => {
  const field = document.querySelector('main input[type=search]')
  if (!field) return
  observer.disconnect()
  field.focus()
  document.execCommand('insertText', false, 'invoice')
}).observe(document, { childList: true, subtree: true })`

test(
  'a field that is used as soon as it is shown keeps its text and the focus',
  async () => {
    await relay.run(async (running) => {
      const { page, errors } = await (await createScene(running)).open('member')
      await page.evaluate(typeAtOnce)
      await page.getByRole('link', { name: 'Documents', exact: true }).click()
      await page.locator('.loading').waitFor({ state: 'detached' })
      // Later effects of the screen have run after two frames.
      await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(drawn, 200))))')
      const field = page.getByLabel('Document id or business key')
      expect(await field.inputValue()).toBe('invoice')
      expect(await page.evaluate('document.activeElement.type')).toBe('search')
      await page.keyboard.press('Enter')
      await page.waitForURL(/q=invoice/)
      expect(errors).toEqual([])
    })
  },
  testMs,
)

test(
  'the language and the appearance can be chosen, and are kept',
  async () => {
    await relay.run(async (running) => {
      const { consoleUrl } = await createScene(running)
      const { page, errors } = await openPage(browser, { width: 1280, colorScheme: 'light', locale: 'fr-FR' })
      await page.goto(consoleUrl)
      await page.getByRole('heading', { name: 'Sign in' }).waitFor()
      const background = () => page.evaluate<string>('getComputedStyle(document.body).backgroundColor')
      const light = await background()
      await page.getByLabel('Appearance').selectOption({ label: 'Dark' })
      await page.getByLabel('Language').selectOption({ label: 'Deutsch' })
      await page.getByRole('heading', { name: 'Anmelden' }).waitFor()
      await page.reload()
      await page.getByRole('heading', { name: 'Anmelden' }).waitFor()
      expect(await page.evaluate('document.documentElement.lang')).toBe('de')
      expect(await background()).not.toBe(light)
      expect(errors).toEqual([])
    })
  },
  testMs,
)

test(
  'a session that has ended leads to the sign-in, and from there back to the same screen',
  async () => {
    await relay.run(async (running) => {
      const scene = await createScene(running)
      const { page } = await scene.open('member')
      await page.getByRole('link', { name: 'Destinations' }).click()
      await page.getByRole('link', { name: 'Archive' }).waitFor()
      const revoked = apiKeyParts(scene.keys.member).id
      await relay.db('api_keys').where({ id: revoked }).update({ revoked_at: new Date() })
      await page.getByText('The session has ended.').waitFor()
      await page.locator('#key').fill('relay_wrong')
      await page.keyboard.press('Enter')
      await page.getByText('This key is not valid.').waitFor()
      await page.locator('#key').fill(scene.keys.admin)
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'Destinations' }).waitFor()
      expect(new URL(page.url()).pathname).toBe('/console/destinations')
    })
  },
  testMs,
)
