import { newId } from '../../src/base/ids.ts'
import { openDatabase } from '../../src/db/database.ts'
import type { OutboxMessage } from '../../src/db/outbox.ts'
import type { RetryDelivery, Start } from '../../src/db/starts.ts'
import { startApi } from '../support/api.ts'
import { databaseConfig } from '../support/database.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { dueStarts, startsToCome } from '../support/starts.ts'
import { insertDocument } from './insert-document.ts'
import { objstore, wire } from './objstore.ts'

const launched: (OutboxMessage | Start)[] = []
/** What Temporal answers in a test. */
const temporalAnswers: { isRunning?: () => Promise<boolean> } = {}
const temporal = {
  launch: (messages: (OutboxMessage | Start)[]) => void launched.push(...messages),
  isDeliveryRunning: () => temporalAnswers.isRunning?.() ?? Promise.reject(new Error('unexpected question to Temporal')),
}
const { database, acme, other } = share(await startScene({ temporal }))
const wired = await wire(acme, 'A1')
const secondDestinationId: string = (await acme.call('POST', '/destinations', objstore('Second'))).json.data.id

beforeEach(async () => {
  launched.length = 0
  delete temporalAnswers.isRunning
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
/** What the dispatcher would send, if the API did not. */
const starts = async () => (await startsToCome(database.db)) as RetryDelivery[]
const entries = (id: string) => database.db('audit_logs').where({ event: 'document.retried', subject_id: id })

describe('retrying a document', () => {
  test('retries only the failed deliveries and returns the document with the specified attributes', async () => {
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
    const destination = { id: secondDestinationId, name: 'Second', connector: 'objstore' }
    expect(launched).toEqual([
      { kind: 'retryDelivery', requestId: expect.any(String), input: expect.objectContaining({ documentId: id, destination }) },
    ])
    // The dispatcher leaves it to the API for a moment, and then sends the same.
    expect(await dueStarts(database.db)).toEqual([])
    await database.db('deliveries').update({ begin_at: database.db.raw(`begin_at - interval '1 minute'`) })
    expect(await dueStarts(database.db)).toMatchObject([{ kind: 'retryDelivery', input: { documentId: id, destination } }])
  })

  test.each([
    ['a document', (id: string) => `/documents/${id}/retry`],
    ['a delivery', (id: string) => `/documents/${id}/deliveries/${wired.destinationId}/retry`],
  ])('returns the status retrying for %s, even if the delivery succeeds at once', async (_, pathOf) => {
    // With a single connection, the update that launch() sends runs before any query that is sent later.
    const db = openDatabase({ ...databaseConfig(database.url), DATABASE_POOL_MAX_CONNECTIONS: 1 }, 'one connection')
    const delivered: Promise<unknown>[] = []
    const launch = ([message]: (OutboxMessage | Start)[]) => {
      const { documentId } = (message as RetryDelivery).input
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

  test('uses the current retry settings', async () => {
    await acme.call('PATCH', '/settings', { max_retries: 3, retry_ttl_seconds: 60, retry_initial_interval_seconds: 1 })
    const id = await insert('failed')
    await retry(id)
    expect((await starts())[0]!.input.policy).toEqual({ maxRetries: 3, ttlMs: 60_000, initialIntervalMs: 1_000, maxIntervalMs: 3_600_000 })
  })

  test('is recorded in the audit log with the actor and the destinations', async () => {
    const id = await insert('failed')
    await retry(id, { key: acme.keys.member })
    expect(await entries(id)).toEqual([
      expect.objectContaining({
        workspace_id: acme.id,
        subject_type: 'Document',
        actor_type: 'api_key',
        metadata: { destination_ids: [wired.destinationId], key_id: expect.any(String), key_name: 'member key' },
        description: 'Document A1/DOC1/data was retried to Bucket of A1.',
      }),
    ])
  })

  test('concurrent retries have one effect: the others are answered with 409', async () => {
    const id = await insert('failed', 'failed')
    const answers = await Promise.all(Array.from({ length: 5 }, () => retry(id)))
    expect(answers.map(({ status }) => status).toSorted((one, two) => one - two)).toEqual([200, 409, 409, 409, 409])
    expect(answers.find(({ status }) => status === 409)!.json.error.code).toBe('nothing_to_retry')
    expect(await starts()).toHaveLength(2)
    expect(await entries(id)).toHaveLength(1)
  })

  test.each<[Status, Status?]>([['pending'], ['delivered'], ['retrying', 'delivered'], ['held']])(
    'with the deliveries %s and %s is a conflict and changes nothing',
    async (...statuses) => {
      const id = await insert(...statuses)
      expect((await retry(id)).json.error).toMatchObject({ code: 'nothing_to_retry', message: expect.stringContaining('nothing to retry') })
      expect(await statusesOf(id)).toEqual(statuses.filter(Boolean))
      expect(await starts()).toEqual([])
      expect(await entries(id)).toEqual([])
    },
  )

  test('also takes cancelled deliveries, and so does the retry of one delivery', async () => {
    const id = await insert('cancelled', 'failed')
    expect((await retry(id)).status).toBe(200)
    expect(await statusesOf(id)).toEqual(['retrying', 'retrying'])
    const second = await insert('cancelled', 'delivered')
    expect((await retryOne(second)).status).toBe(200)
    expect(await statusesOf(second)).toEqual(['retrying', 'delivered'])
    expect(await starts()).toHaveLength(3)
  })

  test('is refused with the reason if the document reached nobody or its content is gone', async () => {
    const { repositoryId } = wired
    const discarded = await insertDocument(database.db, { workspaceId: acme.id, repositoryId, repoId: 'A1', status: 'discarded' })
    expect((await retry(discarded)).json.error).toMatchObject({
      code: 'nothing_to_retry',
      message: expect.stringContaining('no connection led'),
    })
    const id = await insert('failed')
    await database.db('documents').where({ id }).update({ content_id: null })
    for (const refused of [await retry(id), await retryOne(id)]) {
      expect(refused.json.error).toMatchObject({ code: 'nothing_to_retry', message: expect.stringContaining('no longer kept') })
    }
    expect(await statusesOf(id)).toEqual(['failed'])
  })

  test.each<[Status]>([['failed'], ['cancelled']])('omits %s deliveries to a deleted destination', async (delivery) => {
    const id = await insert(delivery)
    await database.db('destinations').where({ id: wired.destinationId }).update({ deleted_at: new Date() })
    try {
      for (const refused of [await retry(id), await retryOne(id)]) {
        expect(refused.json.error).toMatchObject({ code: 'nothing_to_retry', message: expect.stringContaining('deleted') })
      }
      expect(await statusesOf(id)).toEqual([delivery])
    } finally {
      await database.db('destinations').where({ id: wired.destinationId }).update({ deleted_at: null })
    }
  })

  test('advises to acknowledge the document only if it can be acknowledged', async () => {
    const adviceAfter = async (changes: Record<string, unknown>, ...statuses: [Status, Status?]) => {
      const id = await insert(...statuses)
      await database
        .db('documents')
        .where({ id })
        .update({ content_id: null, ...changes })
      const refused = [(await retry(id)).json.error, (await retryOne(id)).json.error]
      expect(refused.map(({ code }) => code)).toEqual(['nothing_to_retry', 'nothing_to_retry'])
      const advises = refused.map(({ message }) => message.includes('Acknowledge the document instead.'))
      const acknowledged = await acme.call('POST', `/documents/${id}/acknowledge`)
      return [...advises, acknowledged.status]
    }
    expect(await adviceAfter({ status: 'failed' }, 'failed')).toEqual([true, true, 200])
    expect(await adviceAfter({ status: 'delivered' }, 'cancelled', 'delivered')).toEqual([false, false, 409])
    expect(await adviceAfter({ status: 'failed', acknowledged_at: new Date() }, 'failed')).toEqual([false, false, 200])
  })

  test('requires the level member and a document of the same workspace', async () => {
    const id = await insert('failed')
    expect((await retry(id, { key: acme.keys.viewer })).status).toBe(403)
    expect((await other.call('POST', `/documents/${id}/retry`)).status).toBe(404)
    expect((await other.call('POST', `/documents/${id}/deliveries/${wired.destinationId}/retry`)).status).toBe(404)
    expect((await retry(newId())).status).toBe(404)
    expect((await retryOne(id, secondDestinationId)).status).toBe(404)
    expect(await starts()).toEqual([])
  })
})

describe('retrying a single delivery', () => {
  test('does not affect other failed deliveries', async () => {
    const id = await insert('failed', 'failed')
    const { status, json } = await retryOne(id, secondDestinationId)
    expect(status).toBe(200)
    expect(json.data.attributes.status).toBe('failed')
    expect(await statusesOf(id)).toEqual(['failed', 'retrying'])
    expect(launched).toMatchObject([{ kind: 'retryDelivery', input: { destination: { id: secondDestinationId } } }])
  })

  test('starts a held delivery if its connection is active again', async () => {
    const id = await insert('held')
    await database.db('connections').where({ id: wired.connectionId }).update({ is_active: false })
    expect((await retryOne(id)).json.error).toMatchObject({
      code: 'nothing_to_retry',
      message: expect.stringContaining('Activate the connection'),
    })
    await database.db('connections').where({ id: wired.connectionId }).update({ is_active: true })
    expect((await retryOne(id)).status).toBe(200)
    expect(await statusesOf(id)).toEqual(['retrying'])
  })

  test('is a conflict with a reason if there is nothing to retry', async () => {
    expect((await retryOne(await insert('delivered'))).json.error).toMatchObject({
      code: 'nothing_to_retry',
      message: expect.stringContaining('has been delivered'),
    })
    temporalAnswers.isRunning = () => Promise.resolve(true)
    expect((await retryOne(await insert('pending'))).json.error).toMatchObject({ message: expect.stringContaining('in progress') })
    expect((await retryOne(await insert('retrying'))).json.error).toMatchObject({ message: expect.stringContaining('in progress') })
    expect(launched).toEqual([])
  })

  test('restarts a delivery without a running workflow, unless the dispatcher will start one', async () => {
    temporalAnswers.isRunning = () => Promise.resolve(false)
    const id = await insert('retrying')
    expect((await retryOne(id)).status).toBe(200)
    expect(await starts()).toHaveLength(1)
    expect((await retryOne(id)).status).toBe(409)
    expect(await starts()).toHaveLength(1)
  })

  test('is 503 if the answer depends on Temporal and Temporal is unavailable', async () => {
    temporalAnswers.isRunning = () => Promise.reject(new Error('14 UNAVAILABLE'))
    expect((await retryOne(await insert('retrying'))).json.error).toMatchObject({ code: 'unavailable', nothing_changed: true })
  })
})
