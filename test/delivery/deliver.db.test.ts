import { createHash } from 'node:crypto'
import { CancelledFailure } from '@temporalio/common'
import { receiverUseCases } from '../../src/app/use-cases.ts'
import { createReceive } from '../../src/archive/receive.ts'
import { newId } from '../../src/base/ids.ts'
import type { Config } from '../../src/config/config.ts'
import { DeliveryError, type Connector } from '../../src/connectors/connector.ts'
import { createConnectors } from '../../src/connectors/index.ts'
import { createOpenCredentials, credentialsOwner } from '../../src/connectors/target.ts'
import { DatabaseUnavailable } from '../../src/db/errors.ts'
import type { DeliverDeps } from '../../src/delivery/deliver.ts'
import { createUploadSeal } from '../../src/delivery/progress.ts'
import { createRecordAttempt } from '../../src/delivery/record-attempt.ts'
import { createRetry } from '../../src/delivery/retry.ts'
import type { AttemptOutcome } from '../../src/domain/delivery-run.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createKeyRing } from '../../src/security/seal.ts'
import type { AttemptInput } from '../../workflows/messages.ts'
import { createActivityEnvironment } from '../support/activity-environment.ts'
import { createTestDatabase } from '../support/database.ts'
import { attemptActivities } from '../support/delivery-activities.ts'
import { disposable } from '../support/disposable.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'

const { find: findConnector } = createConnectors()

const config = testConfig()
const keyRing = createKeyRing(config.RELAY_SECRET_KEYS)
const policy = { maxRetries: 2, ttlMs: 3_600_000, initialIntervalMs: 10_000, maxIntervalMs: 60_000 }

const database = share(await createTestDatabase())
const outbound = share(disposable(createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS }), (each) => each.close()))
const target = share(await startHttpTarget())
beforeEach(() => {
  target.arrivals.length = 0
  target.answerWith((_, response) => response.end('accepted'))
})

/** Receives a document with one pending delivery. @returns functions that attempt the delivery and read what was recorded */
const arrange = async (
  credentials: object = {},
  limits: object = {},
  find = findConnector,
  parts: Partial<Pick<DeliverDeps, 'recordAttempt' | 'slots' | 'wakeNext'> & { config: Config }> = {},
) => {
  const { db } = database
  const targetConfig = { url: `${target.origin}/in`, ...limits }
  const routes = await createRoutes(db, [{ name: 'target', config: targetConfig }])
  const destinationId = routes.destinations['target']!
  const sealed = keyRing.seal(
    credentials,
    credentialsOwner(findConnector('webhook')!, { ...routes, id: destinationId, config: targetConfig }),
  )
  await db('destinations').where({ id: destinationId }).update({ credentials_sealed: sealed })
  const { attemptDelivery, recordCancellation } = attemptActivities({
    db,
    findConnector: find,
    openCredentials: createOpenCredentials(keyRing),
    outbound,
    config,
    ...parts,
  })
  /** Receives a document. @returns functions for its delivery */
  const receive = async () => {
    const document = await receivedDocument(routes, { data: 'hello' })
    const received = await createReceive(db, config)(document)
    if (!received.created) throw new Error('not created')
    const { documentId } = received.messages[0]!.input
    const input: AttemptInput = {
      documentId,
      destinationId,
      policy,
      round: 'first',
      attemptTimeoutMs: 60_000,
      workspace: 'acme/invoices',
    }
    /** Has the next attempt of the round due, as after its delay. */
    const comeDue = () => db('deliveries').where({ document_id: documentId }).update({ next_attempt_at: db.fn.now() })
    /** @param failures of earlier attempts of the round, whose next one is due */
    const attempt = async (
      { failures, remainingMs = policy.ttlMs, ...more }: Partial<AttemptInput> & { failures?: number; remainingMs?: number } = {},
      environment = createActivityEnvironment(),
    ): Promise<AttemptOutcome> => {
      if (failures !== undefined) {
        const used = { round: 'first', failures, round_remaining_ms: remainingMs, round_expires_at: new Date(Date.now() + remainingMs) }
        await db('deliveries').where({ document_id: documentId }).update(used)
        await comeDue()
      }
      return environment.run(attemptDelivery, { ...input, ...more })
    }
    const delivery = () => db('deliveries').where({ document_id: documentId }).first()
    const attempts = () => db('delivery_attempts').where({ document_id: documentId }).orderBy('number')
    return { docId: document.docId, documentId, attempt, comeDue, delivery, attempts }
  }
  const connectionId = routes.connections['target']!
  return { db, routes, destinationId, connectionId, recordCancellation, receive, ...(await receive()) }
}

test('deliveries that find no place in the worker call nobody, although the destination has slots', async () => {
  const calls: string[] = []
  const { attempt, receive } = await arrange({}, {}, findConnector, {
    slots: { acquire: () => undefined },
    wakeNext: async (destinationId) => void calls.push(destinationId),
  })
  const second = await receive()
  // They would call each other without end. The first asks again.
  expect(await attempt()).toEqual({ status: 'waiting', askAgainMs: 5_000 })
  expect(await second.attempt()).toEqual({ status: 'waiting' })
  expect(calls).toEqual([])
})

describe('an attempt', () => {
  test('delivers the document and is recorded', async () => {
    const { attempt, delivery, attempts } = await arrange()
    target.answerWith((_, response) => setTimeout(() => response.end('accepted'), 250))
    const startedAt = Date.now()
    expect(await attempt()).toEqual({ status: 'delivered' })
    const tookMs = Date.now() - startedAt
    expect(target.arrivals.map(({ body }) => body.toString())).toEqual(['hello'])
    expect(await delivery()).toMatchObject({ status: 'delivered', attempts: 1 })
    expect(await attempts()).toMatchObject([{ number: 1, outcome: 'delivered', bytes_sent: 5, answer: { status: 200, body: 'accepted' } }])
    const [{ started_at, duration_ms }] = await attempts()
    expect(started_at.getTime()).toBeGreaterThanOrEqual(startedAt)
    expect(duration_ms).toBeGreaterThanOrEqual(249)
    expect(duration_ms).toBeLessThanOrEqual(tookMs)
  })

  test('says which attempt it is, and for which workspace, connection and business object', async () => {
    const { db, routes, documentId, connectionId, attempt } = await arrange()
    await db('documents').where({ id: documentId }).update({ erp_object_type: 'BKPF', erp_object_id: '1900004711', ar_object: 'ZINVOICE' })
    target.answerWith((_, response) => response.writeHead(503).end())
    expect(await attempt()).toMatchObject({ status: 'retrying' })
    target.answerWith((_, response) => response.end())
    expect(await attempt({ failures: 1 })).toEqual({ status: 'delivered' })

    const { user_slug, workspace_slug } = await db('workspaces').where({ id: routes.workspaceId }).first()
    const common = {
      'x-relay-event-type': 'document',
      'x-relay-workspace': `${user_slug}/${workspace_slug}`,
      'x-relay-connection-id': connectionId,
      'x-relay-document-id': documentId,
      'x-relay-object-type': 'BKPF',
      'x-relay-object-id': '1900004711',
      'x-relay-ar-object': 'ZINVOICE',
    }
    expect(target.arrivals.map(({ headers }) => headers)).toMatchObject([
      { ...common, 'x-relay-attempt': '1' },
      { ...common, 'x-relay-attempt': '2' },
    ])
  })

  test('says that it is made again, under another id, which a target that drops the ids it has seen does not know', async () => {
    const { db, documentId, attempt } = await arrange()
    expect(await attempt()).toEqual({ status: 'delivered' })
    await db('deliveries').where({ document_id: documentId }).update({ status: 'pending', delivered_at: null, again: 2 })
    expect(await attempt()).toEqual({ status: 'delivered' })
    const [first, again] = target.arrivals.map(({ headers }) => headers)
    expect(first).not.toHaveProperty('x-relay-again')
    expect(again).toMatchObject({ 'x-relay-again': '2', 'x-relay-delivery-id': first!['x-relay-delivery-id'] })
    expect(again!['webhook-id']).toBe(`${String(first!['webhook-id'])}.again2`)
  })

  /** Appends to the document as the source system does. */
  const appendTo = async ({ db, routes, docId }: Awaited<ReturnType<typeof arrange>>, texts: string[]) => {
    const { append, archiveDocuments, planAppend } = receiverUseCases(db, config)
    for (const text of texts) {
      const { repository, components, receivedAt } = await receivedDocument(routes, { data: text }, docId)
      const basedOn = (await archiveDocuments.find(repository.id, docId))!.components[0]!.content!
      const segment = { ...(await planAppend(basedOn)), content: components[0]!.content!, isWhole: false }
      await append({ repository, docId, compId: 'data', basedOn, segment, receivedAt, capture: undefined })
    }
  }

  test('of an appended document sends the whole content with its digest, which is computed once', async () => {
    const scene = await arrange()
    const { db, documentId, attempt } = scene
    await appendTo(scene, [' wor', 'ld'])
    expect(await attempt()).toEqual({ status: 'delivered' })
    const digest = createHash('sha256').update('hello world').digest()
    expect(target.arrivals.map(({ body }) => body.toString())).toEqual(['hello world'])
    expect(target.arrivals[0]!.headers['content-digest']).toBe(`sha-256=:${digest.toString('base64')}:`)
    // A receiver that has seen the id of the first content does not drop this one.
    expect(target.arrivals[0]!.headers['webhook-id']).toMatch(new RegExp(`^${documentId}_.*\\.${digest.toString('hex').slice(0, 16)}$`))
    const { content_id: id } = await db('documents').where({ id: documentId }).first('content_id')
    expect(await db('contents').where({ id }).first('appended_sha256')).toEqual({ appended_sha256: digest })
  })

  test("is not failed by the relay's own database", async () => {
    const scene = await arrange()
    const { db, attempt, attempts, delivery } = scene
    await appendTo(scene, [' world'])
    await db.raw('alter table installation rename to gone')
    try {
      await expect(attempt()).rejects.toThrow(/installation/)
    } finally {
      await db.raw('alter table gone rename to installation')
    }
    expect(target.arrivals).toEqual([])
    expect(await attempts()).toEqual([])
    expect(await delivery()).toMatchObject({ attempts: 0, last_error: null })

    // The digest is computed again as long as the database does not keep it.
    const other = await arrange()
    await appendTo(other, [' world'])
    await db.raw('alter table contents add constraint refused check (appended_sha256 is null) not valid')
    try {
      expect(await other.attempt()).toEqual({ status: 'delivered' })
    } finally {
      await db.raw('alter table contents drop constraint refused')
    }
    expect(target.arrivals.map(({ body }) => body.toString())).toEqual(['hello world'])
  })

  test('does not deliver again if the delivery is already delivered', async () => {
    const { attempt, attempts } = await arrange()
    await attempt()
    expect(await attempt()).toEqual({ status: 'delivered' })
    expect(target.arrivals).toHaveLength(1)
    expect(await attempts()).toHaveLength(1)
  })

  test('that fails returns the error and the delay before the next attempt', async () => {
    target.answerWith((_, response) => {
      response.statusCode = 503
      response.end('busy')
    })
    const { attempt, delivery, attempts } = await arrange()
    const outcome = await attempt()
    expect(outcome).toMatchObject({ status: 'retrying', failures: 1, error: expect.stringContaining('503') })
    expect((outcome as { delayMs: number }).delayMs).toBeGreaterThanOrEqual(10_000)
    expect((outcome as { delayMs: number }).delayMs).toBeLessThanOrEqual(11_000)
    expect(await delivery()).toMatchObject({ status: 'retrying', attempts: 1, last_error: expect.stringContaining('503') })
    expect(await attempts()).toMatchObject([{ outcome: 'retryable', answer: { status: 503, body: 'busy' } }])
  })

  test('waits as long as Retry-After of the target requests', async () => {
    target.answerWith((_, response) => {
      response.writeHead(429, { 'retry-after': '30' })
      response.end()
    })
    const { attempt } = await arrange()
    expect((await attempt()) as { delayMs: number }).toMatchObject({ status: 'retrying', delayMs: expect.any(Number) })
    expect(((await attempt()) as { delayMs: number }).delayMs).toBeGreaterThanOrEqual(30_000)
  })

  test('is recorded even if the message of the target contains characters that the database cannot store', async () => {
    const message = 'disk\0full \uD83D'
    const find = (): Connector => ({
      ...findConnector('webhook')!,
      deliver: async () => {
        throw new DeliveryError('store_failure', message, { answer: { status: 507, body: message } })
      },
    })
    const { attempt, attempts } = await arrange({}, {}, find)
    expect(await attempt()).toMatchObject({ status: 'retrying' })
    const storable = 'disk\uFFFDfull \uFFFD'
    expect(await attempts()).toMatchObject([{ outcome: 'retryable', error_message: storable, answer: { status: 507, body: storable } }])
  })

  test('that was the last one of the budget fails the delivery', async () => {
    target.answerWith((_, response) => {
      response.statusCode = 500
      response.end()
    })
    const { db, destinationId, attempt, delivery } = await arrange()
    expect(await attempt({ failures: 2 })).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('gave up after 3 attempts'),
      remedy: expect.stringMatching(/^Check that destination .+ is reachable and accepts requests, then retry the document\.$/),
    })
    expect(await delivery()).toMatchObject({ status: 'failed' })
    expect(await db('destinations').where({ id: destinationId }).first()).toMatchObject({ status: 'failing' })
  })

  test('fails the delivery at once if its error is permanent', async () => {
    target.answerWith((_, response) => {
      response.statusCode = 410
      response.end()
    })
    const { attempt, attempts } = await arrange()
    expect(await attempt()).toMatchObject({ status: 'failed' })
    expect(await attempts()).toMatchObject([{ outcome: 'permanent' }])
  })

  test('that fails the delivery closes its workflow if the circuit is open, also if it is not made because its time is over', async () => {
    target.answerWith((_, response) => response.writeHead(503).end())
    const { db, destinationId, attempt, receive } = await arrange()
    expect(await attempt({ failures: 2 })).not.toHaveProperty('keepsOpen')
    await db('destination_gates')
      .where({ destination_id: destinationId })
      .update({ circuit: 'open', trial_at: new Date(0) })
    const [trial, late] = [await receive(), await receive()]
    expect(await trial.attempt({ failures: 2 })).toMatchObject({ status: 'failed', keepsOpen: false })
    expect(await late.attempt({ failures: 1, remainingMs: 0 })).toMatchObject({ status: 'failed', keepsOpen: false })
  })

  test('uses the current config of the destination', async () => {
    const { db, destinationId, attempt } = await arrange()
    await db('destinations')
      .where({ id: destinationId })
      .update({ config: JSON.stringify({ url: `${target.origin}/in`, method: 'PUT' }) })
    expect(await attempt()).toEqual({ status: 'delivered' })
    expect(target.arrivals).toMatchObject([{ method: 'PUT' }])
  })

  test('sends nothing to an address that was changed in the database, because the credentials are sealed for the previous one', async () => {
    const { db, destinationId, attempt } = await arrange({ bearer_token: 'canary-token' })
    await db('destinations')
      .where({ id: destinationId })
      .update({ config: JSON.stringify({ url: `${target.origin}/elsewhere` }) })
    expect(await attempt()).toMatchObject({ status: 'retrying', error: expect.stringContaining('address') })
    expect(target.arrivals).toEqual([])
  })

  test('ends with a retryable outcome when it exceeds its timeout', async () => {
    target.answerWith(() => {})
    const { attempt } = await arrange()
    expect(await attempt({ attemptTimeoutMs: 300 })).toMatchObject({ status: 'retrying', error: expect.stringContaining('0.3 s') })
  })

  test('sends heartbeats with its start time and the number of bytes sent', async () => {
    const held = Promise.withResolvers<void>()
    target.answerWith((_, response) => void held.promise.then(() => response.end()))
    const { attempt } = await arrange({}, {}, findConnector, { config: testConfig({ DELIVERY_HEARTBEAT_TIMEOUT_MS: '1000' }) })
    const environment = createActivityEnvironment()
    const heartbeats: { bytesSent?: number }[] = []
    environment.on('heartbeat', (details: { bytesSent?: number }) => heartbeats.push(details))
    const attempting = attempt({}, environment)
    await until('a heartbeat says that the bytes are sent', () => heartbeats.some(({ bytesSent }) => bytesSent === 5))
    held.resolve()
    await attempting
    expect(heartbeats).toContainEqual(expect.objectContaining({ attemptId: expect.any(String), bytesSent: 5 }))
  })

  test.each([
    ['the worker stops', 'WORKER_SHUTDOWN', 'the worker was stopped during the attempt'],
    ['its delivery is cancelled', 'CANCELLED', 'the delivery was cancelled during the attempt'],
    ['an operator pauses its activity', 'PAUSED', 'an operator paused the activity in Temporal during the attempt'],
    ['an operator resets its activity', 'RESET', 'an operator reset the activity in Temporal during the attempt'],
  ] as const)('that is broken off because %s is counted and recorded', async (_, reason, message) => {
    target.answerWith(() => {})
    const { attempt, attempts, delivery } = await arrange()
    const environment = createActivityEnvironment()
    const cancelled = attempt({}, environment)
    await until('the target received a request', () => target.arrivals.length > 0)
    environment.cancel(reason)
    await expect(cancelled).rejects.toThrow(CancelledFailure)
    expect(await attempts()).toMatchObject([{ number: 1, outcome: 'interrupted', error_code: 'interrupted', error_message: message }])
    expect(await delivery()).toMatchObject({ status: 'retrying', attempts: 1 })
  })

  test('that was stopped with its worker uses up no retry', async () => {
    target.answerWith(() => {})
    const { attempt, attempts } = await arrange()
    const environment = createActivityEnvironment()
    const stopped = attempt({ failures: 2 }, environment)
    await until('the target received a request', () => target.arrivals.length > 0)
    environment.cancel('WORKER_SHUTDOWN')
    await expect(stopped).rejects.toThrow(CancelledFailure)
    target.answerWith((_, response) => response.end())
    expect(await attempt({ failures: 2 })).toEqual({ status: 'delivered' })
    expect(await attempts()).toMatchObject([
      { number: 1, outcome: 'interrupted' },
      { number: 2, outcome: 'delivered' },
    ])
  })

  test('sends nothing once its destination is deleted', async () => {
    const { db, destinationId, attempt, delivery } = await arrange()
    await db('destinations').where({ id: destinationId }).update({ deleted_at: db.fn.now() })
    expect(await attempt()).toEqual({ status: 'cancelled' })
    expect(await attempt()).toEqual({ status: 'cancelled' })
    expect(target.arrivals).toEqual([])
    expect(await delivery()).toMatchObject({ status: 'cancelled' })
  })

  test('reports credentials that cannot be opened without revealing them', async () => {
    const { db, destinationId, attempt, delivery } = await arrange({ bearer_token: 'canary-token' })
    const foreign = createKeyRing([`other:${Buffer.alloc(32, 9).toString('base64')}`])
    await db('destinations')
      .where({ id: destinationId })
      .update({ credentials_sealed: foreign.seal({ bearer_token: 'canary-token' }, ['x']) })
    expect(await attempt()).toMatchObject({ status: 'retrying', error: expect.stringContaining('RELAY_SECRET_KEYS') })
    expect(JSON.stringify(await delivery())).not.toContain('canary')
  })
})

/** Starts an attempt and breaks it off the way a lost worker does: nothing is recorded. */
const lose = async (attempt: Awaited<ReturnType<typeof arrange>>['attempt'], more: { failures?: number } = {}) => {
  target.answerWith(() => {})
  const before = target.arrivals.length
  const environment = createActivityEnvironment()
  const lost = attempt(more, environment)
  await until('the target received a request', () => target.arrivals.length > before)
  environment.cancel('TIMED_OUT')
  await expect(lost).rejects.toThrow(CancelledFailure)
  target.answerWith((_, response) => response.end('accepted'))
}

describe('an attempt whose worker was lost', () => {
  const lostOnce = { outcome: 'interrupted', error_code: 'interrupted', error_message: 'the worker was lost during the attempt' }

  test('is recorded by the next run, which sends nothing: its retry waits like any other', async () => {
    const { attempt, delivery, attempts } = await arrange()
    await lose(attempt)
    expect(await attempts()).toEqual([])
    expect(await attempt()).toMatchObject({ status: 'retrying', failures: 1, errorCode: 'interrupted', delayMs: expect.any(Number) })
    expect(target.arrivals).toHaveLength(1)
    expect(await delivery()).toMatchObject({ status: 'retrying', attempts: 1, last_error_code: 'interrupted' })
    expect(await attempts()).toMatchObject([{ number: 1, ...lostOnce, bytes_sent: 0 }])
    expect(await attempt({ failures: 1 })).toEqual({ status: 'delivered' })
    expect(await attempts()).toMatchObject([lostOnce, { number: 2, outcome: 'delivered' }])
  })

  test('fails the delivery if it was the last one of the budget', async () => {
    const { attempt, delivery } = await arrange()
    await lose(attempt, { failures: 2 })
    expect(await attempt({ failures: 2 })).toMatchObject({ status: 'failed', errorCode: 'interrupted' })
    expect(target.arrivals).toHaveLength(1)
    expect(await delivery()).toMatchObject({ status: 'failed', attempts: 1, ended_by: 'max_retries', last_error_code: 'interrupted' })
  })

  test('fails the delivery if the time to live has ended', async () => {
    const { attempt, attempts, delivery } = await arrange()
    await lose(attempt, { failures: 1 })
    expect(await attempt({ failures: 1, remainingMs: 0 })).toMatchObject({ status: 'failed', errorCode: 'interrupted' })
    expect(await delivery()).toMatchObject({ status: 'failed', ended_by: 'retry_ttl_seconds' })
    expect(await attempts()).toMatchObject([lostOnce])
  })

  test('goes on at once if its connector has saved an upload, until the budget is used up', async () => {
    const uploads: unknown[] = []
    const dying: Connector = {
      ...findConnector('webhook')!,
      deliver: async (_payload, _target, { saved, save, signal, onProgress }) => {
        uploads.push(saved)
        onProgress(3)
        save({ parts: uploads.length })
        return new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error))
        })
      },
    }
    const { attempt, attempts, delivery } = await arrange({}, {}, () => dying)
    let heartbeatDetails: unknown
    /** Runs the activity once more, with the details of the last heartbeat, until its worker is lost. */
    const runAndLose = async () => {
      const environment = createActivityEnvironment({ heartbeatDetails })
      environment.on('heartbeat', (details: unknown) => {
        heartbeatDetails = details
      })
      const before = uploads.length
      const lost = attempt({}, environment)
      await until('the upload has started', () => uploads.length > before)
      environment.cancel('TIMED_OUT')
      await expect(lost).rejects.toThrow(CancelledFailure)
    }
    for (let run = 0; run < 3; run += 1) await runAndLose()
    expect(uploads).toEqual([undefined, { parts: 1 }, { parts: 2 }])
    expect(await attempts()).toMatchObject([
      { number: 1, ...lostOnce, bytes_sent: 3 },
      { number: 2, ...lostOnce },
    ])
    expect(await attempt({}, createActivityEnvironment({ heartbeatDetails }))).toMatchObject({ status: 'failed', errorCode: 'interrupted' })
    expect(await delivery()).toMatchObject({ status: 'failed', attempts: 3, ended_by: 'max_retries', attempt_id: null })
  })

  test('leaves nothing behind that counts in the round of a manual retry', async () => {
    const { db, routes, documentId, attempt, attempts } = await arrange()
    await lose(attempt)
    await db('deliveries').where({ document_id: documentId }).update({ status: 'cancelled' })
    const request = { workspaceId: routes.workspaceId, documentId, actor: { type: 'system', userId: null } } as const
    await createRetry(db, config).retryDocument(request)
    expect(await attempt()).toEqual({ status: 'delivered' })
    expect(await attempts()).toMatchObject([{ number: 1, outcome: 'delivered' }])
  })

  describe('but only frozen', () => {
    /** Starts an attempt whose answer is held back until another run has recorded it as lost. */
    const freeze = async (status: number) => {
      const scene = await arrange()
      const thaw = Promise.withResolvers<void>()
      target.answerWith((_, response) => {
        response.statusCode = status
        void thaw.promise.then(() => response.end())
      })
      const frozen = scene.attempt()
      await until('the target received a request', () => target.arrivals.length > 0)
      expect(await scene.attempt()).toMatchObject({ status: 'retrying', failures: 1 })
      thaw.resolve()
      return { ...scene, frozen }
    }

    test('is recorded as delivered if it delivered the document, and is not attempted again', async () => {
      const { attempt, attempts, delivery, frozen } = await freeze(200)
      expect(await frozen).toEqual({ status: 'delivered' })
      expect(await delivery()).toMatchObject({ status: 'delivered', attempts: 1, last_error: null })
      expect(await attempts()).toMatchObject([{ number: 1, outcome: 'delivered', error_code: null, bytes_sent: 5 }])
      expect(await attempt({ failures: 1 })).toEqual({ status: 'delivered' })
      expect(target.arrivals).toHaveLength(1)
    })

    test('is recorded once if it failed', async () => {
      const { attempts, delivery, frozen } = await freeze(503)
      await frozen
      expect(await delivery()).toMatchObject({ status: 'retrying', attempts: 1, last_error_code: 'interrupted' })
      expect(await attempts()).toMatchObject([lostOnce])
    })
  })
})

describe('the time to live', () => {
  const fail = () =>
    target.answerWith((_, response) => {
      response.statusCode = 503
      response.end()
    })

  test('ends a delivery before a retry that comes too late: nothing is sent, and no attempt is recorded', async () => {
    fail()
    const { db, attempt, delivery, attempts, destinationId } = await arrange()
    await attempt()
    await db('destinations')
      .where({ id: destinationId })
      .update({ updated_at: new Date(0) })
    const outcome = await attempt({ failures: 1, remainingMs: 0 })
    expect(outcome).toMatchObject({
      status: 'failed',
      error: expect.stringMatching(/503.*\(gave up after 1 attempt: retry_ttl_seconds is 3600\)$/),
      errorCode: 'http_503',
    })
    expect(target.arrivals).toHaveLength(1)
    expect(await attempts()).toHaveLength(1)
    expect(await delivery()).toMatchObject({ status: 'failed', attempts: 1, ended_by: 'retry_ttl_seconds', last_error_code: 'http_503' })
    const destination = await db('destinations').where({ id: destinationId }).first()
    expect(destination).toMatchObject({ status: 'failing' })
    expect(await db('destination_gates').where({ destination_id: destinationId }).first()).toMatchObject({
      failed_attempts: 1,
      last_error: expect.stringContaining('503'),
    })
    expect(destination.updated_at.getTime()).toBeGreaterThan(0)
  })

  test('includes the time that a retry has waited for a worker', async () => {
    const { db, documentId, attempt } = await arrange()
    await db('deliveries')
      .where({ document_id: documentId })
      .update({ round: 'first', failures: 1, round_remaining_ms: 60_000, round_expires_at: new Date(Date.now() - 60_000) })
    expect(await attempt()).toMatchObject({ status: 'failed' })
    expect(target.arrivals).toEqual([])
  })

  test('needs no slot to end: a retry at a busy destination does not wait any longer', async () => {
    target.answerWith(() => {})
    const { attempt, receive } = await arrange({}, { max_concurrent_deliveries: 1 })
    const waiting = await receive()
    const environment = createActivityEnvironment()
    const running = attempt({}, environment)
    await until('the target received a request', () => target.arrivals.length > 0)
    expect(await waiting.attempt({ failures: 1, remainingMs: 60_000 })).toMatchObject({ status: 'waiting' })
    expect(await waiting.attempt({ failures: 1, remainingMs: 0 })).toMatchObject({ status: 'failed' })
    environment.cancel()
    await expect(running).rejects.toThrow(CancelledFailure)
  })

  test('does not end a delivery that has never been attempted', async () => {
    const { attempt } = await arrange()
    expect(await attempt({ failures: 0, remainingMs: -60_000 })).toEqual({ status: 'delivered' })
  })

  test('and the number of retries are distinguished in the failure', async () => {
    fail()
    const byCount = await arrange()
    expect(await byCount.attempt({ failures: 2 })).toMatchObject({
      error: expect.stringMatching(/gave up after 3 attempts: max_retries is 2\)$/),
    })
    expect(await byCount.delivery()).toMatchObject({ ended_by: 'max_retries' })
    await byCount
      .db('deliveries')
      .where({ document_id: byCount.documentId })
      .update({ status: 'retrying', status_since: new Date(0) })
    const retried = await byCount.delivery()
    expect(retried.ended_by).toBeNull()
    expect(Date.now() - retried.status_since.getTime()).toBeLessThan(60_000)
    const byTime = await arrange()
    expect(await byTime.attempt({ failures: 0, remainingMs: 5_000 })).toMatchObject({
      error: expect.stringMatching(/gave up after 1 attempt: retry_ttl_seconds is 3600\)$/),
    })
    expect(await byTime.delivery()).toMatchObject({ ended_by: 'retry_ttl_seconds' })
    target.answerWith((_, response) => {
      response.statusCode = 410
      response.end()
    })
    const byError = await arrange()
    await byError.attempt()
    expect(await byError.delivery()).toMatchObject({ status: 'failed', ended_by: 'permanent_error' })
  })
})

describe('an attempt through an inactive connection', () => {
  const pause = (connectionId: string, isActive = false) =>
    database.db('connections').where({ id: connectionId }).update({ is_active: isActive })
  /** Adds a connection from the repository of a delivery to its destination. */
  const connectAgain = async ({ routes, destinationId }: Awaited<ReturnType<typeof arrange>>, settings: object = {}) => {
    const { db } = database
    const id = newId()
    await db('connections').insert({ id, workspace_id: routes.workspaceId, name: 'second', settings: JSON.stringify(settings) })
    await db('connection_repositories').insert({ connection_id: id, repository_id: routes.repositoryId, position: 0 })
    await db('connection_destinations').insert({ connection_id: id, destination_id: destinationId, position: 0 })
    return id
  }

  test.each([0, 1])('is not made but held, if %i attempts have failed', async (failures) => {
    const { attempt, delivery, attempts, connectionId } = await arrange()
    await pause(connectionId)
    expect(await attempt({ failures })).toEqual({ status: 'held' })
    expect(target.arrivals).toEqual([])
    expect(await attempts()).toEqual([])
    expect(await delivery()).toMatchObject({ status: 'held' })
    // The activity may run twice.
    expect(await attempt({ failures })).toEqual({ status: 'held' })
  })

  test('that is already under way is completed', async () => {
    const gate = Promise.withResolvers<void>()
    target.answerWith((_, response) => void gate.promise.then(() => response.end()))
    const { attempt, connectionId } = await arrange()
    const running = attempt()
    await until('the target received a request', () => target.arrivals.length > 0)
    await pause(connectionId)
    gate.resolve()
    expect(await running).toEqual({ status: 'delivered' })
  })

  test('is made if another active connection leads to the destination, and if its filter selects the document', async () => {
    const scene = await arrange()
    await pause(scene.connectionId)
    const second = await connectAgain(scene, { filter: { comp_ids: ['note'] } })
    expect(await scene.attempt()).toEqual({ status: 'held' })
    await database.db('deliveries').where({ document_id: scene.documentId }).update({ status: 'retrying' })
    await database.db('connections').where({ id: second }).update({ settings: '{}' })
    expect(await scene.attempt()).toEqual({ status: 'delivered' })
  })

  test('is made if the connection no longer leads to the destination', async () => {
    const { attempt, connectionId } = await arrange()
    await pause(connectionId)
    await database.db('connection_destinations').where({ connection_id: connectionId }).delete()
    expect(await attempt()).toEqual({ status: 'delivered' })
  })

  test('is held, and not ended by the time to live', async () => {
    const { attempt, connectionId } = await arrange()
    await pause(connectionId)
    expect(await attempt({ failures: 1, remainingMs: 0 })).toEqual({ status: 'held' })
  })
})

describe('upload state that a connector saves', () => {
  test('is passed to the next attempt through a heartbeat, in which it is sealed', async () => {
    const saved: unknown[] = []
    const uploading: Connector = {
      ...findConnector('webhook')!,
      deliver: async (payload, _target, context) => {
        saved.push(context.saved)
        context.save({ uploadUrl: 'https://upload.example/?token=canary' })
        return { path: 'there', bytesSent: payload.sizeBytes }
      },
    }
    const { db, attempt, documentId } = await arrange({}, {}, () => uploading)
    const first = createActivityEnvironment()
    const heartbeats: unknown[] = []
    first.on('heartbeat', (details: unknown) => heartbeats.push(details))
    await attempt({}, first)
    expect(heartbeats.length).toBeGreaterThan(0)
    expect(JSON.stringify(heartbeats)).not.toContain('canary')

    // Simulates a worker that was lost after this heartbeat and before it recorded anything.
    await db('deliveries').where({ document_id: documentId }).update({ status: 'pending' })
    await attempt({}, createActivityEnvironment({ heartbeatDetails: heartbeats[0] }))
    // The state is sealed for this delivery and cannot be opened for another one.
    const another = await arrange({}, {}, () => uploading)
    await another.attempt({}, createActivityEnvironment({ heartbeatDetails: heartbeats[0] }))
    expect(saved).toEqual([undefined, { uploadUrl: 'https://upload.example/?token=canary' }, undefined])
  })
})

describe('an upload that a failed attempt has saved', () => {
  /** Fails each attempt. The first one saves an upload, and the second one too if it gets on. @returns what the attempts have continued */
  const failTwice = async (getsOn: boolean, change: (documentId: string) => Promise<unknown> = async () => {}) => {
    const continued: unknown[] = []
    const failing: Connector = {
      ...findConnector('webhook')!,
      deliver: async (_payload, _target, { saved, save }) => {
        continued.push(saved)
        if (continued.length === 1 || getsOn) save({ part: continued.length })
        throw new DeliveryError('connection_lost', 'the connection was lost')
      },
    }
    const { attempt, comeDue, documentId } = await arrange({}, {}, () => failing)
    let heartbeatDetails: unknown
    for (let nth = 1; nth <= 3; nth += 1) {
      const environment = createActivityEnvironment({ heartbeatDetails })
      environment.on('heartbeat', (details: unknown) => {
        heartbeatDetails = details
      })
      await attempt({}, environment)
      await change(documentId)
      await comeDue()
    }
    return continued
  }

  test('is continued by the next attempt', async () => {
    expect(await failTwice(true)).toEqual([undefined, { part: 1 }, { part: 2 }])
  })

  test('is given up by the last attempt, which knows that it is the last', async () => {
    const isLast: unknown[] = []
    const failing: Connector = {
      ...findConnector('webhook')!,
      deliver: async (_payload, _target, context) => {
        isLast.push(context.isLast)
        throw new DeliveryError('connection_lost', 'the connection was lost')
      },
    }
    const { attempt, comeDue } = await arrange({}, {}, () => failing)
    for (let nth = 0; nth <= policy.maxRetries; nth += 1) {
      await attempt()
      await comeDue()
    }
    expect(isLast).toEqual([false, false, true])
  })

  test('starts anew if an attempt has got nowhere with it: the target may have forgotten it', async () => {
    expect(await failTwice(false)).toEqual([undefined, { part: 1 }, undefined])
  })

  test('is not continued if the document was overwritten at its path or changed meanwhile', async () => {
    const overwrite = (documentId: string) => database.db('deliveries').where({ document_id: documentId }).increment('overwrites')
    expect(await failTwice(true, overwrite)).toEqual([undefined, undefined, undefined])
  })
})

test('a delivery that is made again knows where the document was stored', async () => {
  const locations: unknown[] = []
  const storing: Connector = {
    ...findConnector('webhook')!,
    deliver: async ({ location }) => {
      locations.push(location)
      return { path: `stored ${locations.length}`, bytesSent: 5 }
    },
  }
  const { db, documentId, attempt } = await arrange({}, {}, () => storing)
  await attempt()
  await db('deliveries').where({ document_id: documentId }).update({ status: 'retrying' })
  await attempt()
  expect(locations).toEqual([null, 'stored 1'])
})

describe('an attempt whose record fails at first', () => {
  test.each([
    ['the pool has no connection', new DatabaseUnavailable('all 10 database connections of this process are in use')],
    ['the database is away', Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })],
  ])('is recorded again and not sent again: %s', async (_, failure) => {
    const { db } = database
    let failures = 2
    // A database whose first two answers are failures.
    const failing = {
      raw: (text: string) => ({ options: (options: object) => (failures-- > 0 ? Promise.reject(failure) : db.raw(text).options(options)) }),
    } as unknown as typeof db
    const { attempt, attempts, delivery } = await arrange({}, {}, findConnector, { recordAttempt: createRecordAttempt(failing, config) })
    expect(await attempt()).toEqual({ status: 'delivered' })
    expect(failures).toBeLessThan(0)
    expect(await attempts()).toMatchObject([{ outcome: 'delivered' }])
    expect(await delivery()).toMatchObject({ status: 'delivered', attempts: 1 })
    expect(target.arrivals).toHaveLength(1)
  })
})

describe('an attempt at a busy destination', () => {
  test('waits without a request, a record or use of the budget, and delivers once a slot is free', async () => {
    const { attempt, receive } = await arrange({}, { max_concurrent_deliveries: 1 })
    const { delivery, attempts, ...waiting } = await receive()
    let answer = () => {}
    target.answerWith((_, response) => {
      answer = () => response.end('accepted')
    })
    const first = attempt()
    await until('the target received a request', () => target.arrivals.length > 0)

    expect(await waiting.attempt()).toMatchObject({ status: 'waiting' })
    expect(target.arrivals).toHaveLength(1)
    expect(await delivery()).toMatchObject({ status: 'pending', attempts: 0, attempt_id: null })
    expect(await attempts()).toEqual([])

    answer()
    expect(await first).toEqual({ status: 'delivered' })
    target.answerWith((_, response) => response.end('accepted'))
    expect(await waiting.attempt({ isCalled: true })).toEqual({ status: 'delivered' })
  })

  test('waits if the destination has reached its own limit of deliveries per minute', async () => {
    const { attempt, receive } = await arrange({}, { max_deliveries_per_minute: 1 })
    expect(await attempt()).toEqual({ status: 'delivered' })
    const second = await receive()
    expect(await second.attempt()).toMatchObject({ status: 'waiting' })
    expect(target.arrivals).toHaveLength(1)
    expect(await second.attempts()).toEqual([])
  })

  test('does not wait if it continues the upload of a lost or stopped worker, whose slot it inherits', async () => {
    let upload = Promise.withResolvers<void>()
    const uploading: Connector = {
      ...findConnector('webhook')!,
      deliver: async ({ sizeBytes }, _target, { save, signal }) => {
        save({ parts: 1 })
        const aborted = new Promise<never>((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error))
        })
        await Promise.race([upload.promise, aborted])
        return { path: 'there', bytesSent: sizeBytes }
      },
    }
    const scene = await arrange({}, { max_concurrent_deliveries: 1 }, () => uploading)
    for (const reason of ['TIMED_OUT', 'WORKER_SHUTDOWN'] as const) {
      upload = Promise.withResolvers<void>()
      const { attempt, attempts } = await scene.receive()
      const other = await scene.receive()
      const environment = createActivityEnvironment()
      let heartbeatDetails: unknown
      environment.on('heartbeat', (details: unknown) => {
        heartbeatDetails = details
      })
      const ended = attempt({}, environment)
      await until('the upload is saved', () => heartbeatDetails !== undefined)
      environment.cancel(reason)
      await expect(ended).rejects.toThrow(CancelledFailure)
      expect(await other.attempt()).toMatchObject({ status: 'waiting' })
      upload.resolve()
      expect(await attempt({}, createActivityEnvironment({ heartbeatDetails }))).toEqual({ status: 'delivered' })
      expect(await attempts()).toMatchObject([{ outcome: 'interrupted' }, { outcome: 'delivered' }])
      expect(await other.attempt({ isCalled: true })).toEqual({ status: 'delivered' })
    }
  })

  test('returns its slot if it is held instead', async () => {
    const { attempt, receive, connectionId } = await arrange({}, { max_concurrent_deliveries: 1 })
    await database.db('connections').where({ id: connectionId }).update({ is_active: false })
    expect(await attempt()).toEqual({ status: 'held' })
    await database.db('connections').where({ id: connectionId }).update({ is_active: true })
    expect(await (await receive()).attempt()).toEqual({ status: 'delivered' })
  })
})

describe('recording a cancellation', () => {
  test('fails the delivery, even if repeated, and leaves one that has ended unchanged', async () => {
    const { documentId, destinationId, recordCancellation, delivery } = await arrange()
    const environment = createActivityEnvironment()
    await environment.run(recordCancellation, { documentId, destinationId })
    await environment.run(recordCancellation, { documentId, destinationId })
    expect(await delivery()).toMatchObject({ status: 'failed', ended_by: 'workflow_cancelled' })

    const delivered = await arrange()
    await delivered.attempt()
    expect(await environment.run(delivered.recordCancellation, delivered)).toBe('delivered')
    expect(await delivered.delivery()).toMatchObject({ status: 'delivered' })
  })
})

describe('an upload that an earlier attempt has saved', () => {
  const saved = { upload: 'begun' }
  const arrangeUpload = async (giveUp: (upload: unknown) => Promise<void>) => {
    const connector: Connector = { ...findConnector('webhook')!, giveUp: (upload) => giveUp(upload) }
    const arranged = await arrange({}, {}, () => connector)
    const savedUpload = createUploadSeal(keyRing, arranged).seal(saved)
    const attempt = (content: string) =>
      arranged.attempt({}, createActivityEnvironment({ heartbeatDetails: { attemptId: 'before', content, bytesSent: 3, savedUpload } }))
    return { ...arranged, attemptAfter: attempt }
  }

  test('is given up if the document is another one by now, and before the delivery fails because its time is over', async () => {
    const givenUp: unknown[] = []
    const giveUp = async (upload: unknown) => void givenUp.push(upload)
    const changed = await arrangeUpload(giveUp)
    expect(await changed.attemptAfter('another content')).toEqual({ status: 'delivered' })
    expect(givenUp).toEqual([saved])

    const late = await arrangeUpload(giveUp)
    await late
      .db('deliveries')
      .where({ document_id: late.documentId })
      .update({ round: 'first', failures: 1, round_remaining_ms: 60_000, round_expires_at: new Date(Date.now() - 60_000) })
    expect(await late.attemptAfter('another content')).toMatchObject({ status: 'failed' })
    expect(givenUp).toEqual([saved, saved])
  })

  test('that the target does not give up changes nothing of the delivery', async () => {
    const { attemptAfter } = await arrangeUpload(() => Promise.reject(new DeliveryError('timeout', 'silent')))
    expect(await attemptAfter('another content')).toEqual({ status: 'delivered' })
  })

  test('stays while the document waits, and is continued', async () => {
    const givenUp: unknown[] = []
    const { documentId, db, attemptAfter } = await arrangeUpload(async (upload) => void givenUp.push(upload))
    const row = await db('documents')
      .join('contents', 'contents.id', 'content_id')
      .where('documents.id', documentId)
      .first('content_id', 'contents.size_bytes')
    await attemptAfter([row.content_id, row.size_bytes, 0].join())
    expect(givenUp).toEqual([])
  })
})
