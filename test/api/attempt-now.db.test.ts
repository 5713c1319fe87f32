import { newId } from '../../src/base/ids.ts'
import type { OutboxMessage } from '../../src/db/outbox.ts'
import type { Start } from '../../src/db/starts.ts'
import { createAttemptNow } from '../../src/delivery/attempt-now.ts'
import { testConfig } from '../support/factories.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { insertDocument } from './insert-document.ts'
import { wire } from './objstore.ts'

const launched: (OutboxMessage | Start)[] = []
const woken: string[] = []
const temporal = {
  launch: (messages: (OutboxMessage | Start)[]) => void launched.push(...messages),
  wakeNext: async (destinationId: string) => void woken.push(destinationId),
}
const { database, acme, other } = share(await startScene({ temporal }))
const wired = await wire(acme, 'A1')
const { db } = database

const later = () => new Date(Date.now() + 3_600_000)
const inLine = { waiting: 'in_line', next_attempt_at: 'infinity' }

beforeEach(async () => {
  launched.length = 0
  woken.length = 0
  await db('outbox').delete()
  await db('deliveries').delete()
  await db('documents').delete()
})

/** Inserts a document whose delivery is in this state. */
const insert = async (status: 'pending' | 'retrying' | 'failed', change: object = {}) => {
  const { destinationId, connectionId, repositoryId } = wired
  const deliveries = [{ destinationId, connectionId, status }]
  const id = await insertDocument(db, { workspaceId: acme.id, repositoryId, repoId: 'A1', docId: newId(), status: 'pending', deliveries })
  await db('deliveries')
    .where({ document_id: id })
    .update({ begin_at: null, ...change })
  return id
}
const deliveryOf = (id: string) => db('deliveries').where({ document_id: id }).first()

describe('POST /documents/:id/attempt', () => {
  test.each([
    ['its next attempt', 'retrying' as const, { next_attempt_at: later() }],
    ['a slot', 'pending' as const, inLine],
  ])('makes a delivery due that waits for %s, ahead of the line, and tells its workflow', async (_, status, change) => {
    const id = await insert(status, change)
    const { status: answered, json } = await acme.call('POST', `/documents/${id}/attempt`)
    expect(answered).toBe(200)
    expect(json.data.id).toBe(id)
    const delivery = await deliveryOf(id)
    expect(delivery).toMatchObject({ status, waiting: 'called' })
    expect(delivery.next_attempt_at.getTime()).toBeLessThan(later().getTime() - 3_000_000)
    const message = expect.objectContaining({ kind: 'wakeDelivery', endsBackOff: true })
    expect(launched).toEqual([message])
    expect(await db('outbox').pluck('message')).toEqual(launched)
    expect(await db('audit_logs').where({ event: 'document.attempted', subject_id: id })).toMatchObject([
      {
        metadata: { destination_ids: [wired.destinationId] },
        description: expect.stringMatching(/was attempted at once to Bucket of A1\.$/),
      },
    ])
  })

  test('ends the pause of a circuit', async () => {
    const id = await insert('pending', inLine)
    const gate = { destination_id: wired.destinationId, circuit: 'open', trial_at: later() }
    await db('destination_gates').insert(gate).onConflict('destination_id').merge()
    await acme.call('POST', `/documents/${id}/attempt`)
    const [{ trial_at }] = await db('destination_gates').where({ destination_id: wired.destinationId })
    expect(trial_at.getTime()).toBeLessThan(later().getTime() - 3_000_000)
  })

  test.each([
    ['is under way', 'retrying' as const, { attempt_id: 'A1', next_attempt_at: later() }],
    ['is due already', 'pending' as const, {}],
    ['has failed', 'failed' as const, {}],
  ])('is refused with 409 if the delivery %s', async (_, status, change) => {
    const { status: answered, json } = await acme.call('POST', `/documents/${await insert(status, change)}/attempt`)
    expect([answered, json.error.code]).toEqual([409, 'nothing_to_retry'])
    expect(launched).toEqual([])
  })

  test('of another workspace does not exist', async () => {
    expect((await other.call('POST', `/documents/${await insert('retrying', { next_attempt_at: later() })}/attempt`)).status).toBe(404)
  })
})

describe('POST /documents/:id/deliveries/:destination_id/attempt', () => {
  test('makes this delivery due, and no other one of the document', async () => {
    const second = await wire(acme, 'A2')
    const id = await insert('retrying', { next_attempt_at: later() })
    const [first] = await db('deliveries').where({ document_id: id })
    await db('deliveries').insert({ ...first, destination_id: second.destinationId })
    const path = `/documents/${id}/deliveries/${second.destinationId}/attempt`
    expect((await acme.call('POST', path)).status).toBe(200)
    expect(launched).toEqual([expect.objectContaining({ kind: 'wakeDelivery' })])
    const waiting = await db('deliveries').where({ document_id: id }).where('next_attempt_at', '>', db.fn.now()).pluck('destination_id')
    expect(waiting).toEqual([wired.destinationId])
    const again = await acme.call('POST', path)
    expect([again.status, again.json.error.message]).toEqual([409, expect.stringContaining('the delivery does not wait for an attempt')])
    expect((await acme.call('POST', `/documents/${id}/deliveries/${newId()}/attempt`)).status).toBe(404)
    expect((await other.call('POST', path)).status).toBe(404)
  })
})

describe('POST /destinations/:id/attempt', () => {
  const attempt = (call = acme.call) => call('POST', `/destinations/${wired.destinationId}/attempt`)

  test('counts what waits, and starts the workflow that makes it due', async () => {
    for (const change of [{ next_attempt_at: later() }, inLine, {}]) await insert('retrying', change)
    const { status, json } = await attempt()
    expect(status).toBe(202)
    expect(json.data).toEqual({ id: wired.destinationId, type: 'destination', attributes: { waiting_deliveries: 2 } })
    expect(launched).toEqual([
      expect.objectContaining({ kind: 'processBatches', subject: expect.objectContaining({ action: 'attempt', id: wired.destinationId }) }),
    ])
    expect(woken).toEqual([wired.destinationId])
    expect(await db('audit_logs').where({ event: 'destination.attempted', subject_id: wired.destinationId })).toHaveLength(1)
  })

  test('of another workspace does not exist', async () => {
    expect((await attempt(other.call)).status).toBe(404)
  })

  test('a batch makes each delivery due once, in the order of the documents, and leaves those in line', async () => {
    const ids: string[] = []
    for (let count = 0; count < 5; count += 1) ids.push(await insert('retrying', { next_attempt_at: later() }))
    const line = await insert('retrying', inLine)
    ids.sort()
    const { attemptBatch } = createAttemptNow(db, testConfig())
    const first = await attemptBatch(wired.destinationId, '', 3)
    expect(first.messages.map(({ input }) => input.documentId)).toEqual(ids.slice(0, 3))
    // They fail at once, and are due later again.
    await db('deliveries').whereIn('document_id', ids.slice(0, 3)).update({ next_attempt_at: later() })
    const second = await attemptBatch(wired.destinationId, first.position!, 3)
    expect(second.messages.map(({ input }) => input.documentId)).toEqual(ids.slice(3))
    expect(await attemptBatch(wired.destinationId, second.position!, 3)).toEqual({ messages: [], count: 0 })
    expect(await deliveryOf(line)).toMatchObject({ waiting: 'in_line' })
  })
})
