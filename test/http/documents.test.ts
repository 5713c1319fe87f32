import { Readable } from 'node:stream'
import type { ContentStore } from '../../src/content/store.ts'
import { newId } from '../../src/ids.ts'
import { startScene, wire } from './api.ts'
import { insertDocument } from './documents-in.ts'

let opened = 0
let isStoreAway = false

const store: Pick<ContentStore, 'kind' | 'read'> = {
  kind: 'postgres',
  read: () => {
    opened += 1
    return isStoreAway
      ? new Readable({
          read() {
            this.destroy(Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }))
          },
        })
      : Readable.from([Buffer.from('he'), Buffer.from('llo')])
  },
}

const { database, acme, other, stop } = await startScene({ contents: { postgres: store as ContentStore } })
const wired = await wire(acme, 'A1')
afterAll(stop)

beforeEach(async () => {
  await database.db('deliveries').delete()
  await database.db('documents').delete()
})

const insert = (row: Partial<Parameters<typeof insertDocument>[1]> = {}) =>
  insertDocument(database.db, { workspaceId: acme.id, repositoryId: wired.repositoryId, repoId: 'A1', ...row })

const idsOf = async (query: string) => (await acme.call('GET', `/documents${query}`)).json.data.map(({ id }: { id: string }) => id)

test('a document shows where it lies and its metadata only when it is asked for alone', async () => {
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
  }
  const attributes = {
    doc_id: 'DOC1',
    repo_id: 'A1',
    comp_id: 'data',
    content_type: 'application/pdf',
    size_bytes: 5,
    status: 'delivered',
    received_at: '2026-11-01T09:00:00.000Z',
  }
  expect((await acme.call('GET', '/documents')).json).toEqual({
    data: [{ id, type: 'document', attributes: { ...attributes, deliveries: [delivery] } }],
    meta: { current_page: 1, per_page: 25, total: 1 },
  })
  expect((await acme.call('GET', `/documents/${id}`)).json).toEqual({
    data: {
      id,
      type: 'document',
      attributes: {
        ...attributes,
        metadata: { erp_object_type: null, erp_object_id: null, ar_object: 'ZINVOICE' },
        deliveries: [{ ...delivery, path: `A1/${id}/data` }],
      },
    },
  })
})

test('the newest document comes first, and each has its own deliveries', async () => {
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

test('filters by repository and status', async () => {
  const a = await insert({ status: 'failed' })
  const b = await insert({ repoId: 'B1', status: 'failed' })
  await insert({ status: 'discarded' })
  expect(await idsOf('?status=failed')).toEqual([b, a])
  expect(await idsOf('?repo_id=A1&status=failed')).toEqual([a])
  expect(await idsOf('?repo_id=none')).toEqual([])
  expect((await acme.call('GET', '/documents?status=discarded')).status).toBe(400)
})

const at = (time: string) => insert({ receivedAt: new Date(time) })

test('date_from and date_to are inclusive, and a mere date means all of its day', async () => {
  const early = await at('2026-11-01T00:00:00.000Z')
  const noon = await at('2026-11-01T12:00:00.500Z')
  const late = await at('2026-11-02T00:00:00.000Z')
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

test('a page of documents takes as many queries as a page of one', async () => {
  await insert({ deliveries: [{ ...wired, status: 'pending' }] })
  const forOne = await queriesFor()
  for (let more = 0; more < 20; more += 1) await insert({ deliveries: [{ ...wired, status: 'pending' }] })
  expect(await queriesFor()).toBe(forOne)
})

test('documents of another workspace are not there', async () => {
  const id = await insert()
  expect((await other.call('GET', `/documents/${id}`)).status).toBe(404)
  expect((await other.call('GET', `/documents/${id}/content`)).status).toBe(404)
  expect((await other.call('GET', '/documents')).json.meta.total).toBe(0)
})

const kept = async (contentType: string) => {
  const contentId = newId()
  await database.db('contents').insert({ id: contentId, workspace_id: acme.id, store: 'postgres', size_bytes: 5, owned_at: new Date() })
  return insert({ contentId, contentType, compId: 'Rechnung "März" 5 €.pdf' })
}

describe('content', () => {
  test('comes as it was received, to be saved and not shown', async () => {
    const { status, text, headers } = await acme.call('GET', `/documents/${await kept('text/html; charset=utf-8')}/content`)
    expect({ status, text }).toEqual({ status: 200, text: 'hello' })
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-length': '5',
      'x-content-type-options': 'nosniff',
      'content-disposition': expect.stringMatching(/^attachment; filename=.*filename\*=UTF-8''/),
    })
  })

  test('a content type that cannot stand in a header is replaced', async () => {
    const { headers } = await acme.call('GET', `/documents/${await kept('text/plain\r\nx-evil: 1')}/content`)
    expect(headers.get('content-type')).toBe('application/octet-stream')
    expect(headers.has('x-evil')).toBe(false)
  })

  test('HEAD tells the size and opens nothing', async () => {
    const id = await kept('application/pdf')
    opened = 0
    const { status, headers } = await acme.call('HEAD', `/documents/${id}/content`)
    expect({ status, length: headers.get('content-length'), type: headers.get('content-type'), opened }).toEqual({
      status: 200,
      length: '5',
      type: 'application/pdf',
      opened: 0,
    })
  })

  test('is 503 where the store is away, 404 where nothing was kept', async () => {
    const id = await kept('application/pdf')
    isStoreAway = true
    const away = await acme.call('GET', `/documents/${id}/content`)
    isStoreAway = false
    expect(away.status).toBe(503)
    expect(away.json.error.code).toBe('unavailable')
    expect((await acme.call('GET', `/documents/${await insert({ status: 'discarded' })}/content`)).status).toBe(404)
  })
})
