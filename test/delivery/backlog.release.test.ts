import { createReceive } from '../../src/archive/receive.ts'
import { newId } from '../../src/base/ids.ts'
import type { WakeDelivery } from '../../src/db/outbox.ts'
import { createLoadJob } from '../../src/delivery/delivery-job.ts'
import { countOverdue, findOverdue, overdueAfterMs } from '../../src/delivery/overdue.ts'
import { createRecordAttempt } from '../../src/delivery/record-attempt.ts'
import { measureWaiting } from '../../src/delivery/to-begin.ts'
import { createCallLines, createWakeNext } from '../../src/delivery/wake.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, firstRound, receivedDocument, testConfig } from '../support/factories.ts'
import { logsTo } from '../support/logs.ts'
import { share } from '../support/share.ts'

// A simulation with the statements of the product: Temporal and the target are left out, and the time between two trials is not waited for.

const backlog = 100_000
/** Events of a workflow for a run of its activity: the signal or timer that wakes it, the activity, two workflow tasks, and a timer. */
const eventsPerRun = 12
const slots = 5

const config = testConfig()
const database = share(await createTestDatabase())
const { db } = database

/** Creates a destination whose circuit is open, and deliveries that wait for it. Their ids are in the order of their documents. */
const createBacklog = async () => {
  const routes = await createRoutes(db, [{ name: 'archive', config: { max_concurrent_deliveries: slots } }])
  const destinationId = routes.destinations['archive']!
  const { messages } = await createReceive(db, config)(await receivedDocument(routes, { data: 'hello' }))
  const id = messages[0]!.input.documentId
  await db.transaction(async (trx) => {
    const columns = `workspace_id, repository_id, content_id, repo_id, comp_id, content_type, size_bytes, status, received_at, modified_at, request_id`
    await trx.raw(
      `
      insert into documents (id, doc_id, ${columns})
      select 'W' || lpad(n::text, 6, '0'), 'W' || n, ${columns}
      from documents, generate_series(1, :backlog::integer) as n
      where id = :id
      `,
      { id, backlog },
    )
    await trx.raw(
      `
      insert into deliveries (document_id, destination_id, workspace_id, connection_id, path, status, waiting, next_attempt_at)
      select 'W' || lpad(n::text, 6, '0'), destination_id, workspace_id, connection_id, path, 'pending', 'in_line', 'infinity'
      from deliveries, generate_series(1, :backlog::integer) as n
      where document_id = :id
      `,
      { id, backlog },
    )
    await trx('deliveries').where({ document_id: id }).update({ status: 'delivered', begin_at: null, next_attempt_at: null })
  })
  await db.raw('analyze deliveries, documents')
  return destinationId
}

test('100,000 deliveries behind a dead target cause less than an event a second, no alarm, and start in order when it is back', async () => {
  const destinationId = await createBacklog()
  const gate = () => db('destination_gates').where({ destination_id: destinationId })
  const woken: WakeDelivery[] = []
  const wakeNext = createWakeNext(db, config, (messages) => woken.push(...messages), logsTo([]).log)
  const callLines = createCallLines(db, config, (messages) => woken.push(...messages))
  const load = createLoadJob(db, config)
  const record = createRecordAttempt(db, config, wakeNext)
  let runs = 0

  /** Runs the activity of a delivery. @returns a function that ends its attempt, or undefined if it has to wait */
  const run = async (documentId: string, isCalled: boolean) => {
    runs += 1
    const attemptId = newId()
    const delivery = { documentId, destinationId }
    const job = (await load({ ...delivery, ...firstRound }, { attemptId, continues: undefined, hasPlace: true, isCalled }))!
    if (!job.hasSlot) return undefined
    return (signal: 'answered' | 'failed') => {
      const [operation, outcome] =
        signal === 'answered' ? (['attemptDelivered', 'delivered'] as const) : (['attemptRetryable', 'retryable'] as const)
      return record(delivery, job, { id: attemptId, operation, outcome, durationMs: 1, bytesSent: 1, signal })
    }
  }
  const runWoken = async () => {
    const started = []
    for (const { input } of woken.splice(0)) {
      const end = await run(input.documentId, true)
      if (end) started.push({ documentId: input.documentId, end })
    }
    return started
  }
  const firstInLine = async (): Promise<string> =>
    (await db('deliveries').where({ destination_id: destinationId, waiting: 'in_line' }).orderBy('document_id').first('document_id'))
      .document_id

  // The slots and the gate are made by the first delivery that asks.
  await run(await firstInLine(), false)
  await gate().update({ circuit: 'open', pause_ms: config.DELIVERY_CIRCUIT_PAUSE_MS, trial_at: db.raw(`now() + interval '1 minute'`) })
  await db('deliveries').whereNotNull('attempt_id').update({ attempt_id: null, waiting: 'in_line', next_attempt_at: 'infinity' })
  await db('destination_slots').update({ leased_until: '-infinity' })
  runs = 0

  // The target stays away for an hour.
  let seconds = 0
  while (seconds < 3_600) {
    const { pause_ms: pauseMs } = await gate().first('pause_ms')
    seconds += pauseMs / 1_000
    await gate().update({ trial_at: db.fn.now() })
    const tried = await firstInLine()
    await (await run(tried, false))!('failed')
    expect(await runWoken()).toEqual([])
    // The end of its back-off.
    expect(await run(tried, false)).toBeUndefined()
    // The job that looks for lines that were not called.
    await callLines()
    expect(await runWoken()).toEqual([])
  }
  expect((runs * eventsPerRun) / seconds).toBeLessThan(1)
  expect(runs).toBeGreaterThan(3)
  expect(await findOverdue(db, overdueAfterMs(config), undefined)).toEqual([])
  expect(await countOverdue(db, config)).toBe(0)
  expect(await measureWaiting(db)).toMatchObject({ count: 0 })

  // It is back.
  const order: string[] = []
  await gate().update({ trial_at: db.fn.now() })
  const first = await firstInLine()
  const open = [{ documentId: first, end: (await run(first, false))! }]
  while (order.length < 200) {
    const { documentId, end } = open.shift()!
    order.push(documentId)
    await end('answered')
    open.push(...(await runWoken()))
    expect(open.length).toBeLessThanOrEqual(slots)
  }
  expect(open).toHaveLength(slots)
  expect(order).toEqual(Array.from({ length: 200 }, (_, index) => `W${String(index + 1).padStart(6, '0')}`))
}, 300_000)
