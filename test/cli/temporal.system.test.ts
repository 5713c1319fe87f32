import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createReceive } from '../../src/archive/receive.ts'
import { createTemporal } from '../../src/temporal/client.ts'
import { deliveryWorkflowId } from '../../workflows/ids.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'
import { dueStarts, noteAllBegun, startsToCome } from '../support/starts.ts'
import { temporalVariables } from '../support/temporal-cluster.ts'
import { startTemporalServer } from '../support/temporal-server.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

const [database, env] = await Promise.all([createTestDatabase().then(share), startTemporalServer().then(share)])

const relay = async (...args: string[]): Promise<string> => {
  const variables = {
    PATH: process.env['PATH'],
    DATABASE_URL: database.url,
    ...temporalVariables(env),
  }
  return (await promisify(execFile)(process.execPath, [main, ...args], { env: variables })).stdout
}
const reconcile = (...args: string[]) => relay('reconcile', ...args)

const makeOverdue = () => database.db('deliveries').update({ next_attempt_at: new Date(Date.now() - 3_600_000), checked_at: null })

test('relay reconcile has a delivery begun that Temporal does not know, and a dry run only reports it', async () => {
  const { db } = database
  const routes = await createRoutes(db, [{ name: 'archive' }])
  const { messages } = await createReceive(db, testConfig())(await receivedDocument(routes, { data: 'hello' }))
  // As if Temporal had begun it, and forgotten the workflow.
  await noteAllBegun(db)
  const workflow = env.client.workflow.getHandle(deliveryWorkflowId(messages[0]!.input, routes.destinations['archive']!))

  await makeOverdue()
  expect(await reconcile('--dry-run')).toBe('Nothing was changed. A run would report: 1 delivery checked, 1 started.\n')
  expect(await startsToCome(db)).toEqual([])
  expect(JSON.parse(await reconcile('--json'))).toEqual({
    dry_run: false,
    checked: 1,
    started: 1,
    retried: 0,
    failed: 0,
    cancelled: 0,
    complete: true,
    bulk_retries_started: 0,
    bulk_retries_cancelled: 0,
  })
  // The dispatcher of a worker sends it.
  const [start] = await dueStarts(db)
  expect(start).toMatchObject({ kind: 'startDelivery' })
  await createTemporal(env.client, env.connection, testConfig()).send(start!)
  expect((await workflow.describe()).status.name).toBe('RUNNING')
  await noteAllBegun(db)
  await makeOverdue()
  expect(await reconcile()).toBe('1 delivery checked.\n')
}, 240_000)

test('relay retry starts the failed deliveries of a document again, once', async () => {
  const { db } = database
  const routes = await createRoutes(db, [{ name: 'archive' }])
  const { messages } = await createReceive(db, testConfig())(await receivedDocument(routes, { data: 'hello' }, 'RETRY1'))
  await db('deliveries')
    .where({ document_id: messages[0]!.input.documentId })
    .update({ status: 'failed', last_error: 'the target is gone' })
  expect(await relay('find', 'retry')).toContain('archive: failed')
  expect(JSON.parse(await relay('retry', 'RETRY1', '--json'))).toMatchObject({ doc_id: 'RETRY1', deliveries: [{ status: 'retrying' }] })
  const workflow = env.client.workflow.getHandle(deliveryWorkflowId(messages[0]!.input, routes.destinations['archive']!))
  expect((await workflow.describe()).status.name).toBe('RUNNING')
  expect(await relay('show', 'RETRY1')).toMatch(/^Document {3}RETRY1, .*\n/)
  await expect(relay('retry', 'RETRY1')).rejects.toThrow('relay: There is nothing to retry: the delivery is in progress.')
}, 240_000)
