import { createPostgresStore } from '../src/content/postgres.ts'
import { allChores, runChoresHere, type ChoreDeps } from '../src/chores.ts'
import { createHeld } from '../src/db/held.ts'
import { createOutbox } from '../src/db/outbox.ts'
import { createReceipts } from '../src/db/receipts.ts'
import { createLog } from '../src/log.ts'
import { createLauncher } from '../src/temporal/launcher.ts'
import { createTestDatabase, type TestDatabase } from './support/database.ts'
import { createWiring, receiptOf, testConfig } from './support/factories.ts'
import { until } from './support/until.ts'

const config = testConfig({ OUTBOX_SWEEP_AGE_MS: '0', OUTBOX_SWEEP_INTERVAL_MS: '1000' })
const log = createLog('silent')

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())
beforeEach(() => database.db('outbox').delete())

/** Everything that chores need; what they would tell Temporal is only noted. */
const depsOf = () => {
  const { db } = database
  const sent: string[] = []
  const temporal = { send: async ({ kind }: { kind: string }) => void sent.push(kind) }
  const deps: ChoreDeps = {
    db,
    stores: { postgres: createPostgresStore(db), s3: undefined },
    held: createHeld(db, config),
    launcher: createLauncher(temporal, createOutbox(db), config, log),
    config,
  }
  return { deps, sent }
}

const receive = async () => {
  const { db } = database
  await createReceipts(db, config).receive(await receiptOf(await createWiring(db, [{ name: 'archive' }]), { data: 'hello' }))
}

describe('every chore', () => {
  it.each(allChores().map((chore) => [chore.name, chore] as const))('%s can run twice, and tells what it has done', async (_, chore) => {
    await receive()
    const { deps } = depsOf()
    expect(await chore.run(deps, { now: new Date(), signal: new AbortController().signal })).toMatch(/\w/)
    expect(await chore.run(deps, { now: new Date(), signal: new AbortController().signal })).toMatch(/^(0 |partitions are there)/)
  })
})

describe('where Temporal takes no schedules', () => {
  it('a worker runs the chores itself, at once and again and again, until it stops', async () => {
    await receive()
    const { deps, sent } = depsOf()
    const stop = runChoresHere(deps, config, log)
    await until('the first is sent', () => sent.length === 1)
    await receive()
    await until('the second is sent', () => sent.length === 2)
    await stop()
    await receive()
    expect(await database.db('outbox').select('key')).toHaveLength(1)
  })
})
