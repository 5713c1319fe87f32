import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import Koa from 'koa'
import type { Page } from 'playwright-core'
import { createDocs } from '../../../src/api/docs/serve.ts'
import { renderSite } from '../../../src/api/docs/site.ts'
import { openPage, startBrowser } from '../../console/browser.ts'
import { createFolder } from '../../support/folder.ts'
import { share } from '../../support/share.ts'

const browser = share(await startBrowser())

const search = async (page: Page) => {
  await page.getByRole('searchbox', { name: 'Search the documentation' }).fill('RelayWorkerAbsent')
  await page.getByRole('link', { name: 'Runbook: RelayWorkerAbsent' }).click()
  await page.waitForURL(/runbook\.html#relayworkerabsent$/)
  expect(await page.getByRole('heading', { name: 'RelayWorkerAbsent' }).isVisible()).toBe(true)
}

test('a person finds the case of an alert by the search, behind a proxy that adds a path, and no policy is violated', async () => {
  const docs = createDocs()
  const app = new Koa()
  app.use((context, next) => {
    if (!context.path.startsWith('/relay/')) return undefined
    context.path = context.path.slice('/relay'.length)
    return docs(context, next)
  })
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    const { page, errors } = await openPage(browser, { width: 1280, colorScheme: 'light', locale: 'en-GB' })
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/relay/docs`)
    await search(page)
    expect(errors).toEqual([])
  } finally {
    server.close()
    server.closeAllConnections()
  }
})

test('the files of the package can be read and searched without a relay', async () => {
  await using folder = await createFolder()
  for (const { place, body } of await renderSite()) {
    const file = join(folder.path, place)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, body)
  }
  const { page, errors } = await openPage(browser, { width: 390, colorScheme: 'dark', locale: 'de-DE' })
  await page.goto(pathToFileURL(join(folder.path, 'connectors/webhook.html')).href)
  await search(page)
  // A text, because the compiler of the tests does not know the browser.
  const tooWide = await page.evaluate<string[]>(`
    document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll('main *, header *, .menu *')]
      .filter((each) => each.getBoundingClientRect().right > innerWidth && !each.closest('.wide, pre'))
      .map((each) => each.outerHTML.slice(0, 80))
  `)
  expect(tooWide.slice(0, 3)).toEqual([])
  expect(errors).toEqual([])
})
