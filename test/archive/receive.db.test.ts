import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { createReceive } from '../../src/archive/receive.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'
import { documentsToCome } from '../support/starts.ts'

const config = testConfig()

const database = share(await createTestDatabase())

const documentCount = async (repositoryId: string) =>
  Number((await database.db('repository_counts').where({ repository_id: repositoryId }).sum({ total: 'documents' }))[0]?.['total'] ?? 0)

describe('a received document', () => {
  test('is stored with its content, and a delivery for each destination, which the dispatcher begins unless the caller does', async () => {
    const { db } = database
    const wiring = await createRoutes(db, [{ name: 'archive' }, { name: 'backup', connector: 'sftp' }])
    const document = await receivedDocument(wiring, { data: 'hello' }, 'D1')
    const received = await createReceive(db, config)(document)

    if (!received.created) throw new Error('not created')
    expect(received.messages).toMatchObject([
      {
        kind: 'startDocument',
        input: {
          docId: 'D1',
          workspace: `acme/${wiring.workspaceSlug}`,
          policy: { maxRetries: 10, ttlMs: 86_400_000, initialIntervalMs: 10_000, maxIntervalMs: 3_600_000 },
          destinations: [
            { id: wiring.destinations['archive'], name: 'archive', connector: 'webhook' },
            { id: wiring.destinations['backup'], name: 'backup', connector: 'sftp' },
          ],
        },
      },
    ])
    const { documentId } = received.messages[0]!.input
    expect(await db('documents').where({ id: documentId })).toMatchObject([
      { doc_id: 'D1', repo_id: 'Z1', comp_id: 'data', status: 'pending', size_bytes: 5, content_id: document.components[0]!.content!.id },
    ])
    expect(await db('deliveries').where({ document_id: documentId }).orderBy('destination_id')).toMatchObject([
      { status: 'pending', attempts: 0, path: 'Z1/D1/data' },
      { status: 'pending', attempts: 0, path: 'Z1/D1/data' },
    ])
    const [start] = await documentsToCome(db, wiring.workspaceSlug)
    const { urgency: _, eager: __, ...message } = start!
    expect(message).toEqual({ ...received.messages[0]!, input: { ...received.messages[0]!.input, revision: 1 } })
    expect(await documentCount(wiring.repositoryId)).toBe(1)
  })

  test('is stored for each component of a create', async () => {
    const { db } = database
    const wiring = await createRoutes(db, [{ name: 'archive' }])
    const received = await createReceive(db, config)(await receivedDocument(wiring, { data: 'a', descr: 'b', note: 'c' }))
    expect(received).toMatchObject({
      created: true,
      messages: [{ input: { compId: 'data' } }, { input: { compId: 'descr' } }, { input: { compId: 'note' } }],
    })
    expect(await documentCount(wiring.repositoryId)).toBe(3)
  })

  test('is refused if its docId exists, and nothing of it is stored', async () => {
    const { db } = database
    const wiring = await createRoutes(db, [{ name: 'archive' }])
    const receive = createReceive(db, config)
    const results = await Promise.all(Array.from({ length: 10 }, async () => receive(await receivedDocument(wiring, { data: 'x' }, 'D1'))))
    expect(results.filter(({ created }) => created)).toHaveLength(1)
    expect(await db('documents').where({ workspace_id: wiring.workspaceId })).toHaveLength(1)
    expect(await db('contents').where({ workspace_id: wiring.workspaceId })).toHaveLength(1)
    expect(await documentCount(wiring.repositoryId)).toBe(1)
  })

  test('is stored with content that was buffered in memory, and a refused one without', async () => {
    const { db } = database
    const wiring = await createRoutes(db, [{ name: 'archive' }])
    const store = createPostgresStore(db)
    const receive = createReceive(db, config)
    const send = async () => {
      const document = await receivedDocument(wiring, { data: 'hello' }, 'BUFFERED')
      document.components[0]!.content = await store.write(wiring.workspaceId, Readable.from([Buffer.from('hello')]))
      return receive(document)
    }
    const results = await Promise.all(Array.from({ length: 10 }, send))
    expect(results.filter(({ created }) => created)).toHaveLength(1)
    expect(await db('contents').where({ workspace_id: wiring.workspaceId })).toMatchObject([
      { size_bytes: 5, sha256: createHash('sha256').update('hello').digest(), owned_at: expect.any(Date) },
    ])
    const [document] = await db('documents').where({ workspace_id: wiring.workspaceId }).select<{ content_id: string }[]>('content_id')
    expect(await text(store.read({ id: document!.content_id, sizeBytes: 5 }))).toBe('hello')
    expect(await documentsToCome(db, wiring.workspaceSlug)).toHaveLength(1)
  })

  test('is recorded as discarded if the repository has no route, without content and not counted', async () => {
    const { db } = database
    const wiring = await createRoutes(db, [])
    const document = await receivedDocument(wiring, { data: 'hello' })
    document.components[0]!.content = null
    const received = await createReceive(db, config)(document)
    expect(received).toEqual({
      created: true,
      documents: [expect.objectContaining({ status: 'discarded', destinations: 0 })],
      messages: [],
      atOnce: expect.any(Boolean),
    })
    expect(await db('documents').where({ workspace_id: wiring.workspaceId })).toMatchObject([
      { status: 'discarded', content_id: null, archive_document_id: null, size_bytes: 5 },
    ])
    expect(await documentCount(wiring.repositoryId)).toBe(0)
  })

  test('is held, and starts no workflow, if only inactive connections lead to its destination', async () => {
    const { db } = database
    const wiring = await createRoutes(db, [{ name: 'archive' }, { name: 'paused' }], { inactive: ['paused'] })
    const received = await createReceive(db, config)(await receivedDocument(wiring, { data: 'hello' }))
    expect(received).toMatchObject({ created: true, messages: [{ input: { destinations: [{ name: 'archive' }] } }] })
    expect(await db('deliveries').where({ destination_id: wiring.destinations['paused'] })).toMatchObject([{ status: 'held' }])

    const allPaused = await createRoutes(db, [{ name: 'paused' }], { inactive: ['paused'] })
    expect(await createReceive(db, config)(await receivedDocument(allPaused, { data: 'hello' }))).toMatchObject({
      created: true,
      messages: [],
      atOnce: expect.any(Boolean),
    })
    expect(await db('documents').where({ workspace_id: allPaused.workspaceId })).toMatchObject([{ status: 'pending' }])
  })

  test('is stored for the source system even if no filter selects it', async () => {
    const { db } = database
    const wiring = await createRoutes(db, [{ name: 'archive' }], { settings: { filter: { comp_ids: ['data'] } } })
    await createReceive(db, config)(await receivedDocument(wiring, { data: 'a', note: 'b' }))
    expect(await db('documents').where({ workspace_id: wiring.workspaceId }).orderBy('position')).toMatchObject([
      { comp_id: 'data', status: 'pending' },
      { comp_id: 'note', status: 'discarded', content_id: expect.any(String) },
    ])
  })

  test('is relayed with its index and note, except by a connection that filters them out', async () => {
    const { db } = database
    const wiring = await createRoutes(db, [{ name: 'everything' }, { name: 'data only' }])
    const settings = JSON.stringify({ filter: { comp_ids: ['data'] } })
    await db('connections').where({ id: wiring.connections['data only'] }).update({ settings })
    const { messages } = await createReceive(db, config)(await receivedDocument(wiring, { data: 'a', descr: 'b', note: 'c' }))
    const names = messages.map(({ input }) => [input.compId, input.destinations.map(({ name }) => name)])
    expect(Object.fromEntries(names)).toEqual({ data: ['everything', 'data only'], descr: ['everything'], note: ['everything'] })
    expect(await db('deliveries').where({ destination_id: wiring.destinations['data only'] })).toHaveLength(1)
  })

  test('is not stored at all if one of its contents was removed meanwhile', async () => {
    const { db } = database
    const wiring = await createRoutes(db, [{ name: 'archive' }])
    const document = await receivedDocument(wiring, { data: 'a', note: 'b' })
    const { buffer: _, ...removed } = document.components[1]!.content!
    document.components[1]!.content = removed
    await expect(createReceive(db, config)(document)).rejects.toThrow('documents_content_id_fkey')
    for (const table of ['documents', 'archive_documents', 'contents', 'deliveries']) {
      expect(await db(table).where({ workspace_id: wiring.workspaceId })).toEqual([])
    }
  })
})
