import { openDatabase } from '../../src/db/database.ts'
import { startApi } from '../support/api.ts'
import { createTestDatabase, databaseConfig } from '../support/database.ts'
import { disposable } from '../support/disposable.ts'
import { createRoutes } from '../support/factories.ts'
import { share } from '../support/share.ts'
import { createSourceSystem } from '../support/source-system.ts'

const poolSize = 10
const flooding = 300
const creates = 8
// Long enough for a busy machine.
const testMs = 600_000

const database = share(await createTestDatabase())
const db = share(
  disposable(openDatabase({ ...databaseConfig(database.url), DATABASE_POOL_MAX_CONNECTIONS: poolSize }, 'test'), (each) => each.destroy()),
)
const api = share(await startApi(db, { variables: { DATABASE_POOL_MAX_CONNECTIONS: String(poolSize) } }))
const noisy = await api.tenant('noisy/prod')
const { workspaceSlug, workspaceId } = await createRoutes(database.db, [{ name: 'archive' }])
const quiet = await api.openTenant({ id: workspaceId, name: `acme/${workspaceSlug}` })
const source = share(disposable(createSourceSystem(`${api.baseUrl}/receiver/acme/${workspaceSlug}`), (each) => each.close()))
const pool = (db.client as { pool: { numUsed(): number; numPendingAcquires(): number } }).pool

// Opening a connection takes longer than a statement.
await Promise.all(Array.from({ length: poolSize }, () => db.raw('select pg_sleep(0.2)')))

/** A viewer that keeps so many requests running. */
const flood = (path: string) => {
  const statuses = new Map<number, number>()
  const end = new AbortController()
  const send = async () => {
    while (!end.signal.aborted) {
      const { status, headers } = await fetch(`${api.baseUrl}/api/noisy/prod${path}`, {
        headers: { authorization: `Bearer ${noisy.keys.viewer}` },
      })
      if (status === 429) expect(headers.get('retry-after')).toBe('5')
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }
  const senders = Array.from({ length: flooding }, send)
  return {
    statuses,
    stop: async () => {
      end.abort()
      await Promise.all(senders)
    },
  }
}

test.each(['/stats', '/documents/search?q=zzz', '/requests?per_page=100'])(
  'a viewer that asks for %s with 300 requests at a time refuses nothing to another workspace',
  async (path) => {
    const noise = flood(path)
    const waiting: number[] = []
    const sampling = setInterval(() => waiting.push(pool.numPendingAcquires()), 5)
    const answers: number[] = []
    const reads: number[] = []
    for (let turn = 0; turn < creates; turn += 1) {
      answers.push((await source.create(`${path.slice(1, 5).toUpperCase()}${turn}`, 'content')).status)
      reads.push((await quiet.call('GET', '/documents')).status)
    }
    clearInterval(sampling)
    await noise.stop()
    expect({ answers, reads }).toEqual({ answers: answers.map(() => 201), reads: reads.map(() => 200) })
    expect([...noise.statuses.keys()].filter((status) => status !== 200 && status !== 429)).toEqual([])
    // No request waits for a connection of the pool: the flood has its share, and the source system the rest.
    expect(Math.max(...waiting)).toBe(0)
  },
  testMs,
)
