import { pino } from 'pino'
import type { RequestFacts, ResponseFacts } from '../../src/capture/capture.ts'
import { createCaptureQueue } from '../../src/capture/queue.ts'
import { upsertCaptures } from '../../src/db/captures.ts'
import { openDatabase, type Database } from '../../src/db/database.ts'
import { newId, timeOfId } from '../../src/ids.ts'
import { createTestDatabase, databaseConfig, type TestDatabase } from '../support/database.ts'
import { createWiring, testConfig } from '../support/factories.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'

let database: TestDatabase
let workspaceSlug: string

beforeAll(async () => {
  database = await createTestDatabase()
  ;({ workspaceSlug } = await createWiring(database.db, []))
})
afterAll(() => database.drop())

const startQueue = (variables: Record<string, string> = {}, db: () => Database = () => database.db) => {
  const log: string[] = []
  const queue = createCaptureQueue(
    (captures) => upsertCaptures(db(), captures),
    testConfig({ CAPTURE_WRITE_INTERVAL_MS: '50', ...variables }),
    pino({}, { write: (line: string) => void log.push(line) }),
  )
  const bodyOf = (text: string) => {
    const body = queue.passingBody()
    body.add(Buffer.from(text))
    body.end()
    return body
  }
  const add = (requestBody: string, changes: Partial<ResponseFacts> = {}, request: Partial<RequestFacts> = {}) => {
    const id = newId()
    const facts: RequestFacts = {
      id,
      channel: 'bridge',
      userSlug: 'acme',
      workspaceSlug,
      method: 'POST',
      uri: '/bridge',
      queryString: '',
      repoId: null,
      docId: null,
      headers: { 'content-type': 'text/plain' },
      body: bodyOf(requestBody),
      sourceIp: '127.0.0.1',
      requestAt: timeOfId(id),
      replayOf: null,
      ...request,
    }
    queue.add(facts, { status: 200, headers: {}, body: bodyOf('answer'), at: new Date(), ...changes })
    return id
  }
  const lost = async (reason: string) =>
    (await queue.metrics[0]!.get()).values.find(({ labels }) => labels['reason'] === reason)?.value ?? 0
  return { queue, add, log, lost }
}

const written = async (ids: string[]) => (await database.db('captured_requests').whereIn('id', ids)).length
const bodyOf = async (id: string) => String((await database.db('captured_bodies').where({ request_id: id, kind: 'request' }).first())?.data)

describe('what waits to be captured', () => {
  it('is written within a second, of any channel, many at once, with the bytes that came', async () => {
    const { add, queue } = startQueue({ CAPTURE_WRITE_INTERVAL_MS: '500' })
    const [tookMs, atOnce]: [number[], number[]] = [[], []]
    for (let round = 0; round < 3; round += 1) {
      const began = performance.now()
      const ids = Array.from({ length: 500 }, (_, index) => add(`body ${index}`))
      atOnce.push(await written(ids))
      await until('all are written', async () => (await written(ids)) === 500)
      tookMs.push(performance.now() - began)
      expect(await bodyOf(ids[321]!)).toBe('body 321')
    }
    // a disk or a machine that stands still only ever adds to these
    expect(Math.min(...tookMs)).toBeLessThan(1_000)
    expect(Math.min(...atOnce)).toBe(0)
    await queue.close()
  })

  it('is written at the end of the process, before the interval is over', async () => {
    const { add, queue } = startQueue({ CAPTURE_WRITE_INTERVAL_MS: '60000' })
    const ids = [add('one'), add('two')]
    await queue.close()
    expect(await written(ids)).toBe(2)
  })

  it('takes over the answer that was given in the end where a transaction had written another one', async () => {
    const { add, queue } = startQueue()
    const id = add('body', { status: 201 })
    await until('it is written', async () => (await written([id])) === 1)
    add('body', { status: 503, headers: { 'content-type': 'text/x' } }, { id })
    await queue.close()
    expect(await database.db('captured_requests').where({ id })).toMatchObject([{ status_code: 503, response_content_type: 'text/x' }])
  })

  it('takes nobody along where the database refuses one of them, and the log tells no value of it', async () => {
    const { add, queue, lost, log } = startQueue()
    const ids = [add('before'), add('refused', { status: 99_999 }, { queryString: 'secKey=canary' }), add('after')]
    await queue.close()
    expect([await written([ids[0]!, ids[2]!]), await written([ids[1]!])]).toEqual([2, 0])
    expect(await lost('refused')).toBe(1)
    expect(log.join('')).toContain(ids[1])
    expect(log.join('')).not.toContain('canary')
  })

  it('holds what PostgreSQL could not: a NUL, or half of a character', async () => {
    const { add, queue } = startQueue()
    const id = add('x', {}, { docId: 'a\0b\ud800', headers: { 'x-odd': '\0' }, queryString: '\0' })
    await queue.close()
    expect(await database.db('captured_requests').where({ id })).toMatchObject([
      { doc_id: 'a\uFFFDb\uFFFD', request_headers: { 'x-odd': '\uFFFD' }, query_string: '\uFFFD' },
    ])
  })

  it('is bounded in number: what comes on top is counted, and told once', async () => {
    const { add, queue, lost, log } = startQueue({ CAPTURE_WAITING_MAX_REQUESTS: '3', CAPTURE_WRITE_INTERVAL_MS: '60000' })
    const ids = Array.from({ length: 10 }, () => add('x'))
    await queue.close()
    expect(await written(ids)).toBe(3)
    expect(await lost('full')).toBe(7)
    expect(log).toHaveLength(1)
  })

  it('is bounded in bytes: bodies are left out first, and room comes back', async () => {
    const { add, queue } = startQueue({ CAPTURE_MEMORY_MAX_BYTES: String(1024 * 1024), CAPTURE_WRITE_INTERVAL_MS: '60000' })
    const ids = [add('x'.repeat(600_000)), add('y'.repeat(600_000)), add('z'.repeat(100_000))]
    await queue.close()
    const rows = await database.db('captured_requests').whereIn('id', ids).orderBy('id')
    expect(rows.map((row) => [row.request_body_truncated, row.request_content_length])).toEqual([
      [false, 600_000],
      [true, 600_000],
      [false, 100_000],
    ])
    const body = queue.passingBody()
    body.add(Buffer.alloc(1_000_000))
    body.end()
    expect(body.whole()).toHaveLength(1_000_000)
  })

  it('waits for a database that is away, and is lost and counted only with the process', async () => {
    const port = Number(new URL(database.url).port)
    // cut at the first byte
    const proxy = await startTcpProxy(port, { kind: 'cut', afterBytes: 0 })
    const cut = new URL(database.url)
    cut.host = `127.0.0.1:${proxy.port}`
    const away = openDatabase({ ...databaseConfig(cut.href), DATABASE_ACQUIRE_TIMEOUT_MS: 500 }, 'away')
    let isBack = false
    const { add, queue, log } = startQueue({}, () => (isBack ? database.db : away))
    const id = add('x')
    await until('the log tells', () => log.some((line) => line.includes('not written yet')))
    isBack = true
    await until('it is written', async () => (await written([id])) === 1)
    await queue.close()

    const ending = startQueue({}, () => away)
    ending.add('x')
    await ending.queue.close()
    expect(await ending.lost('unwritten')).toBe(1)
    await away.destroy()
    await proxy.stop()
  })
})
