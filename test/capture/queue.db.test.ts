import { pino } from 'pino'
import { newId, timeOfId } from '../../src/base/ids.ts'
import { createCaptureStore, type RequestFacts, type ResponseFacts } from '../../src/capture/capture.ts'
import { createCaptureQueue } from '../../src/capture/queue.ts'
import { openDatabase, type Database } from '../../src/db/database.ts'
import { createTestDatabase, databaseConfig } from '../support/database.ts'
import { createRoutes, testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'

const database = share(await createTestDatabase())
const { workspaceSlug } = await createRoutes(database.db, [])

// Another hour would have another budget.
const startedAt = Date.now()

const startQueue = (variables: Record<string, string> = {}, { writeIntervalMs = 50, db = (): Database => database.db } = {}) => {
  const log: string[] = []
  const queue = createCaptureQueue(
    {
      upsert: (captures) => createCaptureStore(db()).upsert(captures),
      complete: (completions) => createCaptureStore(db()).complete(completions),
    },
    testConfig(variables),
    pino({}, { write: (line: string) => void log.push(line) }),
    { writeIntervalMs, now: () => startedAt },
  )
  const bodyOf = (text: string, sourceIp = '127.0.0.1') => {
    const body = queue.streamingBody(sourceIp)
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
      querySealed: null,
      repoId: null,
      docId: null,
      headers: { 'content-type': 'text/plain' },
      body: bodyOf(requestBody, request.sourceIp),
      sourceIp: '127.0.0.1',
      requestAt: timeOfId(id),
      replayOf: null,
      ...request,
    }
    queue.add(facts, { status: 200, errorCode: null, headers: {}, body: bodyOf('answer'), at: new Date(), ...changes })
    return id
  }
  const lost = async (reason: string) =>
    (await queue.metrics[0]!.get()).values.find(({ labels }) => labels['reason'] === reason)?.value ?? 0
  const untilIdle = () => until('no request waits to be written', async () => (await queue.metrics[1]!.get()).values[0]?.value === 0)
  return { queue, add, log, lost, untilIdle }
}

const writtenCount = async (ids: string[]) => (await database.db('captured_requests').whereIn('id', ids)).length
const bodyOf = async (id: string) => String((await database.db('captured_bodies').where({ request_id: id, kind: 'request' }).first())?.data)

describe('a captured request in the queue', () => {
  test('is written soon after it is added, in batches, with its body', async () => {
    const { add, queue } = startQueue({}, { writeIntervalMs: 500 })
    const [durationsMs, writtenAtOnce]: [number[], number[]] = [[], []]
    for (let round = 0; round < 3; round += 1) {
      const began = performance.now()
      const ids = Array.from({ length: 500 }, (_, index) => add(`body ${index}`))
      writtenAtOnce.push(await writtenCount(ids))
      await until('all requests are written', async () => (await writtenCount(ids)) === 500)
      durationsMs.push(performance.now() - began)
      expect(await bodyOf(ids[321]!)).toBe('body 321')
    }
    // The minimum of three rounds, because a busy machine only increases these values.
    expect(Math.min(...durationsMs)).toBeLessThan(20_000)
    expect(Math.min(...writtenAtOnce)).toBe(0)
    await queue.close()
  })

  test('is written when the queue is closed, before the interval has passed', async () => {
    const { add, queue } = startQueue({}, { writeIntervalMs: 60_000 })
    const ids = [add('one'), add('two')]
    await queue.close()
    expect(await writtenCount(ids)).toBe(2)
  })

  test('with a later answer replaces the answer that a transaction has written', async () => {
    const { add, queue } = startQueue()
    const id = add('body', { status: 201 })
    await until('the request is written', async () => (await writtenCount([id])) === 1)
    add('body', { status: 503, headers: { 'content-type': 'text/x' } }, { id })
    await queue.close()
    expect(await database.db('captured_requests').where({ id })).toMatchObject([{ status_code: 503, response_content_type: 'text/x' }])
  })

  test('that the database refuses does not affect others, and none of its values is logged', async () => {
    const { add, queue, lost, log } = startQueue()
    const ids = [add('before'), add('refused', { status: 99_999 }, { queryString: 'secKey=canary' }), add('after')]
    await queue.close()
    expect([await writtenCount([ids[0]!, ids[2]!]), await writtenCount([ids[1]!])]).toEqual([2, 0])
    expect(await lost('refused')).toBe(1)
    expect(log.join('')).toContain(ids[1])
    expect(log.join('')).not.toContain('canary')
  })

  test('has replacement characters for a NUL or half a character, which PostgreSQL cannot store', async () => {
    const { add, queue } = startQueue()
    const id = add('x', {}, { docId: 'a\0b\ud800', headers: { 'x-odd': '\0' }, queryString: '\0' })
    await queue.close()
    expect(await database.db('captured_requests').where({ id })).toMatchObject([
      { doc_id: 'a\uFFFDb\uFFFD', request_headers: { 'x-odd': '\uFFFD' }, query_string: '\uFFFD' },
    ])
  })

  test('above three quarters of the memory from one address is dropped, counted, and logged once; another address has room', async () => {
    const { add, queue, lost, log } = startQueue({ CAPTURE_MEMORY_MAX_BYTES: String(1024 * 1024) }, { writeIntervalMs: 60_000 })
    const headers = { 'x-long': 'x'.repeat(100_000) }
    const flood = Array.from({ length: 10 }, (_, index) => add('x', {}, { headers, sourceIp: `2001:db8::${index}` }))
    const other = add('x', {}, { sourceIp: '192.0.2.1' })
    await queue.close()
    expect([await writtenCount(flood), await writtenCount([other])]).toEqual([7, 1])
    expect(await lost('full')).toBe(3)
    expect(log).toHaveLength(1)
  })

  test('above the maximum memory is written without its body, and written bodies free memory', async () => {
    const { add, queue } = startQueue({ CAPTURE_MEMORY_MAX_BYTES: String(1024 * 1024) }, { writeIntervalMs: 60_000 })
    const ids = [300_000, 300_000, 90_000].map((bytes) => add('x'.repeat(bytes)))
    // One address has used its half of the memory for bodies. There is still room for another one.
    ids.push(add('y'.repeat(300_000), {}, { sourceIp: '192.0.2.1' }))
    await queue.close()
    const rows = await database.db('captured_requests').whereIn('id', ids).orderBy('id')
    expect(rows.map((row) => [row.request_body_truncation_reason, row.request_content_length])).toEqual([
      [null, 300_000],
      ['memory', 300_000],
      [null, 90_000],
      [null, 300_000],
    ])
    const body = queue.streamingBody('127.0.0.1')
    body.add(Buffer.alloc(390_000))
    body.end()
    expect(body.whole()).toHaveLength(390_000)
  })

  test('is written although stalled uploads hold all the memory for bodies', async () => {
    const { add, queue } = startQueue({ CAPTURE_MEMORY_MAX_BYTES: String(1024 * 1024) }, { writeIntervalMs: 60_000 })
    for (let size = 300_000; size >= 1; size = Math.floor(size / 2)) {
      for (let round = 0; round < 10; round += 1) queue.streamingBody('127.0.0.1').add(Buffer.alloc(size))
    }
    const ids = Array.from({ length: 50 }, () => add(''))
    await queue.close()
    expect(await writtenCount(ids)).toBe(50)
  })

  test('of a refused request is dropped and counted once the hourly budget of its workspace is spent', async () => {
    const { add, queue, lost } = startQueue({ CAPTURE_MEMORY_MAX_BYTES: String(1024 * 1024) }, { writeIntervalMs: 20 })
    const refuse = (request: Partial<RequestFacts> = {}) => add('', { status: 404 }, request)
    const other = await createRoutes(database.db, [])
    // Requests to workspaces that do not exist spend nothing.
    const headers = { 'x-long': 'x'.repeat(600_000) }
    refuse({ workspaceSlug: 'nowhere', headers })
    await until('it is dropped', async () => (await lost('no_workspace')) === 1)
    const first = [refuse({ headers, sourceIp: '192.0.2.1' })]
    await until('the first is written', async () => (await writtenCount(first)) === 1)
    first.push(refuse({ headers }))
    await until('the budget is spent', async () => (await writtenCount(first)) === 2)
    const second = refuse()
    const accepted = add('body')
    const elsewhere = refuse({ workspaceSlug: other.workspaceSlug })
    await queue.close()
    expect([await writtenCount([second]), await writtenCount([accepted]), await writtenCount([elsewhere])]).toEqual([0, 1, 1])
    expect(await lost('budget')).toBe(1)
  })

  test('of a failed request has a budget of its own, which a flood of refused requests does not spend', async () => {
    const { add, queue, lost, untilIdle } = startQueue({ CAPTURE_MEMORY_MAX_BYTES: String(1024 * 1024) }, { writeIntervalMs: 20 })
    const other = await createRoutes(database.db, [])
    const toOther = { workspaceSlug: other.workspaceSlug }
    const write = async (response: Partial<ResponseFacts>) => {
      const id = add('x', response, { ...toOther, headers: { 'x-long': 'x'.repeat(530_000) } })
      await untilIdle()
      expect(await writtenCount([id])).toBe(1)
    }
    // A request at the limit is also refused.
    await write({ status: 404 })
    await write({ status: 503 })
    const refused = add('', { status: 503 }, toOther)
    await write({ status: 503, isFailure: true })
    await write({ status: 500, isFailure: true })
    const failed = add('', { status: 503, isFailure: true }, toOther)
    await queue.close()
    expect([await writtenCount([refused, failed]), await lost('budget')]).toEqual([0, 2])
  })

  test('of a refused request has no body once bodies have spent half of the hourly budget, and is still written', async () => {
    const { add, queue, lost, untilIdle } = startQueue({ CAPTURE_MEMORY_MAX_BYTES: String(1024 * 1024) }, { writeIntervalMs: 20 })
    const [workspace, other] = [await createRoutes(database.db, []), await createRoutes(database.db, [])]
    const refuse = async (bytes: number, to = workspace) => {
      const id = add('x'.repeat(bytes), { status: 404 }, { workspaceSlug: to.workspaceSlug })
      await untilIdle()
      const { request_body_truncation_reason: reason } = await database.db('captured_requests').where({ id }).first()
      return reason as string | null
    }
    const keepsBodies = () => queue.keepsRefusedBodies({ userSlug: 'acme', workspaceSlug: workspace.workspaceSlug })
    expect([await refuse(300_000), keepsBodies(), await refuse(300_000)]).toEqual([null, true, null])
    expect([keepsBodies(), await refuse(1), await refuse(0), await refuse(1, other)]).toEqual([false, 'refused', null, null])
    const accepted = add('x', {}, { workspaceSlug: workspace.workspaceSlug })
    await queue.close()
    expect([await bodyOf(accepted), await lost('budget')]).toEqual(['x', 0])
  })

  test('waits for an unreachable database, and is counted as lost only if the queue is closed', async () => {
    const port = Number(new URL(database.url).port)
    const proxy = await startTcpProxy(port, { kind: 'cut', afterBytes: 0 })
    const proxied = new URL(database.url)
    proxied.host = `127.0.0.1:${proxy.port}`
    const unreachable = openDatabase({ ...databaseConfig(proxied.href), acquireTimeoutMs: 500 }, 'unreachable')
    let isReachable = false
    const { add, queue, log } = startQueue({}, { db: () => (isReachable ? database.db : unreachable) })
    const id = add('x')
    await until('the failure is logged', () => log.some((line) => line.includes('failed to write captures')))
    isReachable = true
    await until('the request is written', async () => (await writtenCount([id])) === 1)
    await queue.close()

    const other = startQueue({}, { db: () => unreachable })
    other.add('x')
    await other.queue.close()
    expect(await other.lost('unwritten')).toBe(1)
    await unreachable.destroy()
    await proxy.stop()
  })
})
