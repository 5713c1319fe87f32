import { createPostgresStore } from '../src/content/postgres.ts'
import { findJob, maintenanceJobNames, runJobsLocally, type MaintenanceDeps } from '../src/maintenance.ts'
import { createBulkRetries } from '../src/delivery/bulk-retry.ts'
import { createReconcile } from '../src/delivery/reconcile.ts'
import { createRelease } from '../src/delivery/release.ts'
import { createCheckIncidents } from '../src/notices/check-incidents.ts'
import { createOutbox } from '../src/db/outbox.ts'
import { createReceive } from '../src/archive/receive.ts'
import { createLog } from '../src/log.ts'
import { createLauncher } from '../src/temporal/launcher.ts'
import { createTestDatabase, type TestDatabase } from './support/database.ts'
import { createRoutes, receivedDocument, testConfig } from './support/factories.ts'
import { until } from './support/until.ts'

const config = testConfig({ OUTBOX_SWEEP_AGE_MS: '0', OUTBOX_SWEEP_INTERVAL_MS: '1000' })
const log = createLog('silent')

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())
beforeEach(() => database.db('outbox').delete())

/** Creates the dependencies of the jobs. Messages to Temporal are only recorded. */
const createDeps = () => {
  const { db } = database
  const sent: string[] = []
  const temporal = { send: async ({ kind }: { kind: string }) => void sent.push(kind) }
  const launcher = createLauncher(temporal, createOutbox(db), config, log)
  const findWorkflow = async () => ({ state: 'working' as const })
  const workflows = {
    findDeliveryWorkflow: findWorkflow,
    findBulkRetryWorkflow: findWorkflow,
    terminateDelivery: async () => {},
    terminateBulkRetry: async () => {},
  }
  const deps: MaintenanceDeps = {
    db,
    stores: { postgres: createPostgresStore(db), s3: undefined },
    release: createRelease(db, config),
    launcher,
    checkIncidents: createCheckIncidents(db, config),
    reconcile: createReconcile(db, workflows, createBulkRetries(db, config), launcher.sendAll, config),
    config,
  }
  return { deps, sent }
}

const receive = async () => {
  const { db } = database
  await createReceive(db, config)(await receivedDocument(await createRoutes(db, [{ name: 'archive' }]), { data: 'hello' }))
}

describe('every maintenance job', () => {
  test.each(maintenanceJobNames())('%s can run twice and returns a summary', async (name) => {
    const job = findJob(name)!
    await receive()
    const { deps } = createDeps()
    expect(await job.run(deps, { now: new Date(), signal: new AbortController().signal })).toMatch(/\w/)
    expect(await job.run(deps, { now: new Date(), signal: new AbortController().signal })).toMatch(
      /^(0 |deliveries of 0 |all partitions exist|\d+ values computed)/,
    )
  })
})

describe('if Temporal does not accept schedules', () => {
  test('a worker runs the jobs on its own timers, at once and repeatedly, until it stops', async () => {
    await receive()
    const { deps, sent } = createDeps()
    const stop = runJobsLocally(deps, config, log)
    await until('the first message is sent', () => sent.length === 1)
    await receive()
    await until('the second message is sent', () => sent.length === 2)
    await stop()
    await receive()
    expect(await database.db('outbox').select('key')).toHaveLength(1)
  })
})
