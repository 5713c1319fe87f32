import { createReceive } from '../../src/archive/receive.ts'
import { newId } from '../../src/base/ids.ts'
import { record, systemActor } from '../../src/db/audit.ts'
import type { OutboxMessage } from '../../src/db/outbox.ts'
import { createBulkRetries } from '../../src/delivery/bulk-retry.ts'
import { createLoadJob } from '../../src/delivery/delivery-job.ts'
import { countOverdue } from '../../src/delivery/overdue.ts'
import { createReconcile, decide, describeReconciled, type WorkflowState } from '../../src/delivery/reconcile.ts'
import { createRecordAttempt, type AttemptEnd } from '../../src/delivery/record-attempt.ts'
import { recordTermination } from '../../src/delivery/transition.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, firstRound, receivedDocument, testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'
import { dueStarts, startsToCome } from '../support/starts.ts'

// Temporal answers as each test says. test/delivery/reconcile.system.test.ts asks a real one.

const config = testConfig()
const missing: WorkflowState = { state: 'missing' }
const working: WorkflowState = { state: 'working' }
const stuck: WorkflowState = { state: 'stuck', runId: 'first', historyLength: 7 }

const database = share(await createTestDatabase())

beforeEach(async () => {
  await database.db('bulk_retries').delete()
  await database.db('deliveries').update({ status: 'delivered', begin_at: null })
  await database.db('outbox').delete()
})

type Answer = (destinationId: string, documentId: string) => WorkflowState | Promise<WorkflowState>

const setUp = (answer: Answer, limits: { maxInOrder?: number } = {}) => {
  const { db } = database
  const sent: OutboxMessage[] = []
  const asked: string[] = []
  const terminated: string[] = []
  const bulkRetries = createBulkRetries(db)
  const workflows = {
    findDeliveryWorkflow: async (document: { documentId: string }, _revision: number, destinationId: string) => {
      asked.push(document.documentId)
      return answer(destinationId, document.documentId)
    },
    findBulkRetryWorkflow: async ({ bulkRetryId }: { bulkRetryId: string }) => answer(bulkRetryId, ''),
    terminateDelivery: async ({ documentId }: { documentId: string }, _: string, runId: string) =>
      void terminated.push(`${documentId}/${runId}`),
    terminateBulkRetry: async ({ bulkRetryId }: { bulkRetryId: string }, runId: string) => void terminated.push(`${bulkRetryId}/${runId}`),
  }
  const sendAll = async (messages: OutboxMessage[]) => void sent.push(...messages)
  return {
    reconcile: createReconcile(db, workflows, bulkRetries, sendAll, config, limits),
    sent,
    asked,
    terminated,
    bulkRetries,
  }
}

/** Receives documents that have been begun, and whose last sign of life was some time ago. */
const receive = async (count: number, { overdueMs = 3_600_000, status = 'pending' } = {}) => {
  const { db } = database
  const routes = await createRoutes(db, [{ name: 'archive' }])
  const ids: string[] = []
  for (let index = 0; index < count; index += 1) {
    const { messages } = await createReceive(db, config)(await receivedDocument(routes, { data: 'hello' }))
    ids.push(messages[0]!.input.documentId)
  }
  await db('deliveries').whereIn('document_id', ids).update({ status, begin_at: null })
  await makeOverdue(ids, overdueMs)
  return { ...routes, ids, destinationId: routes.destinations['archive']! }
}

const makeOverdue = (ids: string[], overdueMs: number) =>
  database
    .db('deliveries')
    .whereIn('document_id', ids)
    .update({ next_attempt_at: new Date(Date.now() - overdueMs), checked_at: null })

const deliveryOf = (id: string) => database.db('deliveries').where({ document_id: id }).first()

describe('the reconciler', () => {
  test.each(['pending', 'retrying'])('starts a %s delivery again whose workflow is missing, once', async (status) => {
    const { ids } = await receive(2, { status })
    const { reconcile } = setUp(() => missing)
    expect(await reconcile()).toMatchObject({ checked: 2, started: 2, complete: true })
    const starts = await dueStarts(database.db)
    expect(new Set(starts.map(({ kind, input }) => kind === 'startDelivery' && input.documentId))).toEqual(new Set(ids))
    expect(starts[0]).toMatchObject({
      input: { revision: 1, destination: { name: 'archive', connector: 'webhook' }, docId: expect.any(String) },
    })
    expect(await reconcile()).toMatchObject({ checked: 0, started: 0 })
  })

  test('leaves a delivery alone on which a workflow works, and asks about it again only when it is overdue again', async () => {
    const { ids } = await receive(3)
    const { reconcile, sent, asked } = setUp(() => working)
    expect(await reconcile()).toMatchObject({ checked: 3, started: 0 })
    expect(await reconcile()).toMatchObject({ checked: 0 })
    expect([sent, await startsToCome(database.db), asked.toSorted()]).toEqual([[], [], ids.toSorted()])
    await makeOverdue(ids, 3_600_000)
    expect(await reconcile()).toMatchObject({ checked: 3 })
  })

  test.each(['held', 'delivered', 'failed', 'cancelled'])('does not ask about a delivery that is %s', async (status) => {
    await receive(1, { status })
    expect(await setUp(() => missing).reconcile()).toMatchObject({ checked: 0, started: 0 })
  })

  test('does not ask about a delivery that has just shown a sign of life, or that the dispatcher has to begin', async () => {
    const { ids } = await receive(2, { overdueMs: 10_000 })
    const { reconcile } = setUp(() => missing)
    expect(await reconcile()).toMatchObject({ checked: 0 })
    await makeOverdue(ids, 3_600_000)
    await database.db('deliveries').whereIn('document_id', ids).update({ begin_at: database.db.fn.now() })
    expect(await countOverdue(database.db, config)).toBe(0)
    expect(await reconcile()).toMatchObject({ checked: 0 })
  })

  test('leaves a delivery alone that ends, or gets a sign of life, while Temporal is asked', async () => {
    const { db } = database
    const { ids } = await receive(3)
    const { reconcile } = setUp(async (_, id) => {
      if (id === ids[0]) await db('deliveries').where({ document_id: id }).update({ status: 'delivered' })
      if (id === ids[1]) await db('deliveries').where({ document_id: id }).update({ next_attempt_at: db.fn.now() })
      return missing
    })
    expect(await reconcile()).toMatchObject({ checked: 3, started: 1 })
    expect(await dueStarts(db)).toMatchObject([{ input: { documentId: ids[2] } }])
    expect((await deliveryOf(ids[0]!)).status).toBe('delivered')
  })

  test('starts each delivery once if two runs coincide', async () => {
    await receive(40)
    const runs = Array.from({ length: 4 }, () => setUp(() => missing))
    const results = await Promise.all(runs.map(({ reconcile }) => reconcile()))
    expect(results.reduce((total, { started }) => total + started, 0)).toBe(40)
    expect(await dueStarts(database.db)).toHaveLength(40)
  })

  test('records what an operator has ended, and retries what waits for an operator although a retry was requested', async () => {
    const closedAt = new Date(Date.now() + 60_000)
    const [terminated, cancelled, waiting, erased, removed] = (await receive(5)).ids as [string, string, string, string, string]
    await database.db('documents').whereIn('id', [erased, removed]).update({ content_id: null })
    const { workspace_id: workspaceId } = await database.db('documents').where({ id: erased }).first()
    await database.db.transaction((trx) =>
      record(trx, { workspaceId, event: 'document.erased', subjectId: erased, description: 'x', metadata: {}, actor: systemActor }),
    )
    const answers: Record<string, WorkflowState> = {
      [terminated]: { state: 'terminated', runId: 'first', closedAt },
      [cancelled]: { state: 'cancelled', runId: 'first', closedAt },
      [waiting]: { state: 'waiting' },
      [erased]: missing,
      [removed]: missing,
    }
    const { reconcile } = setUp((_, id) => answers[id]!)
    expect(await reconcile()).toMatchObject({ checked: 5, started: 0, retried: 1, failed: 2, cancelled: 2 })
    const starts = await dueStarts(database.db)
    expect(starts).toMatchObject([{ kind: 'retryDelivery', requestId: expect.stringMatching(/^\d+$/), input: { documentId: waiting } }])
    expect(await deliveryOf(terminated)).toMatchObject({
      status: 'failed',
      last_error: 'the delivery workflow was terminated',
      ended_by: 'workflow_terminated',
      next_attempt_at: null,
    })
    expect(await deliveryOf(cancelled)).toMatchObject({
      status: 'failed',
      last_error: 'the delivery workflow was cancelled',
      ended_by: 'workflow_cancelled',
    })
    expect(await deliveryOf(erased)).toMatchObject({ status: 'cancelled', ended_by: 'document_erased' })
    expect(await deliveryOf(removed)).toMatchObject({ status: 'cancelled', ended_by: 'content_removed' })
  })

  test('terminates the run of a workflow that is stuck at two checks before it starts the delivery again, but not in a dry run', async () => {
    const { ids } = await receive(1)
    const { reconcile, terminated } = setUp(() => stuck)
    expect(await reconcile()).toMatchObject({ checked: 1, started: 0 })
    // Not twice in one interval.
    expect(await reconcile()).toMatchObject({ checked: 0 })
    await makeOverdue(ids, 3_600_000)
    expect([await reconcile({ dryRun: true }), terminated]).toEqual([expect.objectContaining({ started: 1 }), []])
    expect(await reconcile()).toMatchObject({ checked: 1, started: 1 })
    // Not before the workflow has been ended.
    expect([terminated, await dueStarts(database.db)]).toEqual([[`${ids[0]}/first`], []])
    expect(await startsToCome(database.db)).toMatchObject([{ kind: 'startDelivery' }])
  })

  test.each<[string, WorkflowState[]]>([
    ['its history has grown', [stuck, { ...stuck, historyLength: 8 }, { ...stuck, historyLength: 9 }]],
    ['another run has followed', [stuck, { ...stuck, runId: 'second' }, stuck]],
    ['it was at work in between', [stuck, working, stuck]],
    ['it was paused in between', [stuck, { state: 'paused' }, stuck]],
  ])('terminates no workflow that has made progress between two checks: %s', async (_, answers) => {
    const { ids } = await receive(1)
    const { reconcile, terminated } = setUp(() => answers.shift()!)
    while (answers.length > 0) {
      expect(await reconcile()).toMatchObject({ checked: 1, started: 0 })
      await makeOverdue(ids, 3_600_000)
    }
    expect([terminated, await startsToCome(database.db)]).toEqual([[], []])
  })

  test('terminates no workflow whose delivery has moved on, or is being changed, since Temporal was asked', async () => {
    const { db } = database
    const { ids } = await receive(5)
    const [ended, alive, begun, locked, unchanged] = ids as [string, string, string, string, string]
    const lock = await db.transaction()
    const deliveryIs = (id: string) => db('deliveries').where({ document_id: id })
    const moves: Record<string, () => PromiseLike<unknown>> = {
      [ended]: () => deliveryIs(ended).update({ status: 'delivered' }),
      [alive]: () => deliveryIs(alive).update({ next_attempt_at: db.fn.now() }),
      [begun]: () => deliveryIs(begun).update({ begin_at: db.fn.now() }),
      [locked]: () => lock('documents').where({ id: locked }).forUpdate(),
    }
    let check = 0
    const { reconcile, terminated } = setUp(async (_, id) => {
      if (check === 2) await moves[id]?.()
      return stuck
    })
    try {
      for (check = 1; check <= 2; check += 1) {
        await makeOverdue(ids, 3_600_000)
        expect(await reconcile()).toMatchObject({ checked: 5, started: check === 1 ? 0 : 1 })
      }
    } finally {
      await lock.rollback()
    }
    expect(terminated).toEqual([`${unchanged}/first`])
  })

  test('calls a workflow that sleeps, and terminates nothing, however often', async () => {
    const { ids } = await receive(2)
    const { reconcile, terminated, sent } = setUp(() => ({ state: 'asleep' }))
    for (let check = 0; check < 3; check += 1) {
      await makeOverdue(ids, 3_600_000)
      expect(await reconcile()).toMatchObject({ checked: 2, started: 2 })
    }
    expect(new Set(sent.map(({ kind }) => kind))).toEqual(new Set(['wakeDelivery']))
    expect(sent).toHaveLength(6)
    expect(sent[0]).toMatchObject({ input: { documentId: ids[0], destination: { name: 'archive' }, policy: {} } })
    expect([terminated, await startsToCome(database.db)]).toEqual([[], []])
  })

  test('a delivery whose workflow the reconciler has terminated does not fail, however late its end becomes known', async () => {
    const { db } = database
    const { ids, destinationId } = await receive(2)
    const [replaced, suspected] = [ids[0]!, ids[1]!]
    const { reconcile } = setUp((_, id) => (id === replaced ? stuck : working))
    await reconcile()
    await makeOverdue(ids, 3_600_000)
    await reconcile()
    const terminated = (documentId: string, runId = 'first') => recordTermination(db, { documentId, destinationId, runId })
    expect(await terminated(replaced)).toBe('pending')
    // The next run was begun, and has been checked since.
    await db('deliveries').where({ document_id: replaced }).update({ begin_at: null })
    await makeOverdue(ids, 3_600_000)
    await setUp(() => working).reconcile()
    expect(await terminated(replaced)).toBe('pending')
    expect(await deliveryOf(replaced)).toMatchObject({ status: 'pending', last_error: null })
    // A person ends the next run.
    expect(await terminated(replaced, 'second')).toBeUndefined()
    expect(await deliveryOf(replaced)).toMatchObject({ status: 'failed', ended_by: 'workflow_terminated' })

    // A person ends a run that the reconciler has suspected only, just after its check.
    await makeOverdue(ids, 3_600_000)
    await setUp(() => stuck).reconcile()
    expect(await terminated(suspected)).toBeUndefined()
    expect(await deliveryOf(suspected)).toMatchObject({
      last_error: 'the delivery workflow was terminated',
      ended_by: 'workflow_terminated',
    })
  })

  test('a delivery whose workflow the reconciler has terminated is started again, although its start has been lost', async () => {
    const { ids } = await receive(1)
    let found: WorkflowState = stuck
    const { reconcile } = setUp(() => found)
    for (let check = 0; check < 2; check += 1) {
      await reconcile()
      await makeOverdue(ids, 3_600_000)
    }
    await database.db('deliveries').update({ begin_at: null })
    found = { state: 'terminated', runId: 'first', closedAt: new Date(Date.now() + 60_000) }
    expect(await reconcile()).toMatchObject({ checked: 1, started: 1, failed: 0 })
    expect(await dueStarts(database.db)).toMatchObject([{ kind: 'startDelivery' }])
    expect(await deliveryOf(ids[0]!)).toMatchObject({ status: 'pending' })
  })

  test('a paused delivery waits for an operator, until Temporal says that its workflow works', async () => {
    const { ids } = await receive(1)
    let found: WorkflowState = { state: 'paused' }
    const { reconcile } = setUp(() => found)
    const waitsAfterRun = async () => {
      await database.db('deliveries').update({ checked_at: null })
      expect(await reconcile()).toMatchObject({ checked: 1, started: 0 })
      return (await deliveryOf(ids[0]!)).waiting
    }
    expect(await waitsAfterRun()).toBe('paused')
    expect(await waitsAfterRun()).toBe('paused')
    found = working
    expect(await waitsAfterRun()).toBe(null)
  })

  test('a workflow that was ended before the delivery got its status is started again', () => {
    const since = { statusSince: new Date(2_000), isContentKept: true, isErased: false, stuckRun: null }
    const runId = 'first'
    expect(decide(since, { state: 'terminated', runId, closedAt: new Date(1_000) })).toBe('start')
    expect(decide(since, { state: 'cancelled', runId, closedAt: new Date(1_000) })).toBe('start')
    expect(decide(since, { state: 'terminated', runId, closedAt: new Date(3_000) })).toBe('terminated')
  })

  test('a dry run reports the same and changes nothing', async () => {
    const { ids } = await receive(2)
    const { reconcile } = setUp(() => missing)
    expect(describeReconciled(await reconcile({ dryRun: true }))).toBe('2 deliveries checked, 2 started')
    expect([await startsToCome(database.db), (await deliveryOf(ids[0]!)).checked_at]).toEqual([[], null])
    expect(await reconcile()).toMatchObject({ started: 2 })
  })

  test('ends a run at its limit of deliveries in order, but not while it finds lost ones', async () => {
    const { db } = database
    const { ids } = await receive(1)
    // Copies of one document: 1,200 deliveries, of which the oldest 500 are lost.
    await db.raw(
      `
      insert into documents (id, workspace_id, repository_id, content_id, repo_id, doc_id, comp_id, content_type, size_bytes, status, received_at, modified_at,
        request_id)
      select 'COPY' || lpad(n::text, 5, '0'), workspace_id, repository_id, content_id, repo_id, 'COPY' || n, comp_id, content_type, size_bytes, status, received_at, modified_at,
        request_id
      from documents, generate_series(1, 1200) as n
      where id = :id
      `,
      { id: ids[0]! },
    )
    await db.raw(
      `
      insert into deliveries (document_id, destination_id, workspace_id, connection_id, status, path, next_attempt_at)
      select documents.id, destination_id, deliveries.workspace_id, connection_id, 'pending', path, now() - interval '2 days' + substr(documents.id, 5)::integer * interval '1 second'
      from documents, deliveries
      where documents.id like 'COPY%'
        and document_id = :id
      `,
      { id: ids[0]! },
    )
    await db('deliveries').where({ document_id: ids[0] }).update({ status: 'delivered' })
    const { reconcile } = setUp((_, id) => (id < 'COPY00501' ? missing : working), { maxInOrder: 400 })
    expect(await reconcile()).toMatchObject({ checked: 1_000, started: 500, complete: false })
    expect(await reconcile()).toMatchObject({ checked: 200, started: 0, complete: true })
  })
})

describe('running bulk retries', () => {
  const start = async () => {
    const { workspaceId, workspaceSlug } = await createRoutes(database.db, [])
    const actor = { type: 'system', userId: null } as const
    const { bulkRetry } = await createBulkRetries(database.db).start(
      { id: workspaceId, userSlug: 'acme', workspaceSlug },
      'retry',
      {},
      actor,
    )
    await database.db('bulk_retries').update({ created_at: new Date(0) })
    return { workspaceId, id: bulkRetry.id }
  }

  test('are started again if their workflow is missing, and cancelled if an operator has ended it', async () => {
    const { workspaceId, id } = await start()
    const { reconcile, sent, bulkRetries } = setUp(() => missing)
    // Its message still waits.
    expect(await reconcile()).toMatchObject({ bulkRetriesStarted: 0 })
    await database.db('outbox').delete()
    expect(await reconcile({ dryRun: true })).toMatchObject({ bulkRetriesStarted: 1 })
    expect(await reconcile()).toMatchObject({ bulkRetriesStarted: 1 })
    expect(sent).toMatchObject([{ kind: 'startBulkRetry', input: { bulkRetryId: id } }])
    await database.db('outbox').delete()
    expect(await setUp(() => working).reconcile()).toMatchObject({ bulkRetriesStarted: 0, bulkRetriesCancelled: 0 })
    const ended = setUp(() => ({ state: 'terminated', runId: 'first', closedAt: new Date() }))
    expect(await ended.reconcile()).toMatchObject({ bulkRetriesCancelled: 1 })
    expect(await bulkRetries.find(workspaceId, id)).toMatchObject({ status: 'cancelled' })
  })

  const makeDue = () => database.db('bulk_retries').update({ checked_at: new Date(0) })

  test('are replaced if their workflow is stuck at two checks, one interval apart, and never cancelled for that', async () => {
    const { workspaceId, id } = await start()
    await database.db('outbox').delete()
    const { reconcile, terminated, sent, bulkRetries } = setUp(() => stuck)
    expect(await reconcile()).toMatchObject({ bulkRetriesStarted: 0 })
    expect(await reconcile()).toMatchObject({ bulkRetriesStarted: 0 })
    expect(terminated).toEqual([])
    await makeDue()
    expect(await reconcile()).toMatchObject({ bulkRetriesStarted: 1 })
    expect([terminated, sent]).toMatchObject([[`${id}/first`], [{ kind: 'startBulkRetry' }]])
    // The message was sent before the run was ended, and had no effect.
    await database.db('outbox').delete()
    const ended: WorkflowState = { state: 'terminated', runId: 'first', closedAt: new Date() }
    expect(await setUp(() => ended).reconcile()).toMatchObject({ bulkRetriesStarted: 1, bulkRetriesCancelled: 0 })
    expect(await bulkRetries.find(workspaceId, id)).toMatchObject({ status: 'running' })
  })

  test.each<[string, WorkflowState]>([
    ['its history has grown', { ...stuck, historyLength: 8 }],
    ['another run has followed', { ...stuck, runId: 'second' }],
    ['it was at work', working],
  ])('are not replaced if they have made progress since: %s', async (_, next) => {
    await start()
    await database.db('outbox').delete()
    const answers = [stuck, next, stuck]
    const { reconcile, terminated } = setUp(() => answers.shift()!)
    for (let check = 0; check < 3; check += 1) {
      expect(await reconcile()).toMatchObject({ bulkRetriesStarted: 0 })
      await makeDue()
    }
    expect(terminated).toEqual([])
  })

  test('are neither cancelled nor started twice by a run that has asked before another one acted', async () => {
    const { workspaceId, id } = await start()
    const { db } = database
    await db('outbox').delete()
    await setUp(() => stuck).reconcile()
    await makeDue()
    const other = setUp(() => stuck)
    // While this run asks, the other one terminates the workflow.
    const late = setUp(async () => {
      await other.reconcile()
      return { state: 'terminated', runId: 'first', closedAt: new Date() }
    })
    expect(await late.reconcile()).toMatchObject({ bulkRetriesStarted: 0, bulkRetriesCancelled: 0 })
    expect([other.terminated, late.sent]).toEqual([[`${id}/first`], []])
    expect(await late.bulkRetries.find(workspaceId, id)).toMatchObject({ status: 'running' })
  })
})

describe('the time of the next attempt', () => {
  const attempt = async (ref: { documentId: string; destinationId: string }, end: Partial<AttemptEnd>) => {
    const job = (await createLoadJob(database.db, config)({ ...ref, ...firstRound }))!
    await createRecordAttempt(database.db, config)(ref, job, {
      operation: 'attemptRetryable',
      outcome: 'retryable',
      id: newId(),
      durationMs: 1,
      bytesSent: 0,
      error: { code: 'http_503', message: 'unavailable' },
      ...end,
    })
    return (await deliveryOf(ref.documentId)).next_attempt_at as Date | null
  }

  test('is the end of the back-off of a delivery that is retried, and none of one that has ended', async () => {
    const { ids, destinationId } = await receive(1)
    const ref = { documentId: ids[0]!, destinationId }
    for (let time = 0; time < 2; time += 1) {
      const due = (await attempt(ref, { retryDelayMs: 3_600_000 }))!.getTime() - Date.now()
      expect(due).toBeGreaterThan(3_000_000)
      expect(due).toBeLessThan(4_200_000)
    }
    expect(await attempt(ref, { operation: 'attemptFailed', outcome: 'permanent' })).toBeNull()
    await database.db('deliveries').where({ document_id: ref.documentId }).update({ status: 'retrying' })
    expect((await deliveryOf(ref.documentId)).next_attempt_at).toEqual((await deliveryOf(ref.documentId)).status_since)
    expect(await attempt(ref, { operation: 'attemptDelivered', outcome: 'delivered', retryDelayMs: 10_000 })).toBeNull()
  })
})

test('overdue deliveries are counted once the reconciler should have checked them twice', async () => {
  const { ids } = await receive(3)
  expect(await countOverdue(database.db, config)).toBe(3)
  await makeOverdue(ids.slice(1), 120_000)
  expect(await countOverdue(database.db, config)).toBe(1)
  await setUp(() => working).reconcile()
  expect(await countOverdue(database.db, config)).toBe(0)
})
