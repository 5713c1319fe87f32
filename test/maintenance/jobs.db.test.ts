import { createLog } from '../../src/base/log.ts'
import { findJob, maintenanceJobNames, runJobsLocally } from '../../src/maintenance/jobs.ts'
import { createTestDatabase } from '../support/database.ts'
import { testConfig } from '../support/factories.ts'
import { createMaintenanceDeps, receiveDocument } from '../support/maintenance.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'

const config = testConfig()
const log = createLog('silent')

const database = share(await createTestDatabase())
beforeEach(() => database.db('outbox').delete())

/** Creates the dependencies of the jobs. Messages to Temporal are only recorded. */
const createDeps = () => {
  const sent: string[] = []
  const findWorkflow = async () => ({ state: 'working' as const })
  const temporal = {
    send: async ({ kind }: { kind: string }) => void sent.push(kind),
    findDeliveryWorkflow: findWorkflow,
    findBulkRetryWorkflow: findWorkflow,
    terminateDelivery: async () => {},
    terminateBulkRetry: async () => {},
  }
  return { deps: createMaintenanceDeps(database.db, temporal, config), sent }
}

const receive = () => receiveDocument(database.db, config)

// What a document that has just been received, and a command, give the jobs to do. Each job has tests of its own.
const due: Record<string, RegExp> = { 'sweep-outbox': /^1 messages sent, 0 lines called$/, 'fold-counters': /^[1-9]\d* changes added up$/ }
const nothing = /^(0 |deliveries of 0 |all partitions exist$|[1-9]\d* values computed$)/

describe('every maintenance job', () => {
  test.each(maintenanceJobNames())('%s does what is due, and nothing when it runs again, and says so', async (name) => {
    const job = findJob(name)!
    await receive()
    const { deps } = createDeps()
    const run = () => job.run(deps, { now: new Date(), signal: new AbortController().signal })
    expect(await run()).toMatch(due[name] ?? nothing)
    expect(await run()).toMatch(nothing)
  })
})

describe('if Temporal does not accept schedules', () => {
  test('a worker runs the jobs on its own timers, at once and repeatedly, until it stops', async () => {
    await receive()
    const { deps, sent } = createDeps()
    const stop = runJobsLocally(deps, [{ name: 'sweep-outbox', description: '', intervalMs: 100 }], log)
    await until('the first message is sent', () => sent.length === 1)
    await receive()
    await until('the second message is sent', () => sent.length === 2)
    await stop()
    await receive()
    expect(await database.db('outbox').select('key')).toHaveLength(1)
  })
})
