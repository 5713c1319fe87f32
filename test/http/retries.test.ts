import { openDatabase } from '../../src/db/database.ts'
import { createOutbox, type OutboxMessage, type RetryMessage } from '../../src/db/outbox.ts'
import { newId } from '../../src/ids.ts'
import { databaseConfig } from '../support/database.ts'
import { objstore, startApi, startScene, wire } from './api.ts'
import { insertDocument } from './documents-in.ts'

let launched: OutboxMessage[] = []
/** What Temporal would say. */
let underWay: (() => Promise<boolean>) | undefined
const temporal = {
  launch: (messages: OutboxMessage[]) => void launched.push(...messages),
  isUnderWay: () => underWay?.() ?? Promise.reject(new Error('asked')),
}
const { database, acme, other, stop } = await startScene({ temporal })
const wired = await wire(acme, 'A1')
const secondDestinationId: string = (await acme.call('POST', '/destinations', objstore('Second'))).json.data.id
afterAll(stop)

beforeEach(async () => {
  launched = []
  underWay = undefined
  await database.db('outbox').delete()
  await database.db('deliveries').delete()
  await database.db('documents').delete()
})

type Status = 'pending' | 'held' | 'retrying' | 'delivered' | 'failed' | 'cancelled'

const insert = async (first: Status, second?: Status) => {
  const { workspaceId, repositoryId, connectionId } = { workspaceId: acme.id, ...wired }
  const delivery = (destinationId: string, status: Status) => ({ destinationId, connectionId, status })
  const deliveries = [delivery(wired.destinationId, first), ...(second ? [delivery(secondDestinationId, second)] : [])]
  const status = [first, second].includes('failed') ? ('failed' as const) : ('pending' as const)
  return insertDocument(database.db, { workspaceId, repositoryId, repoId: 'A1', docId: 'DOC1', status, deliveries })
}

const retry = (id: string, options?: { key: string }) => acme.call('POST', `/documents/${id}/retry`, undefined, options)
const retryOne = (id: string, destinationId = wired.destinationId) =>
  acme.call('POST', `/documents/${id}/deliveries/${destinationId}/retry`)
const statusesOf = async (id: string) => {
  const rows = await database.db('deliveries').where({ document_id: id }).orderBy('destination_id').select<{ status: Status }[]>('status')
  return rows.map(({ status }) => status)
}
const waiting = async () => (await createOutbox(database.db).findDue(0, 100)) as RetryMessage[]
const entries = (id: string) => database.db('audit_logs').where({ event: 'document.retried', subject_id: id })

describe('retrying a document', () => {
  test('retries what has failed and nothing else, and answers with the document as the contract shows it', async () => {
    const id = await insert('delivered', 'failed')
    const { status, json } = await retry(id)
    expect(status).toBe(200)
    expect(json.data).toEqual({
      id,
      type: 'document',
      attributes: {
        doc_id: 'DOC1',
        repo_id: 'A1',
        status: 'retrying',
        received_at: expect.any(String),
        deliveries: [
          expect.objectContaining({ destination_id: wired.destinationId, status: 'delivered', attempts: 1 }),
          expect.objectContaining({ destination_id: secondDestinationId, destination_name: 'Second', status: 'retrying', attempts: 1 }),
        ],
      },
    })
    expect(launched).toEqual([expect.objectContaining({ kind: 'retry', documentId: id, requestId: expect.any(String) })])
    expect(launched).toEqual([expect.objectContaining({ destination: { id: secondDestinationId, name: 'Second', connector: 'objstore' } })])
    expect(await waiting()).toEqual(launched)
  })

  test.each([
    ['of a document', (id: string) => `/documents/${id}/retry`],
    ['of a delivery', (id: string) => `/documents/${id}/deliveries/${wired.destinationId}/retry`],
  ])('%s answers retrying, however quickly the delivery is made', async (_, pathOf) => {
    // statements on one connection take turns: what launching brings comes before whatever is asked after it
    const db = openDatabase({ ...databaseConfig(database.url), DATABASE_POOL_MAX_CONNECTIONS: 1 }, 'one connection')
    const delivered: Promise<unknown>[] = []
    const launch = ([message]: OutboxMessage[]) => {
      const { documentId } = message as RetryMessage
      delivered.push(Promise.resolve(db('deliveries').where({ document_id: documentId }).update({ status: 'delivered' })))
    }
    const quick = await startApi(db, { temporal: { launch } })
    try {
      const id = await insert('failed')
      const { status, json } = await quick.call('POST', acme.path + pathOf(id), { key: acme.keys.admin })
      expect({ status, state: json.data.attributes.status }).toEqual({ status: 200, state: 'retrying' })
      expect(await Promise.all(delivered)).toEqual([1])
    } finally {
      await quick.stop()
      await db.destroy()
    }
  })

  test('goes by the settings of this moment', async () => {
    await acme.call('PATCH', '/settings', { max_retries: 3, retry_ttl_seconds: 60, retry_initial_interval_seconds: 1 })
    const id = await insert('failed')
    await retry(id)
    expect((await waiting())[0]!.policy).toEqual({ maxRetries: 3, ttlMs: 60_000, initialIntervalMs: 1_000, maxIntervalMs: 3_600_000 })
  })

  test('is in the audit log, with who did it and where to', async () => {
    const id = await insert('failed')
    await retry(id, { key: acme.keys.member })
    expect(await entries(id)).toEqual([
      expect.objectContaining({
        workspace_id: acme.id,
        subject_type: 'Document',
        actor_type: 'api_key',
        metadata: { destination_ids: [wired.destinationId] },
        description: 'The document A1/DOC1/data was retried to Bucket of A1.',
      }),
    ])
  })

  test('twice at once counts once: one of the two is told that nothing has failed any more', async () => {
    const id = await insert('failed', 'failed')
    const answers = await Promise.all(Array.from({ length: 5 }, () => retry(id)))
    expect(answers.map(({ status }) => status).toSorted((one, two) => one - two)).toEqual([200, 409, 409, 409, 409])
    expect(answers.find(({ status }) => status === 409)!.json.error.code).toBe('conflict')
    expect(await waiting()).toHaveLength(2)
    expect(await entries(id)).toHaveLength(1)
  })

  test.each<[Status, Status?]>([['pending'], ['delivered'], ['retrying', 'delivered'], ['cancelled'], ['held']])(
    'with deliveries %s and %s is a conflict, and changes nothing',
    async (...statuses) => {
      const id = await insert(...statuses)
      expect((await retry(id)).status).toBe(409)
      expect(await statusesOf(id)).toEqual(statuses.filter(Boolean))
      expect(await waiting()).toEqual([])
      expect(await entries(id)).toEqual([])
    },
  )

  test('leaves out what has failed at a destination that is deleted', async () => {
    const id = await insert('failed')
    await database.db('destinations').where({ id: wired.destinationId }).update({ deleted_at: new Date() })
    try {
      expect((await retry(id)).status).toBe(409)
      expect((await retryOne(id)).json.error.message).toContain('deleted')
      expect(await statusesOf(id)).toEqual(['failed'])
    } finally {
      await database.db('destinations').where({ id: wired.destinationId }).update({ deleted_at: null })
    }
  })

  test('needs a member, and a document of this workspace', async () => {
    const id = await insert('failed')
    expect((await retry(id, { key: acme.keys.viewer })).status).toBe(403)
    expect((await other.call('POST', `/documents/${id}/retry`)).status).toBe(404)
    expect((await other.call('POST', `/documents/${id}/deliveries/${wired.destinationId}/retry`)).status).toBe(404)
    expect((await retry(newId())).status).toBe(404)
    expect((await retryOne(id, secondDestinationId)).status).toBe(404)
    expect(await waiting()).toEqual([])
  })
})

describe('retrying one delivery', () => {
  test('leaves the other failed one alone', async () => {
    const id = await insert('failed', 'failed')
    const { status, json } = await retryOne(id, secondDestinationId)
    expect(status).toBe(200)
    expect(json.data.attributes.status).toBe('failed')
    expect(await statusesOf(id)).toEqual(['failed', 'retrying'])
    expect(launched).toMatchObject([{ kind: 'retry', destination: { id: secondDestinationId } }])
  })

  test('starts one that is held once its connection is active again', async () => {
    const id = await insert('held')
    await database.db('connections').where({ id: wired.connectionId }).update({ is_active: false })
    expect((await retryOne(id)).json.error).toMatchObject({ code: 'conflict', message: expect.stringContaining('activate the connection') })
    await database.db('connections').where({ id: wired.connectionId }).update({ is_active: true })
    expect((await retryOne(id)).status).toBe(200)
    expect(await statusesOf(id)).toEqual(['retrying'])
  })

  test('is a conflict, in words, where there is nothing to retry', async () => {
    expect((await retryOne(await insert('delivered'))).json.error).toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('made'),
    })
    expect((await retryOne(await insert('cancelled'))).json.error).toMatchObject({ message: expect.stringContaining('cancelled') })
    underWay = () => Promise.resolve(true)
    expect((await retryOne(await insert('pending'))).json.error).toMatchObject({ message: expect.stringContaining('on its way') })
    expect((await retryOne(await insert('retrying'))).json.error).toMatchObject({ message: expect.stringContaining('already') })
    expect(launched).toEqual([])
  })

  test('brings back one that nobody is at work on any more, unless a message will start it anyway', async () => {
    underWay = () => Promise.resolve(false)
    const id = await insert('retrying')
    expect((await retryOne(id)).status).toBe(200)
    expect(await waiting()).toHaveLength(1)
    expect((await retryOne(id)).status).toBe(409)
    expect(await waiting()).toHaveLength(1)
  })

  test('is 503 where only Temporal could tell, and it is away', async () => {
    underWay = () => Promise.reject(new Error('14 UNAVAILABLE'))
    expect((await retryOne(await insert('retrying'))).json.error).toMatchObject({ code: 'unavailable' })
  })
})
