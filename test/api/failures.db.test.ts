import { newId } from '../../src/base/ids.ts'
import { foldAll } from '../support/counters.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { insertDocument } from './insert-document.ts'
import { objstore, wire } from './objstore.ts'

const hourMs = 3_600_000
const hoursAgo = (hours: number) => new Date(Date.now() - hours * hourMs)

const { database, acme, other } = share(await startScene())
const wired = await wire(acme, 'A1')
const secondId: string = (await acme.call('POST', '/destinations', objstore('Second'))).json.data.id

beforeEach(async () => {
  for (const table of ['deliveries', 'documents']) await database.db(table).delete()
})

interface Failing {
  code?: string | null
  message?: string
  hours?: number
  destinationId?: string
  status?: 'failed' | 'retrying' | 'cancelled'
  documentStatus?: 'failed' | 'retrying' | 'delivered'
}

const insert = async (failing: Failing = {}) => {
  const { code = 'http_404', message = 'Not found', hours = 1, destinationId = wired.destinationId, status = 'failed' } = failing
  const { documentStatus = status === 'retrying' ? 'retrying' : 'failed' } = failing
  const deliveries = [{ destinationId, connectionId: wired.connectionId, status }]
  const id = await insertDocument(database.db, { ...wired, workspaceId: acme.id, repoId: 'A1', status: documentStatus, deliveries })
  await database
    .db('deliveries')
    .where({ document_id: id })
    .update({ last_error: message, last_error_code: code, status_since: hoursAgo(hours) })
  return id
}

const list = async (query = '', tenant = acme) =>
  (await tenant.call('GET', `/failures${query}`, undefined, { key: tenant.keys.viewer })).json
const groupsOf = async (query?: string) =>
  (await list(query)).data.map(({ attributes }: { attributes: Record<string, unknown> }) => [
    attributes['destination_name'],
    attributes['error_code'],
    attributes['documents'],
  ])

test('failures are grouped by destination and error code, the largest group first', async () => {
  await insert({ hours: 5, message: 'First' })
  await insert({ hours: 3, message: 'Last' })
  await insert({ code: null, message: 'The workflow was terminated' })
  await insert({ destinationId: secondId })
  const { data, meta } = await list()
  expect(meta).toEqual({ current_page: 1, per_page: 25, total: 3 })
  expect(data[0]).toEqual({
    id: `${wired.destinationId}-failed-http_404`,
    type: 'failure_group',
    attributes: {
      destination_id: wired.destinationId,
      destination_name: 'Bucket of A1',
      destination_deleted: false,
      connector_type: 'objstore',
      status: 'failed',
      error_code: 'http_404',
      last_message: 'Last',
      documents: 2,
      oldest_at: expect.any(String),
      newest_at: expect.any(String),
    },
  })
  const { oldest_at: oldest, newest_at: newest } = data[0].attributes
  expect(Date.parse(newest) - Date.parse(oldest)).toBeGreaterThan(1.9 * hourMs)
  expect((await groupsOf()).slice(1).toSorted()).toEqual([
    ['Bucket of A1', null, 1],
    ['Second', 'http_404', 1],
  ])
  expect(await groupsOf(`?destination_id=${secondId}`)).toEqual([['Second', 'http_404', 1]])
  expect(await list('?per_page=1&page=9')).toMatchObject({ data: [], meta: { total: 3 } })
  expect((await list('?per_page=1&page=2')).data).toHaveLength(1)
})

test('acknowledged documents are left out', async () => {
  const acknowledged = await insert()
  await insert({ code: 'http_410' })
  await acme.call('POST', `/documents/${acknowledged}/acknowledge`)
  expect(await groupsOf()).toEqual([['Bucket of A1', 'http_410', 1]])
})

test('retrying deliveries can be listed by age, and cancelled ones if their documents have failed', async () => {
  await insert({ status: 'retrying', code: 'http_503', hours: 2 })
  await insert({ status: 'retrying', code: 'timeout', hours: 0 })
  await insert({ status: 'cancelled', code: 'http_404' })
  await insert({ status: 'cancelled', code: 'http_404', documentStatus: 'delivered' })
  expect(await groupsOf()).toEqual([])
  expect(await groupsOf('?status=retrying&min_age_seconds=3600')).toEqual([['Bucket of A1', 'http_503', 1]])
  expect(await groupsOf('?status=retrying')).toHaveLength(2)
  expect(await groupsOf('?status=cancelled')).toEqual([['Bucket of A1', 'http_404', 1]])
})

test('a minimum age counts the deliveries that are as old, whatever hour and day it leads to', async () => {
  const ages = [0.2, 0.7, 1.5, 3, 11, 23, 25, 49, 80, 400]
  for (const hours of ages) await insert({ hours })
  const counts = async () => {
    const found: Record<string, number> = {}
    for (const hours of [0, 0.5, 1, 2, 6, 12, 24, 48, 72, 100, 500]) {
      found[hours] = (await groupsOf(`?min_age_seconds=${hours * 3_600}`))[0]?.[2] ?? 0
    }
    return found
  }
  const expected = { 0: 10, 0.5: 9, 1: 8, 2: 7, 6: 6, 12: 5, 24: 4, 48: 3, 72: 2, 100: 1, 500: 0 }
  expect(await counts()).toEqual(expected)
  await foldAll(database.db)
  expect(await counts()).toEqual(expected)
})

test('the documents of a group can be listed', async () => {
  const found = await insert({ code: 'http_404' })
  const second = await insert({ code: 'http_404', destinationId: secondId })
  const uncoded = await insert({ code: null })
  await insert({ code: 'http_410' })
  const ids = async (query: string) => (await acme.call('GET', `/documents/search?${query}`)).json.data.map(({ id }: { id: string }) => id)
  expect(await ids('error_code=http_404')).toEqual([second, found])
  expect(await ids(`error_code=http_404&destination_id=${wired.destinationId}&delivery_status=failed`)).toEqual([found])
  expect(await ids('error_code=none')).toEqual([uncoded])
  expect(await ids('error_code=http_404&delivery_status=retrying')).toEqual([])
  expect(await ids('error_code=http_418')).toEqual([])
})

test('nothing of another workspace is listed', async () => {
  await insert()
  expect((await list('', other)).data).toEqual([])
  expect((await list(`?destination_id=${wired.destinationId}`, other)).data).toEqual([])
})

test.each(['?status=delivered', '?min_age_seconds=-1', `?destination_id=${newId()}x`, '?error_code=http_404'])(
  '%s is refused',
  async (query) => {
    expect((await list(query)).error.code).toBe('invalid_request')
  },
)
