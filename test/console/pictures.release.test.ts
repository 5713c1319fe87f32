import type { Page } from 'playwright-core'
import { disposable } from '../support/disposable.ts'
import { share } from '../support/share.ts'
import { openPage, startBrowser, takeScreenshot } from './browser.ts'
import { startDemo } from './demo.ts'
import { testMs } from './scene.ts'

// The pictures of README.md and docs/console.md. To make them again:
// TEST_SCREENSHOTS=docs/images script/test release test/console/pictures.release.test.ts

const demo = share(await startDemo())
const browser = share(disposable(await startBrowser(), (each) => each.close()))

/** Takes a picture in dark and one in light colours. @param height of the page by default */
const takeBoth = async (page: Page, name: string, height?: number) => {
  for (const [colorScheme, suffix] of [
    ['dark', '-dark'],
    ['light', ''],
  ] as const) {
    await page.emulateMedia({ colorScheme })
    // The colours of buttons and links change over time.
    await page.evaluate('Promise.all(document.getAnimations().map((each) => each.finished))')
    await takeScreenshot(page, `${name}${suffix}`, height)
  }
}

test(
  'the documentation shows the sample data of the demo, with 30 days of traffic',
  async () => {
    const { page, errors } = await openPage(browser, { width: 1280, colorScheme: 'light', locale: 'en-GB' })
    await page.goto(demo.consoleUrl)
    await page.locator('.plot canvas').first().waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('4711')
    await page.keyboard.press('Enter')
    await page.getByRole('table', { name: 'Documents' }).getByRole('link', { name: 'Invoice 1900004711' }).click()
    await page.locator('.verdict', { hasText: '2 of 2 destinations have it.' }).waitFor()
    await page.locator('summary', { hasText: 'FI invoices' }).click()
    const { y, height } = (await page.getByRole('region', { name: 'Workflow' }).boundingBox())!
    await takeBoth(page, 'answer', y + height + 8)
    await demo.addTraffic(6_000)
    await page.getByRole('link', { name: 'Overview', exact: true }).click()
    await page.locator('.plot canvas').first().waitFor()
    await page.getByRole('link', { name: '30 days' }).click()
    await page
      .getByText(/^\d{1,2},\d{3}$/)
      .nth(1)
      .waitFor()
    await takeBoth(page, 'overview')
    await page.getByRole('link', { name: /^Needs attention/ }).click()
    await page.locator('.group').first().waitFor()
    await takeBoth(page, 'attention')
    await page.getByRole('link', { name: 'Connections', exact: true }).click()
    await page.getByRole('table').getByRole('link').first().waitFor()
    await takeBoth(page, 'connections')
    expect(errors).toEqual([])
  },
  testMs,
)
