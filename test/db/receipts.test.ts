import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { createReceipts } from '../../src/db/receipts.ts'
import { documentWorkflowId } from '../../workflows/messages.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createWiring, receiptOf, testConfig } from '../support/factories.ts'

let database: TestDatabase
const config = testConfig()

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

const countOf = async (repositoryId: string) =>
  Number((await database.db('repository_counts').where({ repository_id: repositoryId }).sum({ total: 'documents' }))[0]?.['total'] ?? 0)

describe('a received document', () => {
  it('comes with its content, a delivery for each destination and the message that starts its workflow', async () => {
    const { db } = database
    const wiring = await createWiring(db, [{ name: 'archive' }, { name: 'backup', connector: 'sftp' }])
    const receipt = await receiptOf(wiring, { data: 'hello' }, 'D1')
    const received = await createReceipts(db, config).receive(receipt)

    if (!received.created) throw new Error('not created')
    expect(received.messages).toMatchObject([
      {
        docId: 'D1',
        workspace: `acme/${wiring.workspaceSlug}`,
        policy: { maxRetries: 10, ttlMs: 86_400_000, initialIntervalMs: 10_000, maxIntervalMs: 3_600_000 },
        destinations: [
          { id: wiring.destinations['archive'], name: 'archive', connector: 'webhook' },
          { id: wiring.destinations['backup'], name: 'backup', connector: 'sftp' },
        ],
      },
    ])
    const documentId = received.messages[0]!.documentId
    expect(await db('documents').where({ id: documentId })).toMatchObject([
      { doc_id: 'D1', repo_id: 'Z1', comp_id: 'data', status: 'pending', size_bytes: 5, content_id: receipt.components[0]!.content!.id },
    ])
    expect(await db('deliveries').where({ document_id: documentId }).orderBy('destination_id')).toMatchObject([
      { status: 'pending', attempts: 0, path: 'Z1/D1/data' },
      { status: 'pending', attempts: 0, path: 'Z1/D1/data' },
    ])
    expect(await db('outbox').where({ key: documentWorkflowId(documentId) })).toMatchObject([{ message: received.messages[0]! }])
    expect(await countOf(wiring.repositoryId)).toBe(1)
  })

  it('is one of many where a create brings many components', async () => {
    const { db } = database
    const wiring = await createWiring(db, [{ name: 'archive' }])
    const received = await createReceipts(db, config).receive(await receiptOf(wiring, { data: 'a', descr: 'b', note: 'c' }))
    expect(received).toMatchObject({ created: true, messages: [{ compId: 'data' }, { compId: 'descr' }, { compId: 'note' }] })
    expect(await countOf(wiring.repositoryId)).toBe(3)
  })

  it('is refused where the docId exists, and leaves nothing of the second one', async () => {
    const { db } = database
    const wiring = await createWiring(db, [{ name: 'archive' }])
    const receipts = createReceipts(db, config)
    const twins = await Promise.all(
      Array.from({ length: 10 }, async () => receipts.receive(await receiptOf(wiring, { data: 'x' }, 'TWIN'))),
    )
    expect(twins.filter((twin) => twin.created)).toHaveLength(1)
    expect(await db('documents').where({ workspace_id: wiring.workspaceId })).toHaveLength(1)
    expect(await db('contents').where({ workspace_id: wiring.workspaceId })).toHaveLength(1)
    expect(await countOf(wiring.repositoryId)).toBe(1)
  })

  it('comes with bytes that waited in memory, and leaves none of a second one', async () => {
    const { db } = database
    const wiring = await createWiring(db, [{ name: 'archive' }])
    const store = createPostgresStore(db)
    const receipts = createReceipts(db, config)
    const send = async () => {
      const receipt = await receiptOf(wiring, { data: 'hello' }, 'HELD')
      receipt.components[0]!.content = await store.write(wiring.workspaceId, Readable.from([Buffer.from('hello')]))
      return receipts.receive(receipt)
    }
    const twins = await Promise.all(Array.from({ length: 10 }, send))
    expect(twins.filter((twin) => twin.created)).toHaveLength(1)
    expect(await db('contents').where({ workspace_id: wiring.workspaceId })).toMatchObject([
      { size_bytes: 5, sha256: createHash('sha256').update('hello').digest(), owned_at: expect.any(Date) },
    ])
    const [document] = await db('documents').where({ workspace_id: wiring.workspaceId }).select<{ content_id: string }[]>('content_id')
    expect(await text(store.read({ id: document!.content_id, sizeBytes: 5 }))).toBe('hello')
    expect(await db('outbox').whereRaw(`message ->> 'docId' = 'HELD'`)).toHaveLength(1)
  })

  it('is discarded where nothing is wired: a row without content, counted by nobody', async () => {
    const { db } = database
    const wiring = await createWiring(db, [])
    const receipt = await receiptOf(wiring, { data: 'hello' })
    receipt.components[0]!.content = null
    const received = await createReceipts(db, config).receive(receipt)
    expect(received).toEqual({ created: true, messages: [] })
    expect(await db('documents').where({ workspace_id: wiring.workspaceId })).toMatchObject([
      { status: 'discarded', content_id: null, archive_document_id: null, size_bytes: 5 },
    ])
    expect(await countOf(wiring.repositoryId)).toBe(0)
  })

  it('is held, and starts no workflow, where only an inactive connection leads on', async () => {
    const { db } = database
    const wiring = await createWiring(db, [{ name: 'archive' }, { name: 'paused' }], { inactive: ['paused'] })
    const received = await createReceipts(db, config).receive(await receiptOf(wiring, { data: 'hello' }))
    expect(received).toMatchObject({ created: true, messages: [{ destinations: [{ name: 'archive' }] }] })
    expect(await db('deliveries').where({ destination_id: wiring.destinations['paused'] })).toMatchObject([{ status: 'held' }])

    const allPaused = await createWiring(db, [{ name: 'paused' }], { inactive: ['paused'] })
    expect(await createReceipts(db, config).receive(await receiptOf(allPaused, { data: 'hello' }))).toEqual({
      created: true,
      messages: [],
    })
    expect(await db('documents').where({ workspace_id: allPaused.workspaceId })).toMatchObject([{ status: 'pending' }])
  })

  it('is kept for the source system even where every filter passes it over', async () => {
    const { db } = database
    const wiring = await createWiring(db, [{ name: 'archive' }], { settings: { filter: { comp_ids: ['data'] } } })
    await createReceipts(db, config).receive(await receiptOf(wiring, { data: 'a', note: 'b' }))
    expect(await db('documents').where({ workspace_id: wiring.workspaceId }).orderBy('position')).toMatchObject([
      { comp_id: 'data', status: 'pending' },
      { comp_id: 'note', status: 'delivered', content_id: expect.any(String) },
    ])
  })

  it('is relayed with its index and its note, but by a connection that filters them out', async () => {
    const { db } = database
    const wiring = await createWiring(db, [{ name: 'everything' }, { name: 'data only' }])
    const settings = JSON.stringify({ filter: { comp_ids: ['data'] } })
    await db('connections').where({ id: wiring.connections['data only'] }).update({ settings })
    const { messages } = await createReceipts(db, config).receive(await receiptOf(wiring, { data: 'a', descr: 'b', note: 'c' }))
    const names = messages.map((message) =>
      message.kind === 'document' ? [message.compId, message.destinations.map(({ name }) => name)] : [],
    )
    expect(Object.fromEntries(names)).toEqual({ data: ['everything', 'data only'], descr: ['everything'], note: ['everything'] })
    expect(await db('deliveries').where({ destination_id: wiring.destinations['data only'] })).toHaveLength(1)
  })

  it('leaves nothing where its transaction fails', async () => {
    const { db } = database
    const wiring = await createWiring(db, [{ name: 'archive' }])
    const receipt = await receiptOf(wiring, { data: 'a', note: 'b' })
    receipt.components[1]!.content!.own = async () => {
      throw new Error('the store is full')
    }
    await expect(createReceipts(db, config).receive(receipt)).rejects.toThrow('the store is full')
    for (const table of ['documents', 'archive_documents', 'contents', 'deliveries']) {
      expect(await db(table).where({ workspace_id: wiring.workspaceId })).toEqual([])
    }
  })
})
