import { randomBytes } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import { newId } from '../../src/base/ids.ts'
import { createS3Store } from '../../src/content/s3.ts'
import { openDatabase } from '../../src/db/database.ts'
import { sweepOrphans, type SweepFailure } from '../../src/maintenance/sweep-orphans.ts'
import { startApi } from '../support/api.ts'
import { createTestDatabase, databaseConfig } from '../support/database.ts'
import { disposable } from '../support/disposable.ts'
import { createRoutes, testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'
import { startSilentServer, startStoreDouble, type SilentStore } from './silent-store.ts'

// An object store that accepts connections, and does not answer, or stops in the middle. The product waits for 22 s.
const silenceMs = 1_000
const MiB = 1024 * 1024

const database = share(await createTestDatabase())
const { db } = database
const workspaceId = newId()
await db('workspaces').insert({ id: workspaceId, user_slug: 'acme', workspace_slug: 'silence' })

// Each test counts what it leaves itself.
beforeEach(() => db('contents').delete())

const openStore = ({ endpoint }: SilentStore, own = db, waitMs = silenceMs) => {
  const config = testConfig({
    CONTENT_S3_ENDPOINT: endpoint,
    CONTENT_S3_PATH_STYLE: 'true',
    CONTENT_S3_ACCESS_KEY_ID: 'key',
    CONTENT_S3_SECRET_ACCESS_KEY: 'secret',
  })
  return createS3Store(own, { ...config, CONTENT_S3_BUCKET: 'documents' }, { silenceMs: waitMs })
}

async function* mebibytes(count: number) {
  for (let sent = 0; sent < count; sent += 1) yield randomBytes(MiB)
}

const drip = (write: (byte: string) => void) => {
  const timer = setInterval(() => write(' '), silenceMs / 10).unref()
  return () => clearInterval(timer)
}

const silences: [string, () => Promise<SilentStore>][] = [
  ['nothing is read', () => startSilentServer((socket) => socket.pause())],
  ['everything is read, and nothing answered', () => startSilentServer((socket) => socket.resume())],
  [
    'the status comes byte by byte',
    () =>
      startSilentServer((socket) => {
        socket.resume()
        socket.write('HTTP/1.1 200 OK\r\nx-drip: ')
        const stop = drip((byte) => socket.write(byte))
        socket.on('close', stop)
      }),
  ],
  [
    'the answer comes byte by byte',
    () =>
      startStoreDouble((request, response) => {
        request.resume()
        response.writeHead(200, { 'content-type': 'application/xml' })
        response.on(
          'close',
          drip((byte) => response.write(byte)),
        )
      }),
  ],
  [
    'an error comes byte by byte',
    () =>
      startStoreDouble((request, response) => {
        request.resume()
        response.writeHead(503, { 'content-type': 'application/xml' })
        response.on(
          'close',
          drip((byte) => response.write(byte)),
        )
      }),
  ],
]

describe.each(silences)('a store of which %s', (_, start) => {
  test.each([1, 20])('fails a write of %d MiB once, and the row stays for the job remove-orphans', async (count) => {
    await using silent = await start()
    await expect(openStore(silent).write(workspaceId, mebibytes(count))).rejects.toMatchObject({ code: 'unavailable' })
    const rows = await db('contents').where({ workspace_id: workspaceId })
    expect(rows).toMatchObject([{ owned_at: null, store: 's3' }])
  })

  test('fails a read, a size and a removal', async () => {
    await using silent = await start()
    const store = openStore(silent)
    await expect(buffer(store.read({ id: newId(), sizeBytes: 10 * MiB }))).rejects.toMatchObject({ code: 'unavailable' })
    // A size needs the status only.
    await Promise.allSettled([store.sizesOf([newId()])])
    const id = newId()
    await db('contents').insert({ id, workspace_id: workspaceId, store: 's3' })
    await expect(store.remove([id])).rejects.toMatchObject({ code: 'unavailable' })
    expect(await db('contents').where({ workspace_id: workspaceId })).toMatchObject([{ id, removal_began_at: expect.any(Date) }])
  })
})

test('a store that stops in the middle of a read fails the read, and a reader that pauses does not', async () => {
  const whole = randomBytes(4 * MiB)
  await using store = await startStoreDouble((request, response, number) => {
    request.resume()
    response.writeHead(206, { 'content-length': String(whole.length) })
    if (number === 1) response.write(whole.subarray(0, 2 * MiB))
    else response.end(whole)
  })
  const content = { id: newId(), sizeBytes: whole.length }
  await expect(buffer(openStore(store).read(content))).rejects.toMatchObject({ code: 'unavailable' })
  const read: Buffer[] = []
  for await (const chunk of openStore(store).read(content)) {
    if (read.length === 0) await new Promise((resolve) => setTimeout(resolve, 2 * silenceMs))
    read.push(chunk as Buffer)
  }
  expect(Buffer.concat(read).equals(whole)).toBe(true)
})

test('a store that is silent from the second part on fails the upload, and its parts are removed when it answers', async () => {
  let isSilent = false
  await using store = await startStoreDouble((request, response) => {
    request.resume()
    const url = request.url!
    if (request.method === 'POST' && url.includes('uploads')) {
      const xml = '<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><UploadId>1</UploadId></InitiateMultipartUploadResult>'
      response.writeHead(200, { 'content-type': 'application/xml' }).end(xml)
    } else if (request.method === 'DELETE') response.writeHead(204).end()
    else if (isSilent) return
    else {
      isSilent = true
      response.writeHead(200, { etag: '"1"' }).end()
    }
  })
  await expect(openStore(store).write(workspaceId, mebibytes(40))).rejects.toMatchObject({ code: 'unavailable' })
  await until('the parts are removed', () =>
    store.requests.some((request) => request.startsWith('DELETE') && request.includes('uploadId=1')),
  )
})

test('a store that answers each request late is not silent', async () => {
  // The three requests in a row take longer than the limit, and each of them much less.
  const waitMs = 12_000
  const lateMs = 5_000
  await using store = await startStoreDouble((request, response) => {
    const xml = request.url!.includes('uploads')
      ? '<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>'
      : '<CompleteMultipartUploadResult><ETag>1</ETag></CompleteMultipartUploadResult>'
    request.resume()
    request.on('end', () => {
      setTimeout(() => response.writeHead(200, { etag: '"1"', 'content-type': 'application/xml' }).end(xml), lateMs)
    })
  })
  const startedAt = performance.now()
  const content = await openStore(store, db, waitMs).write(workspaceId, mebibytes(20))
  expect(performance.now() - startedAt).toBeGreaterThan(waitMs)
  expect(content.sizeBytes).toBe(20 * MiB)
})

test('creates for a silent store hold no connection, and requests that need no store are answered', async () => {
  await using silent = await startSilentServer((socket) => socket.resume())
  const connections = 4
  // The time for which a transaction that removes bytes would wait.
  const heldMs = 6_000
  const config = { ...databaseConfig(database.url), DATABASE_POOL_MAX_CONNECTIONS: connections }
  await using own = disposable(openDatabase(config, 'silent-store'), (opened) => opened.destroy())
  await using api = await startApi(own, { openStore: (each) => openStore(silent, each, heldMs) })
  const routes = await createRoutes(own, [{ name: 'archive' }])
  const name = `acme/${routes.workspaceSlug}`
  const { call } = await api.openTenant({ id: routes.workspaceId, name })
  const receiver = `${api.baseUrl}/receiver/${name}`
  const over = new AbortController()
  const creates = Promise.all(
    Array.from({ length: 3 * connections }, async (_, index) => {
      const response = await fetch(`${receiver}?create&pVersion=0045&contRep=Z1&docId=D${index}&compId=data`, {
        method: 'PUT',
        body: 'hello',
      })
      await response.arrayBuffer()
      return response.status
    }),
  ).finally(() => over.abort())
  const idle = new Set<number>()
  while (!over.signal.aborted) {
    const { rows } = await db.raw<{ rows: { count: number }[] }>(
      `
      select count(*)::integer as count
      from pg_stat_activity
      where datname = current_database()
        and application_name = 'relay silent-store'
        and state = 'idle in transaction'
        and now() - state_change > interval '3 s'
      `,
    )
    idle.add(rows[0]!.count)
    expect((await call('GET', '/destinations')).status).toBe(200)
    expect((await fetch(`${receiver}?serverInfo&pVersion=0045&contRep=Z1`)).status).toBe(200)
  }
  expect(new Set(await creates)).toEqual(new Set([503]))
  expect(idle).toEqual(new Set([0]))
  expect(await db('documents').where({ workspace_id: routes.workspaceId })).toEqual([])
})

test('the job remove-orphans passes over a store that is away, and goes on with the others', async () => {
  await using silent = await startSilentServer((socket) => socket.resume())
  const id = newId()
  await db('contents').insert({ id, workspace_id: workspaceId, store: 's3' })
  const failures: SweepFailure[] = []
  const report = (failure: SweepFailure) => void failures.push(failure)
  expect(await sweepOrphans(db, { s3: openStore(silent) }, new Date(Date.now() + 60_000), undefined, report)).toBe(0)
  expect(failures).toMatchObject([{ store: 's3', reason: expect.stringContaining('failed to remove') }])
  expect(failures[0]!.contentId).toBeUndefined()
  expect(await db('contents').where({ id })).toHaveLength(1)
})
