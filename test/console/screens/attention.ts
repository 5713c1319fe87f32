import { newId } from '../../../src/base/ids.ts'
import { createSourceSystem } from '../../support/source-system.ts'
import { until } from '../../support/until.ts'
import { startConsole, testMs } from '../scene.ts'

const { relay, createScene, checkScreens } = await startConsole()

test(
  'what needs attention is legible and accessible, with failures, long retries and without anything',
  async () => {
    await relay.run(async (running) => {
      const scene = await createScene(running, { retry_initial_interval_seconds: 3_600 })
      const { keys, consoleUrl } = scene
      const failed = await scene.receiveRefused()
      scene.workflow.answerWith((_, response) => {
        response.statusCode = 503
        response.end('Try again later')
      })
      const retrying = await scene.routes.receive('hello')
      await until('a delivery is retried', async () => (await retrying.deliveries())['Approval workflow']!.status === 'retrying')
      // It has been retried for an hour.
      await relay
        .db('deliveries')
        .where({ document_id: retrying.id, status: 'retrying' })
        .update({ status_since: new Date(Date.now() - 3_600_000) })
      const group = '.group .card-head'
      const documents = `/documents?error_code=credentials_refused&delivery_status=failed`
      const problems = await checkScreens(consoleUrl, keys.member, [
        ['attention', '/attention', group],
        ['attention-documents', documents, 'td a'],
        ['attention-document', `/documents/${failed.id}`, '.verdict.bad'],
      ])
      expect(problems).toEqual([])
    })
  },
  testMs,
)

test(
  'an operator reads what failed, retries the documents with one error and acknowledges one with another',
  async () => {
    await relay.run(async (running) => {
      const scene = await createScene(running)
      const documents = [await scene.receiveRefused(), await scene.receiveRefused()]
      scene.mail.answerWith((_, response) => {
        response.statusCode = 404
        response.end('There is no such inbox')
      })
      const unwanted = await scene.routes.receive('hello', 'UNWANTED1')
      await until('the document has failed', async () => (await unwanted.status()) === 'failed')

      const { page, errors } = await scene.open('member')
      await page.getByRole('link', { name: /^Needs attention/ }).click()
      const group = page.locator('.group', { hasText: 'credentials_refused' })
      await group.getByText('2 deliveries').waitFor()
      await group.getByText('Save valid credentials for destination Mail room').waitFor()
      scene.mail.answerWith((_, response) => void response.end('ok'))
      await page.getByRole('button', { name: 'Retry all: credentials_refused, Mail room' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByText('2 deliveries of 2 documents to Mail room with the error credentials_refused').waitFor()
      await dialog.getByRole('button', { name: 'Retry all' }).click()
      await page.getByText('Bulk retry has ended: 2 of 2 deliveries').waitFor()
      await until('both have arrived', async () =>
        (await Promise.all(documents.map((each) => each.status()))).every((each) => each === 'delivered'),
      )
      // The other error has not been retried.
      expect(await unwanted.status()).toBe('failed')

      await page.getByRole('link', { name: 'Show documents: http_404, Mail room' }).click()
      await page.waitForURL(/error_code=http_404/)
      await page.getByRole('link', { name: 'UNWANTED1' }).click()
      await page.getByRole('button', { name: 'Acknowledge' }).click()
      await dialog.getByRole('button', { name: 'Acknowledge' }).click()
      await page.locator('dt', { hasText: 'Acknowledged' }).waitFor()
      expect(await relay.db('documents').where({ id: unwanted.id }).first('acknowledged_at')).toEqual({ acknowledged_at: expect.any(Date) })
      await page.getByRole('link', { name: /^Needs attention/ }).click()
      await page.getByText('Nothing needs attention').waitFor()
      expect(errors).toEqual([])
    })
  },
  testMs,
)

test(
  'a viewer sees what needs attention and cannot change it',
  async () => {
    await relay.run(async (running) => {
      const scene = await createScene(running)
      const document = await scene.receiveRefused()
      const { page, errors } = await scene.open('viewer')
      await page.goto(`${scene.consoleUrl}/attention`)
      await page.getByRole('link', { name: /Show documents/ }).waitFor()
      expect(await page.getByRole('button', { name: /retry|stop/i }).count()).toBe(0)
      await page.goto(`${scene.consoleUrl}/documents/${document.id}`)
      await page.locator('.facts').first().waitFor()
      expect(await page.getByRole('button', { name: /retry|acknowledge/i }).count()).toBe(0)
      expect(errors).toEqual([])
    })
  },
  testMs,
)

test(
  'an administrator connects the repository whose documents were discarded, replays their requests, and acknowledges the rest',
  async () => {
    await relay.run(async (running) => {
      const scene = await createScene(running)
      const { consoleUrl, keys, routes } = scene
      expect((await routes.call('POST', '/repositories', { repo_id: 'Z7', name: 'Travel' }, { key: keys.admin })).status).toBe(201)
      const source = createSourceSystem(`${running.api.baseUrl}/receiver/acme/${routes.workspaceSlug}`, { repoId: 'Z7' })
      for (const docId of ['TRAVEL1', 'TRAVEL2']) await source.create(docId, 'hello', { headers: { 'content-type': 'text/plain' } })

      const { page, errors } = await scene.open('admin')
      await page.getByText('2 documents were discarded: repository Z7 is not connected.').waitFor()
      await page.getByRole('link', { name: 'Show what was discarded' }).click()
      const group = page.getByRole('region', { name: 'Repository Z7' })
      await group.getByText('2 documents').waitFor()
      expect(
        await checkScreens(consoleUrl, keys.admin, [
          ['overview-discarded', '/overview', '.notice.bad a[href=attention]'],
          ['attention-discarded', '/attention', 'section.card'],
        ]),
      ).toEqual([])
      await group.getByRole('link', { name: 'Create a connection: Z7' }).click()
      await page.getByLabel('Name', { exact: true }).fill('Travel to the mail room')
      expect(await page.getByRole('checkbox', { name: 'Z7' }).isChecked()).toBe(true)
      await page.getByRole('checkbox', { name: 'Mail room' }).check()
      await page.getByRole('button', { name: 'Create a connection' }).click()
      await page.getByRole('heading', { name: 'Travel to the mail room' }).waitFor()

      await page.getByRole('link', { name: /^Needs attention/ }).click()
      await group.getByText('The repository is connected now.').waitFor()
      await group.getByRole('button', { name: 'Replay their requests: Z7' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByText('the requests of 2 discarded documents of Z7').waitFor()
      await dialog.getByRole('button', { name: 'Replay their requests' }).click()
      await page.getByText('Bulk replay has ended: 2 of 2 documents').waitFor()
      await group.waitFor({ state: 'detached' })
      const delivered = async () => (await routes.call('GET', '/documents?repo_id=Z7&status=delivered')).json.meta.total
      await until('the documents of the replays are delivered', async () => (await delivered()) === 2)
      expect(errors).toEqual([])
      await source.close()
    })
  },
  testMs,
)

test(
  'a bulk delivery shows its progress, what it has left out, and what has failed',
  async () => {
    await relay.run(async (running) => {
      const scene = await createScene(running)
      const document = await scene.receiveRefused()
      const id = newId()
      await relay.db('bulk_retries').insert({
        id,
        workspace_id: scene.routes.workspaceId,
        action: 'deliver',
        filter: JSON.stringify({ destinationId: scene.routes.destinations['Mail room'] }),
        matched_documents: 4,
        matched_deliveries: 4,
        retried_documents: 1,
        retried_deliveries: 1,
        skipped_documents: 2,
        actor_type: 'system',
      })
      await relay.db('deliveries').where({ document_id: document.id, status: 'failed' }).update({ bulk_retry_id: id })
      const { page, errors } = await scene.open('viewer')
      await page.goto(`${scene.consoleUrl}/attention`)
      await page.getByText('Bulk delivery is running: 1 of 4 documents').waitFor()
      await page.getByText('0 deliveries have arrived, 1 failed, 0 open.').waitFor()
      await page.getByText('2 documents are left out: no filter of a connection selects them').waitFor()
      expect(errors).toEqual([])
    })
  },
  testMs,
)
