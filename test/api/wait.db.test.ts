import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'
import { insertDocument } from './insert-document.ts'
import { wire } from './objstore.ts'

const { database, api, acme } = share(await startScene({ limits: { waiting: { maxWaitingPerActor: 1 } } }))
const { db } = database
const wired = await wire(acme, 'A1')
const insert = (status: 'pending' | 'retrying' | 'delivered' | 'failed' | 'discarded') =>
  insertDocument(db, { workspaceId: acme.id, repositoryId: wired.repositoryId, repoId: 'A1', status })

/** Counts the questions for the documents that requests wait for. */
const countLooks = () => {
  let looks = 0
  const count = ({ sql }: { sql: string }) => {
    if (sql.includes('"status" not in')) looks += 1
  }
  db.on('query', count)
  return { looks: () => looks, [Symbol.dispose]: () => db.removeListener('query', count) }
}

test.each(['pending', 'retrying'] as const)('a request waits for a %s document until its status is final', async (status) => {
  using counted = countLooks()
  const id = await insert(status)
  const answer = acme.call('GET', `/documents/${id}?wait_seconds=30`)
  await until('the request waits', () => counted.looks() > 0)
  await db('documents').where({ id }).update({ status: 'failed' })
  expect((await answer).json.data.attributes.status).toBe('failed')
})

test.each(['delivered', 'failed', 'discarded'] as const)('a %s document is returned at once', async (status) => {
  using counted = countLooks()
  const id = await insert(status)
  expect((await acme.call('GET', `/documents/${id}?wait_seconds=30`)).json.data.attributes.status).toBe(status)
  expect(counted.looks()).toBe(0)
})

test('a document that gets no final status is returned after the time as it is then', async () => {
  const id = await insert('pending')
  const answer = await acme.call('GET', `/documents/${id}?wait_seconds=1`)
  expect({ status: answer.status, document: answer.json.data.attributes.status }).toEqual({ status: 200, document: 'pending' })
})

test('a document of another workspace is not waited for', async () => {
  const other = await api.tenant('acme/other')
  const answer = await other.call('GET', `/documents/${await insert('pending')}?wait_seconds=30`)
  expect(answer.status).toBe(404)
})

test.each(['31', '-1', '1.5', 'soon'])('wait_seconds=%s is answered with 400', async (seconds) => {
  const { status, json } = await acme.call('GET', `/documents/${await insert('delivered')}?wait_seconds=${seconds}`)
  expect({ status, path: json.error.details[0].path }).toEqual({ status: 400, path: 'wait_seconds' })
})

test('a key with too many requests that wait is answered with 429, and a place is free when a client has disconnected', async () => {
  using counted = countLooks()
  const id = await insert('pending')
  const path = `/documents/${id}?wait_seconds=30`
  const client = new AbortController()
  const headers = { authorization: `Bearer ${acme.keys.admin}` }
  const waiting = fetch(`${api.baseUrl}${acme.path}${path}`, { headers, signal: client.signal }).catch(() => undefined)
  await until('the request waits', () => counted.looks() > 0)
  const refused = await acme.call('GET', path)
  expect({ status: refused.status, code: refused.json.error.code }).toEqual({ status: 429, code: 'rate_limited' })
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  const ofAnotherKey = acme.call('GET', `/documents/${id}?wait_seconds=1`, undefined, { key: acme.keys.viewer })
  expect((await ofAnotherKey).status).toBe(200)

  client.abort()
  await waiting
  const admitted = await until(
    'a place is free',
    () => acme.call('GET', `/documents/${id}?wait_seconds=1`),
    ({ status }) => status === 200,
  )
  expect(admitted.json.data.id).toBe(id)
})
