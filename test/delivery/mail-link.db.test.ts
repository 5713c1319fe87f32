import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Koa from 'koa'
import { createDownloads } from '../../src/api/download.ts'
import { createDocuments } from '../../src/archive/document-list.ts'
import { createReceive } from '../../src/archive/receive.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { createDownloadLinks, createDownloadUrl } from '../../src/security/download-link.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createActivityEnvironment } from '../support/activity-environment.ts'
import { createTestDatabase } from '../support/database.ts'
import { attemptActivities } from '../support/delivery-activities.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { logsTo } from '../support/logs.ts'
import { startMailServer } from '../support/smtp-server.ts'

test('a document that is too large for an attachment can be downloaded by the link in the mail', async () => {
  const database = await createTestDatabase()
  const { db } = database
  const config = testConfig()
  const outbound = createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS })
  const links = createDownloadLinks(config.RELAY_SECRET_KEYS)
  const contents = { postgres: createPostgresStore(db) }
  const mails = await startMailServer({ authOptional: true, disabledCommands: ['STARTTLS'] })
  const app = new Koa().use(createDownloads({ documents: createDocuments(db), contents, links, config: {}, ...logsTo() }))
  const answer = app.callback()
  const api = createServer((request, response) => void answer(request, response)).listen(0, '127.0.0.1')
  await once(api, 'listening')

  const routes = await createRoutes(db, [
    {
      name: 'mailbox',
      connector: 'email',
      config: {
        host: '127.0.0.1',
        port: mails.port,
        tls: 'none',
        from: 'relay@acme.example',
        to: 'archive@acme.example',
        max_attachment_bytes: 3,
      },
    },
  ])
  const destinationId = routes.destinations['mailbox']!
  const received = await createReceive(db, config)(await receivedDocument(routes, { data: 'hello' }))
  if (!received.created) throw new Error('not created')
  const { documentId } = received.messages[0]!.input
  const { attemptDelivery } = attemptActivities({
    db,
    downloadUrl: createDownloadUrl(links, { baseUrl: `http://127.0.0.1:${(api.address() as AddressInfo).port}`, ttlMs: 60_000 }),
    outbound,
    config,
  })

  const policy = { maxRetries: 0, ttlMs: 60_000, initialIntervalMs: 10_000, maxIntervalMs: 60_000 }
  const input = { documentId, destinationId, policy, round: 'first', attemptTimeoutMs: 60_000, workspace: 'acme/invoices' }
  expect(await createActivityEnvironment().run(attemptDelivery, input)).toEqual({ status: 'delivered' })

  const [mail] = mails.mails
  expect(mail?.attachment).toBeUndefined()
  const [link = ''] = /http:\/\/127\.0\.0\.1:\d+\/download\/\S+/.exec(mail?.parsed.text ?? '') ?? []
  const download = await fetch(link)
  expect([download.status, await download.text()]).toEqual([200, 'hello'])

  api.closeAllConnections()
  api.close()
  await mails.stop()
  await outbound.close()
  await database.drop()
})
