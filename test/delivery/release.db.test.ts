import { createReceive } from '../../src/archive/receive.ts'
import { createRelease } from '../../src/delivery/release.ts'
import { createConnections } from '../../src/routing/connections.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'
import { noteAllBegun, startsToCome } from '../support/starts.ts'

const database = share(await createTestDatabase())
beforeEach(() => noteAllBegun(database.db))

/** Receives documents on an inactive connection. @returns what a test needs to release them */
const holdDocuments = async (count: number) => {
  const { db } = database
  const routes = await createRoutes(db, [{ name: 'archive' }], { inactive: ['archive'] })
  for (let index = 0; index < count; index += 1) {
    await createReceive(db, testConfig())(await receivedDocument(routes, { data: 'hello' }))
  }
  const connectionId = routes.connections['archive']!
  const setActive = (value: boolean) =>
    createConnections(db).update(routes.workspaceId, connectionId, { isActive: value }, { type: 'system', userId: null }, 10)
  return { db, routes, connectionId, setActive, release: createRelease(db) }
}

describe('a batch of releases', () => {
  test('uses the current retry settings, not those at the time of receipt', async () => {
    const { db, routes, connectionId, setActive, release } = await holdDocuments(3)
    await setActive(true)
    await db('workspaces')
      .where({ id: routes.workspaceId })
      .update({ settings: JSON.stringify({ max_retries: 3 }) })
    expect(await release.releaseBatch(connectionId, 2)).toEqual({ count: 2 })
    const starts = await startsToCome(db)
    expect(starts).toMatchObject([{ kind: 'startDelivery' }, { kind: 'startDelivery' }])
    expect(starts.map(({ input }) => input.policy.maxRetries)).toEqual([3, 3])
  })

  test('releases each delivery once, even if batches run concurrently', async () => {
    const { db, connectionId, setActive, release } = await holdDocuments(12)
    await setActive(true)
    const batches = await Promise.all(Array.from({ length: 8 }, () => release.releaseBatch(connectionId, 4)))
    const rest = await release.releaseBatch(connectionId, 100)
    expect([...batches, rest].reduce((total, { count }) => total + count, 0)).toBe(12)
    expect(await startsToCome(db)).toHaveLength(12)
  })

  test('cancels what a create has planned for a destination that left the connection meanwhile', async () => {
    const { db, routes, connectionId, setActive, release } = await holdDocuments(1)
    await setActive(true)
    await db('connection_destinations').where({ connection_id: connectionId, destination_id: routes.destinations['archive']! }).delete()
    expect(await release.releaseBatch(connectionId, 10)).toEqual({ count: 1 })
    expect(await db('deliveries').where({ connection_id: connectionId }).pluck('status')).toEqual(['cancelled'])
    expect(await startsToCome(db)).toEqual([])
  })
})

describe('a change of a connection', () => {
  test('requests one release if held deliveries may now be forwarded, and none if the connection skips them', async () => {
    const { db, routes, connectionId, setActive } = await holdDocuments(1)
    const change = async (attributes: object) => {
      const result = await createConnections(db).update(routes.workspaceId, connectionId, attributes, { type: 'system', userId: null }, 10)
      return result && 'messages' in result ? result.messages.length : undefined
    }
    expect(await change({ settings: { on_resume: 'skip' } })).toBe(0)
    expect(await change({ isActive: true })).toBe(0)
    expect(await change({ settings: { on_resume: 'forward' } })).toBe(1)
    expect(await change({ name: 'another' })).toBe(0)
    expect(await change({ isActive: true })).toBe(0)
    await setActive(false)
    expect(await change({ isActive: true })).toBe(1)
  })
})
