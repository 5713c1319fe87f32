import { once } from 'node:events'
import { request } from 'node:http'
import { Readable } from 'node:stream'
import { createPostgresStore } from '../../../src/content/postgres.ts'
import type { Database } from '../../../src/db/database.ts'
import { startScene, type SceneWorkspace } from '../../support/scene.ts'
import { share } from '../../support/share.ts'
import { part } from '../../support/source-system.ts'
import { until } from '../../support/until.ts'

let held: Promise<void> | undefined
let waiting = 0

/** Opens a store whose reads wait while `held` is set. */
const openStore = (db: Database) => {
  const store = createPostgresStore(db)
  return {
    ...store,
    read: (...range: Parameters<typeof store.read>) =>
      Readable.from(
        (async function* () {
          waiting += 1
          await held
          waiting -= 1
          yield* store.read(...range)
        })(),
        { objectMode: false },
      ),
  }
}

const scene = share(await startScene({ openStore }))
const [acme, other, third] = [await scene.workspace(), await scene.workspace(), await scene.workspace()]

// Several sections of 2 MiB.
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

/** Runs work while every search waits for the bytes of its first section. */
const whileSearchesWait = async (work: (untilWaiting: (count: number) => Promise<unknown>) => Promise<void>) => {
  const hold = Promise.withResolvers<void>()
  held = hold.promise
  try {
    await work((count) => until(`${count} searches are waiting`, () => waiting === count))
  } finally {
    held = undefined
    hold.resolve()
  }
}

test('a search beyond the limit of its workspace, 8, or of the process, 16, is answered 503 with Retry-After', async () => {
  let running: ReturnType<typeof search>[] = []
  await whileSearchesWait(async (untilWaiting) => {
    running = Array.from({ length: 8 }, () => search(acme))
    await untilWaiting(8)
    expect(await search(acme)).toMatchObject(busy)
    running.push(...Array.from({ length: 8 }, () => search(other)))
    await untilWaiting(16)
    expect(await search(third)).toMatchObject(busy)
  })
  for (const answer of await Promise.all(running)) expect(String(answer.body)).toBe('0;')
  expect(String((await search(third)).body)).toBe('0;')
})

test('a search ends if its client closes the connection', async () => {
  await whileSearchesWait(async (untilWaiting) => {
    const sent = request(`${scene.api.baseUrl}${acme.path}?${query}`).end()
    const failed = once(sent, 'error')
    await untilWaiting(1)
    sent.destroy(new Error('gone'))
    await failed
    await until('the search has ended', () => scene.api.log.some((line) => line.includes('closed the connection during a search')))
  })
  expect((await search(acme)).status).toBe(200)
})

test('a search that takes too long is answered 503', async () => {
  const slow = await startScene({ variables: { RELAY_SEARCH_TIMEOUT_MS: '1' } })
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

test('a search with a hostile pattern is answered 503, and its thread serves the next search', async () => {
  // Searching a section for this pattern takes a thread 2.5 seconds.
  const hostile = `${'a'.repeat(512)}b${'a'.repeat(511)}`
  const impatient = await startScene({ variables: { RELAY_SEARCH_TIMEOUT_MS: '1000' } })
  try {
    const { source } = await impatient.workspace()
    await source.create('D1', bytes)
    const answers = await Promise.all([1, 2].map(() => source.search('D1', `&compId=data&caseSensitive=y&pattern=${hostile}`)))
    for (const answer of answers) {
      expect(answer).toMatchObject({ status: 503, headers: { 'x-errordescription': expect.stringContaining('longer than 1000 ms') } })
    }
    await until('the thread serves the next search', async () => String((await source.call(query)).body) === '0;')
  } finally {
    await impatient.stop()
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
