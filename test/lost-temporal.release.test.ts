import { execFile } from 'node:child_process'
import { cp, readdir, rm } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { createKey } from '../src/access/key-administration.ts'
import { createTestDatabase } from './support/database.ts'
import { createRoutes } from './support/factories.ts'
import { createFolder } from './support/folder.ts'
import { startHttpTarget, type Arrival } from './support/http-target.ts'
import { startOwnTemporal } from './support/own-temporal.ts'
import { createRelayProcesses, relayVariables, saveTarget } from './support/relay-process.ts'
import { share } from './support/share.ts'
import { until } from './support/until.ts'

const run = promisify(execFile)
const namespaceMissingMs = 5_000
const namespace = 'relay'

// Real processes run through the loss of Temporal's state. Nothing is restarted but Temporal.

/** How the target answers each docId, by the end of its URL. */
const answers = new Map<string, number | 'hang'>()
const hanging = new Map<string, ServerResponse[]>()
/** Answers with 200, by docId. */
const accepted: string[] = []

const docIdOf = ({ body }: Arrival) => body.toString()

const database = share(await createTestDatabase())
const target = share(await startHttpTarget())
target.answerWith((arrival, response) => {
  const docId = docIdOf(arrival)
  const answer = answers.get(docId) ?? 200
  if (answer === 'hang') {
    hanging.set(docId, [...(hanging.get(docId) ?? []), response])
    return
  }
  if (answer === 200) accepted.push(docId)
  response.writeHead(answer).end()
})

/** Creates the namespace if it is missing, but only after the workers have missed it. */
const ensureNamespace = async (address: string) => {
  const operator = (...args: string[]) => run(process.env.TEST_TEMPORAL_BIN!, ['operator', ...args, '--address', address])
  const exists = await operator('namespace', 'describe', namespace).then(
    () => true,
    () => false,
  )
  if (!exists) {
    await delay(namespaceMissingMs)
    await operator('namespace', 'create', namespace)
  }
}

const temporal = share(await startOwnTemporal(ensureNamespace))
const processes = share(
  createRelayProcesses({
    ...relayVariables(database, temporal),
    TEMPORAL_NAMESPACE: namespace,
    RECONCILE_INTERVAL_MS: '2000',
    DELIVERY_HEARTBEAT_TIMEOUT_MS: '6000',
  }),
)
const [api, worker] = await Promise.all([processes.start('api'), processes.start('worker')])
const { path: backupDir } = share(await createFolder())

const removeState = async () => {
  for (const file of await readdir(temporal.dataDir)) if (file.startsWith('temporal.sqlite')) await rm(join(temporal.dataDir, file))
}

/** Stops Temporal, changes its files, and starts it again. */
const restartTemporal = async (change: () => Promise<unknown>) => {
  await temporal.stop()
  await change()
  await temporal.start()
}

const backUpTemporal = () => restartTemporal(() => cp(temporal.dataDir, backupDir, { recursive: true }))
const restoreTemporal = () =>
  restartTemporal(async () => {
    await removeState()
    await cp(backupDir, temporal.dataDir, { recursive: true })
  })

interface Resource {
  data: { id: string; attributes: { status: string } }
}

/** Creates a workspace with a connection to the target. */
const createWorkspace = async (options: { inactive?: string[] } = {}) => {
  const routes = await createRoutes(database.db, [{ name: 'web', config: { url: target.origin } }], {
    ...options,
    workspaceSettings: { retry_initial_interval_seconds: 2, retry_max_interval_seconds: 2, max_retries: 30 },
  })
  await saveTarget(database.db, { workspaceId: routes.workspaceId, id: routes.destinations['web']! }, 'webhook', { url: target.origin }, {})
  const { key } = await createKey(database.db, { workspace: `acme/${routes.workspaceSlug}`, level: 'admin' })
  const call = async (method: string, path: string, body?: object): Promise<Resource | undefined> => {
    const response = await fetch(`${api.baseUrl}/api/acme/${routes.workspaceSlug}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    return response.status === 204 ? undefined : ((await response.json()) as Resource)
  }
  return {
    ...routes,
    call,
    /** Sends a document to the receiver, which the target answers in this way. */
    create: async (docId: string, answer: number | 'hang') => {
      answers.set(docId, answer)
      const url = `${api.baseUrl}/receiver/acme/${routes.workspaceSlug}?create&pVersion=0045&contRep=Z1&docId=${docId}&compId=data`
      expect((await fetch(url, { method: 'PUT', body: docId })).status).toBe(201)
    },
    idOf: async (docId: string): Promise<string> => (await database.db('documents').where({ doc_id: docId }).first('id')).id,
  }
}

const statusOf = async (docId: string): Promise<string> =>
  (await database.db('deliveries').join('documents', 'documents.id', 'document_id').where({ doc_id: docId }).first('deliveries.status'))
    .status
const untilStatus = (docId: string, status: string) =>
  until(
    `${docId} is ${status}`,
    () => statusOf(docId),
    (found) => found === status,
    240_000,
  )
const untilHanging = (docId: string) => until(`${docId} is being sent`, () => hanging.has(docId))
const untilOutboxEmpty = () => until('the outbox is empty', async () => (await database.db('outbox').select('key')).length === 0)

/** Aborts an attempt that the target has not answered, as a lost attempt ends. */
const abortHanging = (docId: string) => {
  for (const response of hanging.get(docId) ?? []) response.destroy()
  hanging.delete(docId)
}

/** Waits until every document is delivered, and expects that the target has accepted each of them once. */
const expectDeliveredOnce = async (docIds: string[]) => {
  for (const docId of docIds) {
    answers.set(docId, 200)
    abortHanging(docId)
  }
  for (const docId of docIds) await untilStatus(docId, 'delivered')
  expect(accepted.filter((docId) => docIds.includes(docId)).toSorted()).toEqual(docIds.toSorted())
}

/** Returns the number of open workflows whose id names the document. */
const openWorkflows = async (docId: string): Promise<number> => {
  const query = ['--query', "ExecutionStatus = 'Running'", '--limit', '1000', '--namespace', namespace, '--output', 'json']
  const { stdout } = await run(process.env.TEST_TEMPORAL_BIN!, ['workflow', 'list', ...query, '--address', temporal.address])
  const listed = JSON.parse(stdout) as { execution: { workflowId: string } }[]
  return listed.filter(({ execution }) => execution.workflowId.includes(docId)).length
}

const areAlive = () => [api, worker].every(({ child }) => child.exitCode === null && child.signalCode === null)

test('if Temporal comes back empty, every open delivery is delivered once, without a restart of the relay', async () => {
  const active = await createWorkspace()
  const paused = await createWorkspace({ inactive: ['web'] })
  await active.create('E-DELIVERED', 200)
  await active.create('E-BACKOFF', 503)
  await active.create('E-ATTEMPT', 'hang')
  await active.create('E-FAILED', 403)
  await active.create('E-BULK', 403)
  await paused.create('E-HELD', 200)
  await untilStatus('E-DELIVERED', 'delivered')
  await untilStatus('E-BACKOFF', 'retrying')
  await untilStatus('E-FAILED', 'failed')
  await untilStatus('E-BULK', 'failed')
  await untilHanging('E-ATTEMPT')
  answers.set('E-FAILED', 503)
  await active.call('POST', `/documents/${await active.idOf('E-FAILED')}/retry`)
  await untilOutboxEmpty()

  await temporal.stop()
  // Acknowledged while Temporal is away: the messages wait in the outbox.
  await active.create('E-UNSENT', 200)
  await paused.call('PATCH', `/connections/${paused.connections['web']}`, { is_active: true })
  await removeState()
  await temporal.start()

  const { id: bulkRetryId } = (await active.call('POST', '/documents/retry', {}))!.data
  await expectDeliveredOnce(['E-DELIVERED', 'E-BACKOFF', 'E-ATTEMPT', 'E-FAILED', 'E-BULK', 'E-HELD', 'E-UNSENT'])
  await until('the bulk retry is completed', async () => {
    return (await active.call('GET', `/bulk-retries/${bulkRetryId}`))!.data.attributes.status === 'completed'
  })
  // The namespace is new, and the worker has made it usable again.
  await active.create('E-LATER', 200)
  await expectDeliveredOnce(['E-LATER'])
  expect(areAlive()).toBe(true)
}, 600_000)

test('if Temporal is restored from an older backup, every open delivery is delivered once, without a restart of the relay', async () => {
  const active = await createWorkspace()
  const paused = await createWorkspace({ inactive: ['web'] })
  const toDelete = await createWorkspace()
  const deleted = await createWorkspace()
  await active.create('R-BACKOFF', 503)
  await active.create('R-FAILED', 403)
  await active.create('R-RETRIED', 403)
  await active.create('R-DELIVERED', 503)
  await active.create('R-ATTEMPT', 'hang')
  await paused.create('R-HELD', 503)
  await toDelete.create('R-CANCELLED', 403)
  await deleted.create('R-DELETED', 503)
  for (const docId of ['R-BACKOFF', 'R-DELIVERED', 'R-DELETED']) await untilStatus(docId, 'retrying')
  for (const docId of ['R-FAILED', 'R-RETRIED', 'R-CANCELLED']) await untilStatus(docId, 'failed')
  await untilHanging('R-ATTEMPT')
  await untilOutboxEmpty()
  await backUpTemporal()

  // Temporal forgets what happens from here on.
  answers.set('R-DELIVERED', 200)
  await untilStatus('R-DELIVERED', 'delivered')
  await active.create('R-NEW', 503)
  await untilStatus('R-NEW', 'retrying')
  answers.set('R-RETRIED', 503)
  await active.call('POST', `/documents/${await active.idOf('R-RETRIED')}/retry`)
  await paused.call('PATCH', `/connections/${paused.connections['web']}`, { is_active: true })
  await untilStatus('R-HELD', 'retrying')
  await deleted.call('DELETE', `/destinations/${deleted.destinations['web']}`)
  await untilStatus('R-DELETED', 'cancelled')
  await untilOutboxEmpty()
  // A worker that Temporal leaves in the middle of this keeps a newer state of the workflow than the restored server has.
  await until('the cancellation has ended the workflow', async () => (await openWorkflows('R-DELETED')) === 0)
  answers.set('R-DELETED', 200)
  await restoreTemporal()

  await expectDeliveredOnce(['R-DELIVERED', 'R-BACKOFF', 'R-ATTEMPT', 'R-RETRIED', 'R-HELD', 'R-NEW'])
  // A delivery that has failed waits for an operator as before.
  expect(await statusOf('R-FAILED')).toBe('failed')
  answers.set('R-FAILED', 200)
  await active.call('POST', `/documents/${await active.idOf('R-FAILED')}/retry`)
  await untilStatus('R-FAILED', 'delivered')
  await toDelete.call('DELETE', `/destinations/${toDelete.destinations['web']}`)
  await untilStatus('R-CANCELLED', 'cancelled')
  // Temporal has also forgotten the cancellation: the workflow ends by itself, and sends nothing.
  await until('the workflow of the deleted destination has ended', async () => (await openWorkflows('R-DELETED')) === 0)
  expect(await statusOf('R-DELETED')).toBe('cancelled')
  expect(accepted).not.toContain('R-DELETED')
  expect(areAlive()).toBe(true)
}, 600_000)
