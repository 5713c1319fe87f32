import { createReceive } from '../../src/archive/receive.ts'
import { newId } from '../../src/base/ids.ts'
import {
  askTemporal,
  describeDocument,
  describeFound,
  describeTry,
  findDocuments,
  foundMax,
  showDocument,
  tryDocument,
  withConsoleUrl,
} from '../../src/cli/documents.ts'
import { startODataSystem } from '../enrichment/odata-system.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'

const database = share(await createTestDatabase())

const receive = async (docId: string, routes?: Awaited<ReturnType<typeof createRoutes>>) => {
  const { db } = database
  const to = routes ?? (await createRoutes(db, [{ name: 'archive' }, { name: 'web' }]))
  const { messages } = await createReceive(db, testConfig())(await receivedDocument(to, { data: 'hello' }, docId))
  return { routes: to, workspace: `acme/${to.workspaceSlug}`, id: messages[0]!.input.documentId }
}

describe('the documents of every workspace', () => {
  test('are found by the beginning of a docId or business key, and described in a table', async () => {
    const { db } = database
    const first = await receive('FIND1')
    const second = await receive('FIND2')
    await db('documents').where({ id: second.id }).update({ erp_object_type: 'BKPF', erp_object_id: '100000000047112026' })
    const found = await findDocuments(db, 'find')
    expect(found.map(({ id, workspace }) => ({ id, workspace })).toSorted((a, b) => (a.id < b.id ? -1 : 1))).toEqual([
      { id: first.id, workspace: first.workspace },
      { id: second.id, workspace: second.workspace },
    ])
    expect((await findDocuments(db, 'find', first.workspace)).map(({ id }) => id)).toEqual([first.id])
    const [header, line, ...more] = describeFound(await findDocuments(db, '4711'))
    expect(header).toMatch(/^RECEIVED \(UTC\) +STATUS +REPOSITORY +DOC ID +BUSINESS OBJECT +DELIVERIES +ID$/)
    expect(line).toMatch(
      new RegExp(
        `^2\\d{3}-.* pending +${second.workspace} .* FIND2 +Invoice 4711, company 1000, 2026 +(archive|web): pending, .* ${second.id}$`,
      ),
    )
    expect(more).toEqual([])
    expect(describeFound(await findDocuments(db, 'nothing'))).toEqual(['No document was found.'])
    await expect(findDocuments(db, 'find', 'acme/none')).rejects.toThrow('There is no workspace acme/none')
  })

  test('are listed up to a limit', async () => {
    const { routes } = await receive('MANY')
    for (let index = 0; index < foundMax; index += 1) await receive(`MANY${index}`, routes)
    expect(await findDocuments(database.db, 'many')).toHaveLength(foundMax)
  })
})

test('a document is shown by its id or its docId, and one of several is asked for', async () => {
  const { db } = database
  const { id, routes, workspace } = await receive('SHOW1')
  await db('deliveries')
    .where({ document_id: id, destination_id: routes.destinations['web']! })
    .update({ status: 'failed', last_error: 'the target is gone', last_error_code: 'http_410', ended_by: 'permanent_error', attempts: 3 })
  await db('documents').where({ id }).update({ erp_object_type: 'BKPF', erp_object_id: '100019000088122026' })
  const shown = await showDocument(db, 'SHOW1')
  expect(await showDocument(db, id)).toEqual(shown)
  const lines = describeDocument(withConsoleUrl('https://relay.example.com/a/', shown))
  expect(lines[0]).toBe('Object     Invoice 1900008812, company 1000, 2026 (BKPF 100019000088122026)')
  expect(describeDocument(withConsoleUrl(undefined, shown)).join()).not.toContain('Console')
  expect(lines).toEqual(
    expect.arrayContaining([
      `Id         ${id}`,
      `Console    https://relay.example.com/a/console/documents/${id}?workspace=${workspace}`,
      'Status     failed. 0 of 2 destinations have it. Failed: web. Waiting: archive.',
      expect.stringMatching(/^Delivery {3}to web: failed, 3 attempts, path /),
      '           http_410: the target is gone',
      '           It is not retried automatically.',
      expect.stringMatching(/^ {11}What to do: .*destination web.*, then retry the document\.$/),
    ]),
  )
  expect(lines.join()).not.toContain('or deleted at')
  await db('documents').where({ id }).update({ superseded_at: '2026-11-27T10:00:00Z' })
  expect(describeDocument(withConsoleUrl(undefined, await showDocument(db, id)))).toContain(
    'Replaced   or deleted at 2026-11-27T10:00:00.000Z: the source system does not read it any more',
  )
  const other = await receive('SHOW1')
  await expect(showDocument(db, 'SHOW1')).rejects.toThrow(/^There are several documents SHOW1. Give the id of one of them: 01/)
  expect((await showDocument(db, 'SHOW1', other.workspace)).id).toBe(other.id)
  await expect(showDocument(db, id, other.workspace)).rejects.toThrow(`There is no document ${id}. Search for it with: relay find`)
  expect((await showDocument(db, id, workspace)).id).toBe(id)
})

test('a delivery whose attempt is due waits for a worker, or for Temporal if that does not answer', async () => {
  const { db } = database
  const { id, workspace } = await receive('DUE1')
  const away = { ...testConfig({ TEMPORAL_ADDRESS: '127.0.0.1:1' }), TEMPORAL_START_TIMEOUT_MS: 100 }
  for (const [dueReason, reason, text] of [
    [undefined, 'worker', 'no worker has begun with it'],
    [askTemporal(away), 'temporal', 'Temporal does not answer'],
  ] as const) {
    const shown = await showDocument(db, id, workspace, dueReason)
    expect(shown.deliveries.map(({ waiting_for: wait }) => wait?.reason)).toEqual([reason, reason])
    expect(describeDocument(withConsoleUrl(undefined, shown))).toContain(`           an attempt is due, and ${text}`)
    const [found] = await findDocuments(db, 'DUE1', workspace, dueReason)
    expect(found!.deliveries[0]!.waiting_for?.reason).toBe(reason)
  }
})

test('business data of a document is shown, and its enrichment is tried in this process', async () => {
  const { db, url } = database
  await using odata = await startODataSystem({ "/A_Order('ENRICHED1')": { body: { d: { Customer: 'Acme Ltd' } } } })
  const { id, routes } = await receive('ENRICHED1')
  const settings = testConfig({ DATABASE_URL: url })
  await expect(tryDocument(settings, 'ENRICHED1')).rejects.toThrow('No enrichment serves the repository of the document.')
  const enrichmentId = newId()
  const fields = [
    { name: 'customer', path: '$.d.Customer', type: 'string', optional: false },
    { name: 'city', path: '$.d.City', type: 'string', optional: false },
  ]
  await db('enrichments').insert({
    id: enrichmentId,
    workspace_id: routes.workspaceId,
    name: 'Orders',
    wait_seconds: 60,
    late_days: 7,
    http: JSON.stringify({ url: odata.origin, headers: {} }),
    steps: JSON.stringify([{ kind: 'http', name: 'order', method: 'GET', path: "/A_Order('{doc_id}')", fields }]),
  })
  await db('enrichment_repositories').insert({ repository_id: routes.repositoryId, enrichment_id: enrichmentId, position: 0 })
  expect(describeTry(await tryDocument(settings, 'ENRICHED1'))).toEqual([
    'Enrichment Orders',
    'Step       order: failed. the system answered 401 Unauthorized',
    `           GET ${odata.origin}/A_Order('ENRICHED1')`,
  ])
  await db('document_enrichments').insert({
    document_id: id,
    workspace_id: routes.workspaceId,
    enrichment_id: enrichmentId,
    status: 'partial',
    fields: { customer: 'Acme Ltd' },
    steps: JSON.stringify([{ name: 'order', status: 'incomplete', error: 'city is not in the answer', at: '2026-03-02T10:15:30Z' }]),
    attempts: 3,
    waits_until: db.fn.now(),
    ends_at: db.fn.now(),
  })
  expect(describeDocument(withConsoleUrl(undefined, await showDocument(db, 'ENRICHED1')))).toEqual(
    expect.arrayContaining([
      'Fields     customer = Acme Ltd',
      'Enrichment Orders: partial, 3 tries',
      '           order: city is not in the answer',
    ]),
  )
  const endWith = (error: string | null) =>
    db('document_enrichments')
      .where({ document_id: id })
      .update({ status: 'complete', steps: JSON.stringify([{ name: 'invoice', status: 'done', error, at: '2026-03-02T10:15:30Z' }]) })
  const enrichmentLines = async () => {
    const lines = describeDocument(withConsoleUrl(undefined, await showDocument(db, 'ENRICHED1')))
    return lines.filter((line) => /^Enrichment|invoice/.test(line))
  }
  await endWith('the PDF is encrypted')
  expect(await enrichmentLines()).toEqual(['Enrichment Orders: complete, 3 tries', '           invoice: the PDF is encrypted'])
  await endWith(null)
  expect(await enrichmentLines()).toEqual([])
})
