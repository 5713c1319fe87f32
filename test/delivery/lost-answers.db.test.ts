import { createReceive } from '../../src/archive/receive.ts'
import { newId } from '../../src/base/ids.ts'
import type { Connector } from '../../src/connectors/connector.ts'
import { createConnectors } from '../../src/connectors/index.ts'
import { createRetry } from '../../src/delivery/retry.ts'
import type { AttemptOutcome } from '../../src/domain/delivery-run.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { attemptRetry, type AttemptInput } from '../../workflows/messages.ts'
import { createActivityEnvironment } from '../support/activity-environment.ts'
import { createTestDatabase } from '../support/database.ts'
import { attemptActivities } from '../support/delivery-activities.ts'
import { disposable } from '../support/disposable.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { share } from '../support/share.ts'

// The answer of an attempt may be lost: its worker was killed after the record, or Temporal was away. Temporal then repeats the activity. For
// each outcome, the second run must return what the first one has recorded, and nothing else may happen.

const config = testConfig()
const policy = { maxRetries: 2, ttlMs: 3_600_000, initialIntervalMs: 10_000, maxIntervalMs: 60_000 }
const system = { type: 'system', userId: null } as const

const { db } = share(await createTestDatabase())
const outbound = share(disposable(createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS }), (each) => each.close()))
const target = share(await startHttpTarget())
const webhook = createConnectors().find('webhook')!
/** The same with one document per path. */
const keeper: Connector = { ...webhook, isMessage: false }

beforeEach(() => {
  target.arrivals.length = 0
  target.answerWith((_, response) => void response.end())
})

const answer = (status: number, headers: Record<string, string> = {}) =>
  target.answerWith((_, response) => void response.writeHead(status, headers).end())

/** Receives a document with one pending delivery. */
const arrange = async () => {
  const routes = await createRoutes(db, [{ name: 'target', config: { url: `${target.origin}/in` } }])
  const destinationId = routes.destinations['target']!
  const { attemptDelivery } = attemptActivities({ db, config, outbound, findConnector: () => keeper })
  const receive = async (docId = newId()) =>
    (await createReceive(db, config)(await receivedDocument(routes, { data: 'hello' }, docId))).documents[0]!.documentId
  const documentId = await receive('DOC1')
  const input: AttemptInput = { documentId, destinationId, policy, round: 'first', attemptTimeoutMs: 60_000, workspace: 'acme/invoices' }
  const ref = { document_id: documentId, destination_id: destinationId }
  return {
    ...routes,
    documentId,
    destinationId,
    connectionId: routes.connections['target']!,
    receive,
    attempt: (more: Partial<AttemptInput> = {}, info: Parameters<typeof createActivityEnvironment>[0] = {}): Promise<AttemptOutcome> =>
      createActivityEnvironment(info).run(attemptDelivery, { ...input, ...more }),
    delivery: () => db('deliveries').where(ref).first(),
    change: (values: object) => db('deliveries').where(ref).update(values),
    /** What the relay has recorded in the workspace, and what the target has got. */
    recorded: async () => {
      const rowsOf = (table: string) => db(table).where({ workspace_id: routes.workspaceId }).orderByRaw('1, 2, 3')
      const tables = ['documents', 'deliveries', 'delivery_attempts', 'events', 'audit_logs']
      const slots = await db('destination_slots').where({ destination_id: destinationId, holder: null }).orderBy('number')
      return {
        requests: target.arrivals.length,
        slots: slots.length,
        ...Object.fromEntries(await Promise.all(tables.map(async (table) => [table, await rowsOf(table)]))),
      }
    },
  }
}

type Scene = Awaited<ReturnType<typeof arrange>>

/** The second run of an activity whose first answer was lost. */
const repeated = { attempt: 2 }

interface Case {
  /** What lies before the attempt. */
  given?: (scene: Scene) => Promise<unknown> | void
  input?: Partial<AttemptInput>
  outcome: object
  status: string | undefined
  requests: number
  attempts: number
}

const takeSlots = async ({ destinationId, attempt, change }: Scene) => {
  // An attempt of another document has made the slots.
  await change({ status: 'cancelled' })
  await attempt()
  await change({ status: 'pending' })
  const rows = Array.from({ length: 100 }, (_, number) => ({ destination_id: destinationId, number: number + 1 }))
  await db('destination_slots').insert(rows).onConflict().ignore()
  await db('destination_gates').insert({ destination_id: destinationId }).onConflict().ignore()
  await db('destination_slots').where({ destination_id: destinationId }).update({ holder: 'another', leased_until: 'infinity' })
}

/** The filter of the connection needs business data, of which nothing is known. @param status of the enrichment */
const filterByData = async ({ documentId, workspaceId, connectionId }: Scene, status: string) => {
  const settings = JSON.stringify({ filter: { fields: { vendor: ['Acme'] } } })
  await db('connections').where({ id: connectionId }).update({ settings })
  const end = new Date(Date.now() + 3_600_000)
  const enrichment = { document_id: documentId, workspace_id: workspaceId, enrichment_id: 'any', status }
  await db('document_enrichments').insert({ ...enrichment, waits_until: end, ends_at: end })
}

const overwritten = (scene: Scene) => target.answerWith((_, response) => void scene.change({ overwrites: 1 }).then(() => response.end()))

const cases: Record<string, Case> = {
  delivered: { outcome: { status: 'delivered' }, status: 'delivered', requests: 1, attempts: 1 },
  'delivered, but changed while it was sent': {
    given: overwritten,
    outcome: { status: 'retrying', failures: 0, error: expect.stringContaining('was changed while it was sent') },
    status: 'retrying',
    requests: 1,
    attempts: 1,
  },
  superseded: {
    given: async (scene) => {
      const { path } = await scene.delivery()
      const newer = await scene.receive()
      await db('documents').where({ id: scene.documentId }).update({ superseded_at: new Date() })
      await db('documents').where({ id: newer }).update({ doc_id: 'DOC1' })
      await db('deliveries').where({ document_id: newer }).update({ path, status: 'delivered' })
    },
    outcome: { status: 'delivered' },
    status: 'delivered',
    requests: 0,
    attempts: 1,
  },
  retrying: {
    given: () => answer(503),
    outcome: { status: 'retrying', failures: 1, errorCode: 'http_503' },
    status: 'retrying',
    requests: 1,
    attempts: 1,
  },
  'retrying as the target has asked': {
    given: () => answer(429, { 'retry-after': '50' }),
    outcome: { status: 'retrying', failures: 1, errorCode: 'http_429' },
    status: 'retrying',
    requests: 1,
    attempts: 1,
  },
  'failed for good': {
    given: () => answer(422),
    outcome: { status: 'failed', errorCode: 'http_422', remedy: expect.any(String) },
    status: 'failed',
    requests: 1,
    attempts: 1,
  },
  'failed for good, with a business object': {
    given: ({ documentId }) => {
      answer(422)
      return db('documents').where({ id: documentId }).update({ erp_object_type: 'BKPF', erp_object_id: '1900004711' })
    },
    outcome: { status: 'failed', businessObject: 'BKPF/1900004711' },
    status: 'failed',
    requests: 1,
    attempts: 1,
  },
  'failed while the circuit is open': {
    given: async ({ destinationId }) => {
      answer(503)
      await db('destination_gates').insert({
        destination_id: destinationId,
        circuit: 'open',
        failures: 10,
        pause_ms: 1,
        trial_at: new Date(),
      })
    },
    input: { policy: { ...policy, maxRetries: 0 } },
    outcome: { status: 'failed', keepsOpen: false },
    status: 'failed',
    requests: 1,
    attempts: 1,
  },
  'failed by the number of retries': {
    given: () => answer(503),
    input: { policy: { ...policy, maxRetries: 0 } },
    outcome: { status: 'failed', error: expect.stringMatching(/503.* \(gave up after 1 attempt: max_retries is 0\)$/) },
    status: 'failed',
    requests: 1,
    attempts: 1,
  },
  'failed by the time for retries, after an attempt': {
    given: () => answer(503),
    input: { policy: { ...policy, ttlMs: 1_000 } },
    outcome: { status: 'failed', error: expect.stringMatching(/503.* \(gave up after 1 attempt: retry_ttl_seconds is 1\)$/) },
    status: 'failed',
    requests: 1,
    attempts: 1,
  },
  'failed by the time for retries, without an attempt': {
    given: ({ change }) =>
      change({
        status: 'retrying',
        round: 'first',
        failures: 1,
        round_remaining_ms: 0,
        round_expires_at: new Date(),
        last_error: 'refused',
        last_error_code: 'http_503',
        next_attempt_at: new Date(),
      }),
    outcome: { status: 'failed', error: 'refused (gave up after 1 attempt: retry_ttl_seconds is 3600)', errorCode: 'http_503' },
    status: 'failed',
    requests: 0,
    attempts: 0,
  },
  'lost with its worker': {
    given: ({ change }) => change({ attempt_id: newId() }),
    outcome: { status: 'retrying', failures: 1, errorCode: 'interrupted' },
    status: 'retrying',
    requests: 0,
    attempts: 1,
  },
  'lost with its worker, and the last one': {
    given: ({ change }) => change({ attempt_id: newId() }),
    input: { policy: { ...policy, maxRetries: 0 } },
    outcome: { status: 'failed', errorCode: 'interrupted' },
    status: 'failed',
    requests: 0,
    attempts: 1,
  },
  held: {
    given: ({ connectionId }) => db('connections').where({ id: connectionId }).update({ is_active: false }),
    outcome: { status: 'held' },
    status: 'held',
    requests: 0,
    attempts: 0,
  },
  'passed over by the filter': {
    given: (scene) => filterByData(scene, 'complete'),
    outcome: { status: 'held', reason: 'doesNotMatch' },
    status: undefined,
    requests: 0,
    attempts: 0,
  },
  'waiting for the data of the filter': {
    given: (scene) => filterByData(scene, 'pending'),
    outcome: { status: 'held', reason: 'awaitsData' },
    status: 'pending',
    requests: 0,
    attempts: 0,
  },
  'waiting in line': { given: takeSlots, outcome: { status: 'waiting' }, status: 'pending', requests: 0, attempts: 0 },
  'to a destination that was deleted': {
    given: ({ destinationId }) => db('destinations').where({ id: destinationId }).update({ deleted_at: new Date() }),
    outcome: { status: 'cancelled' },
    status: 'cancelled',
    requests: 0,
    attempts: 0,
  },
}

test.each(Object.entries(cases))('an attempt whose answer was lost is not made again: %s', async (_, { given, input, ...expected }) => {
  const scene = await arrange()
  await given?.(scene)
  const first = await scene.attempt(input)
  expect(first).toMatchObject(expected.outcome)
  const before = await scene.recorded()
  expect([before.requests, (await scene.delivery())?.status]).toEqual([expected.requests, expected.status])
  expect(await db('delivery_attempts').where({ document_id: scene.documentId })).toHaveLength(expected.attempts)

  // The target would accept it now.
  answer(200)
  const second = await scene.attempt(input, repeated)
  expect({ ...second, delayMs: 0 }).toEqual({ ...first, delayMs: 0 })
  if (first.status === 'retrying' && second.status === 'retrying') {
    expect(second.delayMs).toBeGreaterThan(0)
    expect(second.delayMs).toBeLessThanOrEqual(first.delayMs)
  }
  expect(await scene.recorded()).toEqual(before)
})

describe('an attempt is made', () => {
  const refuse = async () => {
    answer(503)
    const scene = await arrange()
    expect(await scene.attempt()).toMatchObject({ status: 'retrying' })
    answer(200)
    return scene
  }
  const now = Date.now()

  test('once its delay is over', async () => {
    const { attempt, change } = await refuse()
    await change({ next_attempt_at: new Date(Date.now() - 1) })
    expect(await attempt({}, repeated)).toEqual({ status: 'delivered' })
  })

  test.each([
    ['an operator has reset its activity', { attempt: 1, scheduledTimestampMs: now, currentAttemptScheduledTimestampMs: now + 1_000 }],
    ['Temporal has waited for the delay, by its clock', { ...repeated, currentAttemptScheduledTimestampMs: now + 3_600_000 }],
  ])('before that if %s', async (_, info) => {
    const { attempt } = await refuse()
    expect(await attempt({}, { retryPolicy: attemptRetry, ...info })).toEqual({ status: 'delivered' })
  })

  test.each([{ initialInterval: 1_000 }, { maximumInterval: 15_000 }, { backoffCoefficient: 1 }])(
    'before that if an operator has given its activity %j',
    async (options) => {
      const { attempt } = await refuse()
      expect(await attempt({}, { ...repeated, retryPolicy: { ...attemptRetry, ...options } })).toEqual({ status: 'delivered' })
    },
  )

  test('before that if the delivery was called', async () => {
    const { attempt } = await refuse()
    expect(await attempt({ isCalled: true }, repeated)).toEqual({ status: 'delivered' })
  })

  test('in the round of a retry signal that an operator has typed, from its place in line', async () => {
    answer(422)
    const scene = await arrange()
    await scene.attempt()
    const { destinationId, documentId } = scene
    await db('destination_slots').where({ destination_id: destinationId }).update({ holder: 'another', leased_until: 'infinity' })
    const earlier = await scene.receive()
    await db('deliveries').where({ document_id: earlier }).update({ waiting: 'in_line', next_attempt_at: 'infinity' })
    expect(await scene.attempt({ round: 'second' })).toMatchObject({ status: 'waiting' })
    expect(await scene.delivery()).toMatchObject({ status: 'retrying', waiting: 'in_line' })
    await db('destination_slots').where({ destination_id: destinationId }).update({ holder: null, leased_until: '-infinity' })
    answer(200)
    expect(await scene.attempt({ round: 'second', isCalled: true })).toEqual({ status: 'delivered' })
    expect(await db('delivery_attempts').where({ document_id: documentId })).toHaveLength(2)
  })

  test('in the round of a manual retry, and not in the one before it', async () => {
    answer(503)
    const scene = await arrange()
    const last = { policy: { ...policy, maxRetries: 0 } }
    expect(await scene.attempt(last)).toMatchObject({ status: 'failed' })
    const { workspaceId, documentId } = scene
    await createRetry(db, config).retryDocument({ workspaceId, documentId, actor: system })
    answer(200)
    expect(await scene.attempt(last, repeated)).toMatchObject({ status: 'failed', errorCode: 'http_503' })
    expect([target.arrivals.length, (await scene.delivery()).status]).toEqual([1, 'retrying'])
    answer(503)
    const retry = { round: 'second', policy: { ...policy, maxRetries: 1 } }
    expect(await scene.attempt(retry)).toMatchObject({ status: 'retrying', failures: 1 })
    answer(200)
    await scene.change({ next_attempt_at: new Date() })
    expect(await scene.attempt(retry)).toEqual({ status: 'delivered' })
  })
})
