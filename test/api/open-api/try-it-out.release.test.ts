import { createPostgresStore } from '../../../src/content/postgres.ts'
import { openPage, startBrowser } from '../../console/browser.ts'
import { startApi } from '../../support/api.ts'
import { readOpenApi } from '../../support/contract.ts'
import { createTestDatabase } from '../../support/database.ts'
import { share } from '../../support/share.ts'
import { createSigner } from '../../support/signer.ts'
import { createResources } from '../resources.ts'

// The page /docs/reference in a browser, as a reader uses it: sign in with an API key, open an operation, Try it out, Execute. The ids of a path are
// those of resources that exist; everything else stays as the page has filled it in. An operation takes the page 1.5 seconds.

const database = share(await createTestDatabase())
const api = share(await startApi(database.db))
const signer = share(await createSigner('P-256'))
const resources = createResources({ db: database.db, store: createPostgresStore(database.db), certificate: signer.pem })
const { paths } = await readOpenApi()

const reads = Object.entries(paths).flatMap(([template, { get }]) => (get ? [{ template, ...get }] : []))

test('every GET of the page answers 200 with its prefilled form', async () => {
  // The workspace that the page suggests.
  const tenant = await api.tenant('acme/invoices')
  await using browser = await startBrowser()
  const { page, errors } = await openPage(browser, { width: 1280, colorScheme: 'light', locale: 'en-GB' })
  await page.goto(`${api.baseUrl}/docs/reference`)
  await page.locator('.btn.authorize').click()
  await page.getByRole('textbox', { name: 'auth-bearer-value' }).fill(tenant.keys.admin)
  await page.locator('.auth-btn-wrapper .authorize').click()
  await page.locator('.btn-done').click()

  const answers: Record<string, string> = {}
  for (const { template, operationId } of reads) {
    const ids = await resources.idsOf(template, tenant)
    const operation = page.locator(`[id$="-${operationId}"].opblock`)
    await operation.locator('.opblock-summary-control').click()
    await operation.locator('.try-out__btn').click()
    for (const [name, id] of Object.entries(ids)) await operation.locator(`tr[data-param-name="${name}"] input`).fill(id)
    await operation.locator('.btn.execute').click()
    answers[operationId] = (await operation.locator('.live-responses-table .response .response-col_status').first().innerText()).trim()
    await operation.locator('.opblock-summary-control').click()
  }
  expect(answers).toEqual(Object.fromEntries(reads.map(({ operationId }) => [operationId, '200'])))
  expect(errors).toEqual([])
}, 300_000)
