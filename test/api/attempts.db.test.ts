import { newId, timeOfId } from '../../src/base/ids.ts'
import type { DeliveryJob } from '../../src/delivery/delivery-job.ts'
import { createRecordAttempt, type AttemptEnd } from '../../src/delivery/record-attempt.ts'
import { testConfig } from '../support/factories.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { insertDocument } from './insert-document.ts'
import { wire } from './objstore.ts'

const { database, acme, other } = share(await startScene())
const wired = await wire(acme, 'A1')

// Recording uses these fields of a job only.
const job = {
  content: { id: 'none', sizeBytes: 5 },
  overwrites: 0,
  workspace: 'acme/main',
  destination: {},
  limits: { maxConcurrent: 1, maxPerMinute: 0 },
} as DeliveryJob

const attempted = async (...attempts: Partial<AttemptEnd>[]) => {
  const documentId = await insertDocument(database.db, {
    workspaceId: acme.id,
    repositoryId: wired.repositoryId,
    repoId: 'A1',
    deliveries: [{ ...wired, status: 'pending' }],
  })
  for (const attempt of attempts) {
    const ref = { documentId, destinationId: wired.destinationId }
    await createRecordAttempt(database.db, testConfig())(ref, job, {
      operation: 'attemptRetryable',
      outcome: 'retryable',
      id: newId(),
      durationMs: 1_234,
      bytesSent: 5,
      ...attempt,
    })
  }
  return documentId
}

test('every attempt of a document is listed, oldest first, with the response of the target', async () => {
  const id = await attempted(
    { error: { code: 'http_503', message: 'HTTP 503', answer: { status: 503, body: 'busy', retry_after: '30' } } },
    { operation: 'attemptFailed', outcome: 'permanent', bytesSent: 0, error: { code: 'credentials_refused', message: 'refused' } },
  )
  const { status, json } = await acme.call('GET', `/documents/${id}/attempts`, undefined, { key: acme.keys.viewer })
  const startOf = (index: number) => timeOfId(json.data[index].id).toISOString()
  const common = {
    destination_id: wired.destinationId,
    destination_name: 'Bucket of A1',
    duration_ms: 1_234,
  }
  expect(status).toBe(200)
  expect(json).toEqual({
    data: [
      {
        id: expect.any(String),
        type: 'delivery_attempt',
        attributes: {
          ...common,
          started_at: startOf(0),
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
          ...common,
          started_at: startOf(1),
          number: 2,
          outcome: 'permanent',
          error: { code: 'credentials_refused', message: 'refused' },
          answer: null,
          bytes_sent: 0,
        },
      },
    ],
    meta: { current_page: 1, per_page: 25, total: 2 },
  })
})

test('attempts are paginated', async () => {
  const id = await attempted({}, {}, {})
  const { json } = await acme.call('GET', `/documents/${id}/attempts?per_page=2&page=2`)
  expect(json.data.map(({ attributes }: { attributes: { number: number } }) => attributes.number)).toEqual([3])
  expect(json.meta).toEqual({ current_page: 2, per_page: 2, total: 3 })
})

test('a document without attempts has an empty list, and a document of another workspace is not found', async () => {
  const id = await attempted()
  expect((await acme.call('GET', `/documents/${id}/attempts`)).json.data).toEqual([])
  expect((await other.call('GET', `/documents/${id}/attempts`)).status).toBe(404)
  expect((await acme.call('GET', `/documents/${newId()}/attempts`)).status).toBe(404)
})

test('partitions older than the document are not read', async () => {
  const id = await attempted({})
  const { rows } = await database.db.raw<{ rows: { 'QUERY PLAN': string }[] }>(
    `explain select id from delivery_attempts where document_id = ? and id >= ? order by id`,
    [id, id.slice(0, 10)],
  )
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
  expect(plan).toContain('Index')
  expect(plan).not.toContain('Seq Scan')
})
