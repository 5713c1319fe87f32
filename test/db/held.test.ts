import { createConnections } from '../../src/db/connections.ts'
import { createHeld } from '../../src/db/held.ts'
import { createReceipts } from '../../src/db/receipts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createWiring, receiptOf, testConfig } from '../support/factories.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

const holding = async (count: number) => {
  const { db } = database
  const wiring = await createWiring(db, [{ name: 'archive' }], { inactive: ['archive'] })
  for (let made = 0; made < count; made += 1) {
    await createReceipts(db, testConfig()).receive(await receiptOf(wiring, { data: 'hello' }))
  }
  const connectionId = wiring.connections['archive']!
  const isActive = (value: boolean) =>
    createConnections(db).update(wiring.workspaceId, connectionId, { isActive: value }, { type: 'api_key', userId: null })
  return { db, wiring, connectionId, isActive, held: createHeld(db, testConfig()) }
}

describe('a batch of releases', () => {
  it('pins the retry settings of the moment, not those of the receipt', async () => {
    const { db, wiring, connectionId, isActive, held } = await holding(3)
    await isActive(true)
    await db('workspaces')
      .where({ id: wiring.workspaceId })
      .update({ settings: JSON.stringify({ max_retries: 3 }) })
    const { count, messages } = await held.releaseBatch(connectionId, 2)
    expect(count).toBe(2)
    expect(messages.map(({ policy }) => policy.maxRetries)).toEqual([3, 3])
  })

  it('releases each delivery once, though several release at the same time', async () => {
    const { connectionId, isActive, held } = await holding(12)
    await isActive(true)
    const batches = await Promise.all(Array.from({ length: 8 }, () => held.releaseBatch(connectionId, 4)))
    const rest = await held.releaseBatch(connectionId, 100)
    const released = [...batches, rest].flatMap(({ messages }) => messages.map(({ documentId }) => documentId))
    expect(new Set(released).size).toBe(12)
    expect(released).toHaveLength(12)
  })
})

describe('a change of a connection', () => {
  it('asks for a release where it lets go what was held: once, and not where it skips', async () => {
    const { db, wiring, connectionId, isActive } = await holding(1)
    const change = async (attributes: object) => {
      const result = await createConnections(db).update(wiring.workspaceId, connectionId, attributes, { type: 'api_key', userId: null })
      return result && 'messages' in result ? result.messages.length : undefined
    }
    expect(await change({ settings: { on_resume: 'skip' } })).toBe(0)
    expect(await change({ isActive: true })).toBe(0)
    expect(await change({ settings: { on_resume: 'forward' } })).toBe(1)
    expect(await change({ name: 'another' })).toBe(0)
    expect(await change({ isActive: true })).toBe(0)
    await isActive(false)
    expect(await change({ isActive: true })).toBe(1)
  })
})
