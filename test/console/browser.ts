import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import axe, { type AxeResults } from 'axe-core'
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core'

const viewHeight = 900
// A limit for what never happens. A busy machine takes its time.
const waitMs = 120_000

/** Starts a browser without a window. */
export const startBrowser = (): Promise<Browser> =>
  // Without a sandbox: tests often run as root in a container, where the sandbox does not start.
  chromium.launch({ executablePath: process.env.TEST_BROWSER_BIN!, args: ['--no-sandbox', '--disable-dev-shm-usage'], timeout: waitMs })

export interface View {
  width: number
  colorScheme: 'light' | 'dark'
  locale: string
  /** Also trusts certificates of unknown authorities. */
  ignoreHTTPSErrors?: boolean
  /** Is set to save data, which is the usual case here: to load all screens takes a second of processor time, and a test shows two or three. */
  savesData?: boolean
}

// Chromium ends the requests that wait for a connection, also to this machine, when an address of the machine is added or removed. Containers
// that start beside the tests do that. The console asks again, as it does for people whose network changes.
const networkChanged = 'net::ERR_NETWORK_CHANGED'

const opened: BrowserContext[] = []

// A page of the console that stays open asks the relay for what has changed, as long as the browser runs.
afterEach(async () => {
  for (const context of opened.splice(0)) await context.close()
})

/**
 * Opens a page in a browser of its own: without cookies and without anything stored. It is closed when the test has ended. `errors` are those
 * that the page has logged, without those of a network that changes.
 */
export const openPage = async (
  browser: Browser,
  { width, colorScheme, locale, ignoreHTTPSErrors = false, savesData = true }: View,
): Promise<{ page: Page; errors: string[] }> => {
  const context = await browser.newContext({
    viewport: { width, height: viewHeight },
    colorScheme,
    locale,
    timezoneId: 'Europe/Berlin',
    ignoreHTTPSErrors,
  })
  opened.push(context)
  const page = await context.newPage()
  page.setDefaultTimeout(waitMs)
  // A setting of Chromium, for which the library has no word.
  if (savesData) await (await context.newCDPSession(page)).send('Emulation.setDataSaverOverride', { dataSaverEnabled: true })
  const errors: string[] = []
  page.on('pageerror', (error) => errors.push(String(error)))
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().includes(networkChanged)) errors.push(`${message.text()} ${message.location().url}`)
  })
  return { page, errors }
}

/** Returns the violations of the accessibility rules, one line each. The rules stay in the page until it is loaded again. */
export const violationsOf = async (page: Page): Promise<string[]> => {
  if (!(await page.evaluate("'axe' in window"))) await page.evaluate(axe.source)
  const { violations } = await page.evaluate<AxeResults>("axe.run({ resultTypes: ['violations'] })")
  return violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id}: ${target.join(' ')}: ${failureSummary}`))
}

/** Shows a screen as a link to it does, without loading the page again. */
export const goTo = (page: Page, path: string): Promise<unknown> =>
  page.evaluate(`history.pushState(null, '', ${JSON.stringify(path)}); dispatchEvent(new PopStateEvent('popstate'))`)

/** Opens the menu of the person who is signed in. */
export const openAccount = (page: Page): Promise<void> => page.locator('.account summary').click()

/** Returns by how many pixels the page is wider than its window. */
export const overflowOf = (page: Page): Promise<number> =>
  page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')

/** Writes a picture of the whole page into TEST_SCREENSHOTS, if it is set. */
export const takeScreenshot = async (page: Page, name: string, height?: number): Promise<void> => {
  const directory = process.env['TEST_SCREENSHOTS']
  if (!directory) return
  await mkdir(directory, { recursive: true })
  const clip = height === undefined ? undefined : { x: 0, y: 0, width: page.viewportSize()!.width, height }
  await page.screenshot({ path: join(directory, `${name}.png`), fullPage: true, ...(clip && { clip }) })
}
