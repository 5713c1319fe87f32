import { createDeliveries, type AttemptRecord } from '../../src/db/deliveries.ts'
import { newId } from '../../src/ids.ts'
import { startScene, wire } from './api.ts'
import { insertDocument } from './documents-in.ts'

const { database, acme, other, stop } = await startScene()
const wired = await wire(acme, 'A1')
afterAll(stop)

const startedAt = new Date('2026-11-21T09:00:00.123Z')

const attempted = async (...attempts: Partial<AttemptRecord>[]) => {
  const documentId = await insertDocument(database.db, {
    workspaceId: acme.id,
    repositoryId: wired.repositoryId,
    repoId: 'A1',
    deliveries: [{ ...wired, status: 'pending' }],
  })
  for (const attempt of attempts) {
    await createDeliveries(database.db).record({
      documentId,
      destinationId: wired.destinationId,
      contentId: 'none',
      overwrites: 0,
      status: 'retrying',
      outcome: 'retryable',
      startedAt,
      durationMs: 1_234,
      ...attempt,
    })
  }
  return documentId
}

test('every attempt of a document is listed, oldest first, with what the target answered', async () => {
  const id = await attempted(
    { error: { code: 'http_503', message: 'HTTP 503' }, answer: { status: 503, body: 'busy', retry_after: '30' }, bytesSent: 5 },
    { status: 'failed', outcome: 'permanent', error: { code: 'credentials_refused', message: 'refused' } },
  )
  const { status, json } = await acme.call('GET', `/documents/${id}/attempts`, undefined, { key: acme.keys.viewer })
  const of = {
    destination_id: wired.destinationId,
    destination_name: 'Bucket of A1',
    started_at: '2026-11-21T09:00:00.123Z',
    duration_ms: 1_234,
  }
  expect(status).toBe(200)
  expect(json).toEqual({
    data: [
      {
        id: expect.any(String),
        type: 'delivery_attempt',
        attributes: {
          ...of,
          number: 1,
          outcome: 'retryable',
          error: { code: 'http_503', message: 'HTTP 503' },
          answer: { status: 503, body: 'busy', retry_after: '30' },
          bytes_sent: 5,
        },
      },
      {
        id: expect.any(String),
        type: 'delivery_attempt',
        attributes: {
          ...of,
          number: 2,
          outcome: 'permanent',
          error: { code: 'credentials_refused', message: 'refused' },
          answer: null,
          bytes_sent: null,
        },
      },
    ],
    meta: { current_page: 1, per_page: 25, total: 2 },
  })
})

test('attempts come in pages', async () => {
  const id = await attempted({}, {}, {})
  const { json } = await acme.call('GET', `/documents/${id}/attempts?per_page=2&page=2`)
  expect(json.data.map(({ attributes }: { attributes: { number: number } }) => attributes.number)).toEqual([3])
  expect(json.meta).toEqual({ current_page: 2, per_page: 2, total: 3 })
})

test('a document without attempts has none, and one of another workspace is not there', async () => {
  const id = await attempted()
  expect((await acme.call('GET', `/documents/${id}/attempts`)).json.data).toEqual([])
  expect((await other.call('GET', `/documents/${id}/attempts`)).status).toBe(404)
  expect((await acme.call('GET', `/documents/${newId()}/attempts`)).status).toBe(404)
})

test('partitions of a time before the document are not read', async () => {
  const id = await attempted({})
  const { rows } = await database.db.raw<{ rows: { 'QUERY PLAN': string }[] }>(
    `explain select id from delivery_attempts where document_id = ? and id >= ? order by id`,
    [id, id.slice(0, 10)],
  )
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
  expect(plan).toContain('Index')
  expect(plan).not.toContain('Seq Scan')
})
