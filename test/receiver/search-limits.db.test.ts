import { once } from 'node:events'
import { request } from 'node:http'
import { part } from '../support/source-system.ts'
import { until } from '../support/until.ts'
import { startScene, type SceneWorkspace } from './receiver.ts'

const scene = await startScene({ RELAY_MAX_CONCURRENT_SEARCHES: '2', RELAY_MAX_CONCURRENT_SEARCHES_PER_WORKSPACE: '1' })
const [acme, other, third] = [await scene.workspace(), await scene.workspace(), await scene.workspace()]
afterAll(scene.stop)

// Several windows of 2 MiB.
const bytes = Buffer.alloc(5 * 1024 * 1024, 'a')
const query = 'search&pVersion=0045&contRep=Z1&docId=D1&compId=data&pattern=b'

beforeAll(async () => {
  for (const { source } of [acme, other, third]) await source.create('D1', bytes)
})

const search = ({ source }: SceneWorkspace) => source.call(query)
const busy = {
  status: 503,
  headers: { 'retry-after': expect.stringMatching(/^\d+$/), 'x-errordescription': expect.stringContaining('too many searches') },
}

/** Runs work while every search waits for the bytes of its first window. */
const whileSearchesWait = (work: (untilWaiting: (count: number) => Promise<unknown>) => Promise<void>) =>
  scene.db.transaction(async (trx) => {
    await trx.raw('lock table content_chunks in access exclusive mode')
    await work((count) =>
      until(`${count} searches are waiting`, async () => {
        const { rows } = await scene.db.raw(`select 1 from pg_locks where relation = 'content_chunks'::regclass and not granted`)
        return rows.length === count
      }),
    )
  })

test('a search beyond the limit of its workspace, or of the process, is answered 503 with Retry-After', async () => {
  let running: ReturnType<typeof search>[] = []
  await whileSearchesWait(async (untilWaiting) => {
    running = [search(acme)]
    await untilWaiting(1)
    expect(await search(acme)).toMatchObject(busy)
    running.push(search(other))
    await untilWaiting(2)
    expect(await search(third)).toMatchObject(busy)
  })
  for (const answer of await Promise.all(running)) expect(String(answer.body)).toBe('0;')
  expect(String((await search(third)).body)).toBe('0;')
})

test('a search ends after the current window if its client closes the connection', async () => {
  await whileSearchesWait(async (untilWaiting) => {
    const sent = request(`${scene.receiver.baseUrl}${acme.path}?${query}`).end()
    const failed = once(sent, 'error')
    await untilWaiting(1)
    sent.destroy(new Error('gone'))
    await failed
  })
  await until('the search has ended', () => scene.receiver.log.some((line) => line.includes('closed the connection during a search')))
  expect((await search(acme)).status).toBe(200)
})

test('a search that takes too long is answered 503', async () => {
  const slow = await startScene({ RELAY_SEARCH_TIMEOUT_MS: '1' })
  try {
    const workspace = await slow.workspace()
    await workspace.source.createParts('D1', [part('data', bytes), part('descr', bytes)])
    for (const more of [query, 'attrSearch&pVersion=0045&contRep=Z1&docId=D1&pattern=0+4+x']) {
      const answer = await workspace.source.call(more)
      expect(answer).toMatchObject({ status: 503, headers: { 'x-errordescription': expect.stringContaining('longer than 1 ms') } })
    }
  } finally {
    await slow.stop()
  }
})

test('attrSearch accepts 16 conditions and refuses more', async () => {
  await acme.source.createParts('LIST', [part('data', 'x'), part('descr', `0 46 DKEY${' '.repeat(40)}  0  4\n0 9 DAIN1000`)])
  const attrSearch = (conditions: number) =>
    acme.source.call(`attrSearch&pVersion=0045&contRep=Z1&docId=LIST&pattern=${Array(conditions).fill('0+4+1').join('%23')}`)
  expect(String((await attrSearch(16)).body)).toBe('1;0;9;')
  expect(await attrSearch(17)).toMatchObject({
    status: 400,
    headers: { 'x-errordescription': expect.stringContaining('at most 16 conditions') },
  })
})
