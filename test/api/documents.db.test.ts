import { Readable } from 'node:stream'
import { newId } from '../../src/base/ids.ts'
import type { ContentStore } from '../../src/content/store.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { insertDocument } from './insert-document.ts'
import { wire } from './objstore.ts'

let opened = 0
let isStoreUnreachable = false

const store: Pick<ContentStore, 'kind' | 'read'> = {
  kind: 'postgres',
  read: (_, { start = 0, end = 4 } = {}) => {
    opened += 1
    return isStoreUnreachable
      ? new Readable({
          read() {
            this.destroy(Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }))
          },
        })
      : Readable.from([Buffer.from('hello').subarray(start, end + 1)])
  },
}

const { database, acme } = share(await startScene({ contents: { postgres: store as ContentStore } }))
const wired = await wire(acme, 'A1')

beforeEach(async () => {
  await database.db('deliveries').delete()
  await database.db('documents').delete()
})

const insert = (row: Partial<Parameters<typeof insertDocument>[1]> = {}) =>
  insertDocument(database.db, { workspaceId: acme.id, repositoryId: wired.repositoryId, repoId: 'A1', ...row })

const idsOf = async (query: string) => (await acme.call('GET', `/documents${query}`)).json.data.map(({ id }: { id: string }) => id)

describe('an open delivery says what it waits for', () => {
  const hour = 3_600_000
  const due = new Date(Date.now() + hour)
  const trialAt = new Date(Date.now() + 2 * hour)
  test.each([
    ['a due time', { status: 'retrying', next_attempt_at: due }, { reason: 'attempt' }, due],
    ['a worker', { status: 'pending' }, { reason: 'worker' }, null],
    ['nothing, while an attempt is under way', { status: 'retrying', attempt_id: 'A1' }, null, expect.any(String)],
    ['a slot', { status: 'pending', waiting: 'in_line', next_attempt_at: 'infinity' }, { reason: 'slot' }, null],
    ['a circuit', { status: 'retrying', waiting: 'in_line', next_attempt_at: 'infinity', circuit: 'open' }, { reason: 'circuit' }, trialAt],
    ['a connection', { status: 'held' }, { reason: 'connection', connection_name: 'Pipeline of A1' }, null],
    ['nothing, after the end', { status: 'failed' }, null, null],
  ])('%s', async (_, { circuit = 'closed', ...row }: { circuit?: string; status: string } & object, wait, next) => {
    const { db } = database
    const { destinationId, status } = { ...wired, ...row }
    const id = await insert({ docId: 'WAITS', deliveries: [{ ...wired, status: status as 'pending' }] })
    await db('deliveries').where({ document_id: id }).update(row)
    const gate = { destination_id: destinationId, circuit, trial_at: circuit === 'closed' ? null : trialAt }
    await db('destination_gates').insert(gate).onConflict('destination_id').merge()
    const { attributes } = (await acme.call('GET', `/documents/${id}`)).json.data
    const ofConnection = { connection_id: null, connection_name: null }
    const [delivery] = attributes.deliveries
    if (wait?.reason === 'connection')
      expect(delivery.waiting_for).toEqual({ ...wait, connection_id: expect.any(String), connection_name: expect.any(String) })
    else expect(delivery.waiting_for).toEqual(wait && { ...ofConnection, ...wait })
    expect(delivery.next_attempt_at).toEqual(next instanceof Date ? next.toISOString() : next)
    await db('destination_gates').where({ destination_id: destinationId }).delete()
    await db('documents').where({ id }).delete()
  })
})

test('only the single response contains the path of each delivery, and the metadata unless a list is asked for it', async () => {
  const deliveredAt = new Date('2026-11-01T10:00:00.123Z')
  const id = await insert({
    docId: 'DOC1',
    status: 'delivered',
    receivedAt: new Date('2026-11-01T09:00:00Z'),
    deliveries: [{ ...wired, status: 'delivered', deliveredAt }],
  })
  const delivery = {
    destination_id: wired.destinationId,
    destination_name: 'Bucket of A1',
    status: 'delivered',
    delivered_at: '2026-11-01T10:00:00.123Z',
    attempts: 1,
    status_since: expect.any(String),
    next_attempt_at: null,
    waiting_for: null,
    last_error: null,
    ended_by: null,
  }
  const attributes = {
    doc_id: 'DOC1',
    repo_id: 'A1',
    repository_name: 'Repository A1',
    comp_id: 'data',
    content_type: 'application/pdf',
    file_name: null,
    legal_hold: false,
    description: null,
    size_bytes: 5,
    status: 'delivered',
    origin: 'source',
    content_retained: true,
    acknowledged_at: null,
    received_at: '2026-11-01T09:00:00.000Z',
    superseded_at: null,
    request_id: id,
  }
  expect((await acme.call('GET', '/documents')).json).toEqual({
    data: [{ id, type: 'document', attributes: { ...attributes, deliveries: [delivery] } }],
    meta: { current_page: 1, per_page: 25, total: 1 },
  })
  const metadata = { erp_object_type: null, erp_object_id: null, ar_object: 'ZINVOICE' }
  for (const path of ['/documents?include=metadata', '/documents/search?include=metadata&q=doc1'])
    expect((await acme.call('GET', path)).json.data).toEqual([
      { id, type: 'document', attributes: { ...attributes, metadata, deliveries: [delivery] } },
    ])
  expect(await acme.call('GET', '/documents?include=path')).toMatchObject({ status: 400, json: { error: { code: 'invalid_request' } } })
  expect((await acme.call('GET', `/documents/${id}`)).json).toEqual({
    data: {
      id,
      type: 'document',
      attributes: {
        ...attributes,
        metadata,
        fields: {},
        legal_holds: [],
        enrichments: [],
        deliveries: [{ ...delivery, path: `A1/${id}/data`, receipt: null, late_data: null }],
      },
    },
  })
})

test('documents are ordered newest first, each with its own deliveries', async () => {
  const first = await insert({ deliveries: [{ ...wired, status: 'pending' }] })
  const second = await insert({ status: 'discarded' })
  const { json } = await acme.call('GET', '/documents')
  expect(
    json.data.map((item: { id: string; attributes: { deliveries: unknown[] } }) => [item.id, item.attributes.deliveries.length]),
  ).toEqual([
    [second, 0],
    [first, 1],
  ])
})

const insertAt = (time: string) => insert({ receivedAt: new Date(time) })

test('date_from and date_to are inclusive, and a date without a time means the whole day', async () => {
  const early = await insertAt('2026-11-01T00:00:00.000Z')
  const noon = await insertAt('2026-11-01T12:00:00.500Z')
  const late = await insertAt('2026-11-02T00:00:00.000Z')
  expect(await idsOf('?date_from=2026-11-01T12:00:00.500Z')).toEqual([late, noon])
  expect(await idsOf('?date_to=2026-11-01T12:00:00.500Z')).toEqual([noon, early])
  expect(await idsOf(`?date_from=${encodeURIComponent('2026-11-01T13:00:00+01:00')}`)).toEqual([late, noon])
  expect(await idsOf('?date_from=2026-11-01&date_to=2026-11-01')).toEqual([noon, early])
  for (const wrong of ['yesterday', '2026-02-30', '2026-11-01T12:00:00']) {
    expect((await acme.call('GET', `/documents?date_from=${wrong}`)).status).toBe(400)
  }
})

const queriesFor = async () => {
  const statements: string[] = []
  const listen = ({ sql }: { sql: string }) => statements.push(sql)
  database.db.on('query', listen)
  await acme.call('GET', '/documents?per_page=100')
  database.db.off('query', listen)
  return statements.length
}

test('the number of queries does not depend on the number of documents in a page', async () => {
  await insert({ deliveries: [{ ...wired, status: 'pending' }] })
  const forOne = await queriesFor()
  for (let more = 0; more < 20; more += 1) await insert({ deliveries: [{ ...wired, status: 'pending' }] })
  expect(await queriesFor()).toBe(forOne)
})

const insertWithContent = async (contentType: string) => {
  const contentId = newId()
  await database.db('contents').insert({ id: contentId, workspace_id: acme.id, store: 'postgres', size_bytes: 5, owned_at: new Date() })
  return insert({ contentId, contentType, compId: 'Rechnung "März" 5 €.pdf' })
}

describe('content', () => {
  test('is returned unchanged, as an attachment', async () => {
    const { status, text, headers } = await acme.call('GET', `/documents/${await insertWithContent('text/html; charset=utf-8')}/content`)
    expect({ status, text }).toEqual({ status: 200, text: 'hello' })
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-length': '5',
      'x-content-type-options': 'nosniff',
      'content-disposition': expect.stringMatching(/^attachment; filename=.*filename\*=UTF-8''/),
    })
  })

  test('is returned in ranges, as long as its bytes are the same', async () => {
    const path = `/documents/${await insertWithContent('application/pdf')}/content`
    const get = (headers: Record<string, string>) => acme.call('GET', path, undefined, { headers })
    const whole = await get({})
    const etag = whole.headers.get('etag')!
    expect(whole.headers.get('accept-ranges')).toBe('bytes')

    const part = await get({ range: 'bytes=1-3' })
    expect({ status: part.status, text: part.text }).toEqual({ status: 206, text: 'ell' })
    expect(Object.fromEntries(part.headers)).toMatchObject({ 'content-range': 'bytes 1-3/5', 'content-length': '3', etag })
    expect((await get({ range: 'bytes=-2', 'if-range': etag })).text).toBe('lo')

    const changed = await get({ range: 'bytes=1-3', 'if-range': '"other"' })
    expect({ status: changed.status, text: changed.text }).toEqual({ status: 200, text: 'hello' })
    expect((await get({ range: 'bytes=0-1,3-4' })).status).toBe(200)
    const beyond = await get({ range: 'bytes=5-' })
    expect(beyond.json.error.code).toBe('range_not_satisfiable')
    expect([beyond.status, beyond.headers.get('content-range')]).toEqual([416, 'bytes */5'])
  })

  test('has the type application/octet-stream if its own is not a valid header value', async () => {
    const { headers } = await acme.call('GET', `/documents/${await insertWithContent('text/plain\r\nx-evil: 1')}/content`)
    expect(headers.get('content-type')).toBe('application/octet-stream')
    expect(headers.has('x-evil')).toBe(false)
  })

  test('is not opened for HEAD, which returns its size and type', async () => {
    const id = await insertWithContent('application/pdf')
    opened = 0
    const { status, headers } = await acme.call('HEAD', `/documents/${id}/content`)
    expect({ status, length: headers.get('content-length'), type: headers.get('content-type'), opened }).toEqual({
      status: 200,
      length: '5',
      type: 'application/pdf',
      opened: 0,
    })
  })

  test('is 503 if the store is unreachable and 404 if none is stored', async () => {
    const id = await insertWithContent('application/pdf')
    isStoreUnreachable = true
    const unreachable = await acme.call('GET', `/documents/${id}/content`)
    isStoreUnreachable = false
    expect(unreachable.status).toBe(503)
    expect(unreachable.json.error.code).toBe('unavailable')
    expect((await acme.call('GET', `/documents/${await insert({ status: 'discarded' })}/content`)).status).toBe(404)
  })
})
