import { createReceive } from '../../src/archive/receive.ts'
import { createReceivingRepositories } from '../../src/archive/receiving-repository.ts'
import { createEvents } from '../../src/events/event-log.ts'
import { createList } from '../events/event-list.ts'
import { startApi } from '../support/api.ts'
import { createTestDatabase } from '../support/database.ts'
import { receivedDocument, testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'

const database = share(await createTestDatabase())
const api = share(await startApi(database.db, { limits: { waiting: { maxWaitingPerActor: 2 } } }))
const acme = await api.tenant('acme/prod')
await acme.call('POST', '/repositories', { repo_id: 'Z1', name: 'Inbox' })

const list = createList(database.db, createEvents(database.db))

/** Returns a cursor behind all events that were written. */
const latest = async () => (await list(acme.id, { after: 'latest', limit: 1 })).nextCursor

const receive = async (docId: string) => {
  const findRepository = async () => (await createReceivingRepositories(database.db).find('acme', 'prod', 'Z1'))!
  await createReceive(database.db, testConfig())(await receivedDocument({ workspaceId: acme.id, findRepository }, { data: 'x' }, docId))
}

test('a program follows events with the cursor of each answer', async () => {
  const begin = await latest()
  await receive('D1')
  // A transaction of another test's database that has just ended can hold events back for a moment.
  const first = await acme.call('GET', `/events?per_page=1&after=${begin}&wait_seconds=30`)
  expect(first.json).toEqual({
    data: [
      {
        id: expect.stringMatching(/^[0-9a-f]{37}$/),
        type: 'event',
        attributes: {
          event: 'document.received',
          created_at: expect.any(String),
          data: expect.objectContaining({ repo_id: 'Z1', doc_id: 'D1', comp_id: 'data', size_bytes: 1 }),
        },
      },
    ],
    meta: { next_cursor: first.json.data[0].id, has_more: true },
  })
  const second = await acme.call('GET', `/events?after=${first.json.meta.next_cursor}&wait_seconds=30`)
  expect(second.json.data.map(({ attributes }: { attributes: { event: string } }) => attributes.event)).toEqual(['document.discarded'])
  expect(second.json.meta.has_more).toBe(false)
  const third = await acme.call('GET', `/events?after=${second.json.meta.next_cursor}`)
  expect(third.json).toEqual({ data: [], meta: { next_cursor: expect.any(String), has_more: false } })
  const typed = await acme.call('GET', `/events?types=document.discarded,document.failed&after=${begin}&wait_seconds=30`)
  expect(typed.json.data).toEqual(second.json.data)
})

test('a request that waits is answered when something happens, also behind events of other types', async () => {
  const waited = acme.call('GET', `/events?after=${await latest()}&wait_seconds=30&types=document.discarded`)
  await until('the request waits', () => api.countWaiting() === 1)
  await database.db.raw(`select add_event(?, 'document.failed', '{}')`, [acme.id])
  await receive('D2')
  const { json } = await waited
  expect(json.data).toMatchObject([{ attributes: { event: 'document.discarded', data: { doc_id: 'D2' } } }])
  expect(api.countWaiting()).toBe(0)
})

test('a request that waits ends without an event, and with its client', async () => {
  const { json } = await acme.call('GET', '/events?after=latest&types=document.acknowledged&wait_seconds=1')
  expect(json.data).toEqual([])
  const client = new AbortController()
  const broken = fetch(`${api.baseUrl}/api/acme/prod/events?after=latest&types=document.acknowledged&wait_seconds=30`, {
    headers: { authorization: `Bearer ${acme.keys.viewer}` },
    signal: client.signal,
  }).catch(() => 'broken off')
  await until('the request waits', () => api.countWaiting() === 1)
  client.abort()
  expect(await broken).toBe('broken off')
  await until('it waits no longer', () => api.countWaiting() === 0)
})

test('a key can wait with some requests at a time', async () => {
  const path = `/events?after=${await latest()}&wait_seconds=30`
  const waits = [acme.call('GET', path), acme.call('GET', path)]
  await until('two wait', () => api.countWaiting() === 2)
  const refused = await acme.call('GET', path)
  expect({ status: refused.status, code: refused.json.error.code }).toEqual({ status: 429, code: 'rate_limited' })
  await receive('D3')
  for (const { json } of await Promise.all(waits)) expect(json.data.length).toBeGreaterThan(0)
})

test('a cursor of events that were removed is refused, and wrong values are', async () => {
  await receive('D4')
  const { json } = await acme.call('GET', '/events?per_page=1&wait_seconds=30')
  const first = json.data[0].id
  await database
    .db('workspaces')
    .where({ id: acme.id })
    .update({ events_removed_to: `${first.slice(0, -1)}f` })
  const gone = await acme.call('GET', `/events?after=${first.slice(0, -1)}0`)
  expect({ status: gone.status, code: gone.json.error.code }).toEqual({ status: 410, code: 'gone' })
  await database.db('workspaces').where({ id: acme.id }).update({ events_removed_to: '' })
  const unknown = await acme.call('GET', `/events?after=${'f'.repeat(37)}`)
  expect(unknown.status).toBe(410)
  for (const query of [
    'after=x',
    'types=document.unknown',
    'per_page=0',
    'per_page=101',
    'limit=1',
    'wait_seconds=31',
    'wait_seconds=x',
    'before=1',
  ]) {
    expect({ query, status: (await acme.call('GET', `/events?${query}`)).status }).toEqual({ query, status: 400 })
  }
})
