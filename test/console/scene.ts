import type { Browser, Page } from 'playwright-core'
import type { KeyLevel } from '../../src/security/levels.ts'
import { isFullRun } from '../support/full-run.ts'
import { startHttpTarget, type HttpTarget } from '../support/http-target.ts'
import { startRelay, type Running } from '../support/relay.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { until } from '../support/until.ts'
import { goTo, openPage, overflowOf, startBrowser, takeScreenshot, violationsOf, type View } from './browser.ts'

// A limit for a busy machine. An idle one takes 40 seconds for all screens, and a few seconds for each of the other tests.
export const testMs = 600_000

const views: View[] = [
  { width: 1280, colorScheme: 'light', locale: 'en-GB' },
  { width: 375, colorScheme: 'dark', locale: 'de-DE' },
  { width: 1280, colorScheme: 'dark', locale: 'de-DE' },
  { width: 375, colorScheme: 'light', locale: 'en-GB' },
  { width: 1920, colorScheme: 'light', locale: 'de-DE' },
]
const usualViews = views.slice(0, 2)

/** A screen to look at: a name for its picture, its path below the console, and a selector of what it shows when it is complete. */
export type ScreenCheck = [name: string, path: string, shows: string]

/** What a screen shows in place of an object that does not exist. A screen that could not be loaded also has a notice. */
export const unknownObject = '.notice.bad :text-matches("^(It does not exist|Nicht vorhanden)")'

const start = async () => {
  const env = await startTemporalServer()
  const relay = await startRelay(env, { TEMPORAL_UI_URL: 'https://temporal.example/ui' })
  const browser = await startBrowser()
  const targets: HttpTarget[] = []
  const startTarget = async () => {
    const target = await startHttpTarget()
    targets.push(target)
    return target
  }
  afterAll(async () => {
    await browser.close()
    await relay.stop()
    await env.teardown()
    for (const target of targets) await target.stop()
  })

  /** Creates a workspace with three destinations and a key of each level. */
  const createScene = async ({ createRoutes, api }: Running, workspaceSettings: object = {}) => {
    const [archive, workflow, mail] = [await startTarget(), await startTarget(), await startTarget()]
    const routes = await createRoutes(
      [
        { name: 'Archive', config: { url: `${archive.origin}/archive` } },
        { name: 'Approval workflow', config: { url: `${workflow.origin}/approve` } },
        { name: 'Mail room', config: { url: `${mail.origin}/mail` } },
      ],
      { workspaceSettings },
    )
    const workspace = `acme/${routes.workspaceSlug}`
    const { keys } = routes
    const consoleUrl = `${api.baseUrl}/console`

    /** Sends a document that Mail room refuses with 401, until it has failed. */
    const receiveRefused = async (docId?: string) => {
      mail.answerWith((_, response) => {
        response.statusCode = 401
        response.end('Who are you?')
      })
      const document = await routes.receive('hello', docId)
      await until('the document has failed', async () => (await document.status()) === 'failed')
      return document
    }

    const open = (level: KeyLevel) => openConsole(browser, consoleUrl, keys[level])
    return { routes, keys, workspace, consoleUrl, archive, workflow, mail, receiveRefused, open }
  }

  return { relay, browser, createScene, checkScreens: createCheck(browser) }
}

let started: ReturnType<typeof start> | undefined

/** Starts a relay and a browser for the tests of a file, once for all modules of it. They end after the tests. */
export const startConsole = () => (started ??= start())

/**
 * Returns a function that looks at screens: in turns wide, light and English, and narrow, dark and German; in a full run each of them in all five ways.
 * @param includesSignIn also looks at the screen on which a key is entered
 * @returns what is wrong, one line each: pages wider than the window, violations of accessibility rules, errors that the browser logged
 */
export const createCheck =
  (browser: Browser, { includesSignIn = false } = {}) =>
  async (consoleUrl: string, key: string, screens: readonly ScreenCheck[]): Promise<string[]> => {
    const problems: string[] = []
    for (const [place, view] of (isFullRun ? views : usualViews).entries()) {
      const { page, errors } = await openPage(browser, view)
      const check = async (name: string) => {
        const title = `${name}-${view.width}-${view.colorScheme}`
        await takeScreenshot(page, title)
        const overflow = await overflowOf(page)
        if (overflow > 0) problems.push(`${title}: ${overflow} pixels too wide`)
        problems.push(...(await violationsOf(page)).map((violation) => `${title}: ${violation}`))
      }
      await page.goto(consoleUrl)
      await page.locator('#key').waitFor()
      if (includesSignIn) await check('sign-in')
      await page.locator('#key').fill(key)
      await page.keyboard.press('Enter')
      // A screen that is shown before the console has shown its first one would be replaced by it.
      await page.waitForURL(/\/console\/\w/)
      await page.locator('#main h1').waitFor()
      const looked = isFullRun ? screens : screens.filter((_, index) => index % usualViews.length === place)
      for (const [name, path, shows] of looked) {
        await goTo(page, `/console${path}`)
        await page.locator(shows).first().waitFor()
        await check(name)
      }
      // Chromium logs each answer of 4xx, which a screen of the console shows.
      problems.push(...errors.filter((error) => !error.includes('status of 404')))
      await page.context().close()
    }
    return problems
  }

/** Opens the console in a new browser, in English unless another locale is given, and signs in. */
export const openConsole = async (browser: Browser, consoleUrl: string, key: string, view: Partial<View> = {}) => {
  const opened = await openPage(browser, { width: 1280, colorScheme: 'light', locale: 'en-GB', ...view })
  await signIn(opened.page, consoleUrl, key)
  return opened
}

/** Signs in with a key, and waits for the first screen. */
export const signIn = async (page: Page, consoleUrl: string, key: string) => {
  await page.goto(consoleUrl)
  await page.locator('#key').fill(key)
  await page.locator('button[type=submit]').click()
  await page.locator('#main h1').waitFor()
}
