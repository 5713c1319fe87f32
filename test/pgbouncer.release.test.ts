import { fileURLToPath } from 'node:url'
import { migrationSource } from '../src/db/migrations.ts'
import { maintenanceJobNames } from '../src/maintenance/jobs.ts'
import { runProgram } from '../src/programs/programs.ts'
import { startHttpTarget } from './support/http-target.ts'
import { createInstallation } from './support/installation.ts'
import { linesOfLevel } from './support/log-lines.ts'
import { startPgbouncer } from './support/pgbouncer.ts'
import { routeToWebhook } from './support/relay-process.ts'
import { createSourceSystem } from './support/source-system.ts'
import { until } from './support/until.ts'

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))
// Fewer than the 20 connections of the two processes.
const sessions = 3
// With fewer, each connection runs a statement once, and a prepared one would not be noticed.
const documentCount = 20

/** Returns the maintenance jobs that have run without an error. */
const completedJobs = async ({ env }: Awaited<ReturnType<typeof createInstallation>>): Promise<string[]> => {
  const completed: string[] = []
  for await (const { workflowId, runId } of env.client.workflow.list({ query: `WorkflowType = 'maintenance'` })) {
    const { events } = await env.client.workflow.getHandle(workflowId, runId).fetchHistory()
    if (events?.some((event) => event.activityTaskCompletedEventAttributes)) completed.push(workflowId)
  }
  return maintenanceJobNames().filter((name) => completed.some((id) => id.startsWith(`relay-${name}-`)))
}

test('with transaction pooling, relay migrate creates the schema, documents are delivered, and every maintenance job runs', async () => {
  await using target = await startHttpTarget()
  await using installation = await createInstallation({ DATABASE_TRANSACTION_POOLING: 'true', TEMPORAL_START_TIMEOUT_MS: '60000' })
  const { database } = installation
  await using pooler = await startPgbouncer(database.url, { pool_mode: 'transaction', default_pool_size: String(sessions) })
  const throughPooler = { DATABASE_URL: pooler.url }
  const { PATH, HOME } = process.env as Record<string, string>

  await database.db.raw('drop schema public cascade; create schema public')
  const migrated = await runProgram(process.execPath, [main, 'migrate', '--json'], {
    env: { PATH: PATH!, HOME: HOME!, ...installation.variables, ...throughPooler },
    timeoutMs: 110_000,
  })
  const names = (await migrationSource.getMigrations([])).map((migration) => migrationSource.getMigrationName(migration))
  expect(JSON.parse(migrated)).toEqual({ applied: names, search_attributes: true })

  const [api, worker] = await Promise.all([installation.start('api', throughPooler), installation.start('worker', throughPooler)])
  const logs = [api, worker].map(({ child }) => {
    const log: string[] = []
    child.stderr!.on('data', (data: Buffer) => log.push(data.toString()))
    return log
  })

  const { workspaceSlug, workspaceId } = await routeToWebhook(database, target.origin)
  const source = createSourceSystem(`${api.baseUrl}/receiver/acme/${workspaceSlug}`)
  // One takes several windows of COPY.
  const sizes = Array.from({ length: documentCount }, (_, index) => (index === 0 ? 3_000_000 : 1_000 + index))
  const created = await Promise.all(sizes.map((size, index) => source.create(`D${index}`, Buffer.alloc(size, 'document '))))
  expect(created.map(({ status }) => status)).toEqual(sizes.map(() => 201))
  const statuses = () => database.db('deliveries').where({ workspace_id: workspaceId }).pluck('status')
  await until('every document is delivered', statuses, (all) => all.every((status) => status === 'delivered'))
  expect(target.arrivals.map(({ sizeBytes }) => sizeBytes).toSorted((one, other) => one - other)).toEqual([...sizes.slice(1), sizes[0]])
  await until(
    'every maintenance job has run',
    () => completedJobs(installation),
    (jobs) => jobs.length === maintenanceJobNames().length,
  )

  await source.close()
  expect([await api.stop(), await worker.stop()]).toEqual([0, 0])
  expect(logs.flatMap((log) => linesOfLevel(log.join(''), ['error', 'fatal']))).toEqual([])
})
