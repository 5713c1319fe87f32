import { createReceive } from '../../src/archive/receive.ts'
import { newId } from '../../src/base/ids.ts'
import { closeCircuit, endPause } from '../../src/delivery/circuit.ts'
import { createLoadJob, type DeliveryJob } from '../../src/delivery/delivery-job.ts'
import { createRecordAttempt } from '../../src/delivery/record-attempt.ts'
import { withdrawAttempt } from '../../src/delivery/slots.ts'
import type { Circuit, CircuitSignal } from '../../src/domain/circuit.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, firstRound, receivedDocument, testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'
import { closedCircuit, endAttempt, startAttempt } from './circuit.ts'

// Pauses are long, so that time passes only where the test says so.
const limits = { maxFailures: 3, pauseMs: 1_000_000, maxPauseMs: 3_000_000 }
const config = testConfig({
  DELIVERY_CIRCUIT_FAILURES: String(limits.maxFailures),
  DELIVERY_CIRCUIT_PAUSE_MS: String(limits.pauseMs),
  DELIVERY_HEARTBEAT_TIMEOUT_MS: '600000',
  DELIVERY_MAX_CONCURRENT_PER_DESTINATION: '100',
})

const database = share(await createTestDatabase())

interface Started {
  attemptId: string
  delivery: { documentId: string; destinationId: string }
  job: DeliveryJob
}

// The delivery that asks is next in line: wake.db.test.ts tests the line.
const asCalled = { continues: undefined, hasPlace: true, isCalled: true }

const arrange = async (workerConfig = config) => {
  const { db } = database
  const load = createLoadJob(db, workerConfig)
  const recordAttempt = createRecordAttempt(db, workerConfig, async () => {}, limits.maxPauseMs / limits.pauseMs)
  const routes = await createRoutes(db, [{ name: 'archive' }])
  const destinationId = routes.destinations['archive']!
  const gate = () => db('destination_gates').where({ destination_id: destinationId })
  /** Starts an attempt. @returns it, or the job of the one that has to wait */
  const start = async (): Promise<Started | DeliveryJob> => {
    const { messages } = await createReceive(db, config)(await receivedDocument(routes, { data: 'hello' }))
    const delivery = { documentId: messages[0]!.input.documentId, destinationId }
    const attemptId = newId()
    const job = (await load({ ...delivery, ...firstRound }, { attemptId, ...asCalled }))!
    return job.hasSlot ? { attemptId, delivery, job } : job
  }
  const end = ({ attemptId, delivery, job }: Started, signal: CircuitSignal) =>
    recordAttempt(delivery, job, {
      id: attemptId,
      operation: signal === 'answered' ? 'attemptDelivered' : 'attemptRetryable',
      outcome: signal === 'answered' ? 'delivered' : signal === 'failed' ? 'retryable' : 'interrupted',
      durationMs: 1,
      bytesSent: 0,
      signal,
    })
  const mustStart = async (): Promise<Started> => {
    const started = await start()
    if (!('attemptId' in started && 'delivery' in started)) throw new Error('the attempt has to wait')
    return started
  }
  return {
    db,
    destinationId,
    start,
    mustStart,
    end,
    open: async () => {
      for (let failure = 0; failure < limits.maxFailures; failure += 1) await end(await mustStart(), 'failed')
    },
    letPauseEnd: () =>
      gate()
        .whereNot({ circuit: 'closed' })
        .update({ trial_at: new Date(Date.now() - 3_600_000) }),
    state: async () => {
      const row = await gate().first()
      return {
        state: row.circuit,
        failures: row.failures,
        pauseMs: row.pause_ms,
        trialId: row.trial_id ?? undefined,
        trialAt: row.trial_at,
      }
    },
    failingSince: async (): Promise<Date | null> => (await gate().first()).failing_since,
  }
}

test('the time of the first of the failures in a row is kept until an attempt is answered', async () => {
  const { mustStart, end, failingSince } = await arrange()
  const answered = await mustStart()
  await end(await mustStart(), 'failed')
  const since = await failingSince()
  expect(since).toBeInstanceOf(Date)
  await end(await mustStart(), 'failed')
  expect(await failingSince()).toEqual(since)
  await end(answered, 'answered')
  expect(await failingSince()).toBeNull()
})

test('the statements follow the rules of the domain, whatever happens in whatever order', async () => {
  const { start, end, letPauseEnd, state } = await arrange()
  // A fixed sequence that reaches every state several times.
  let seed = 7
  const random = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((seed / 2_147_483_648) * below)
  }
  const now = 0
  let circuit: Circuit = closedCircuit
  const running: Started[] = []
  const seen = new Set<string>()
  for (let step = 0; step < 250; step += 1) {
    const action = random(10)
    if (action < 5) {
      const started = await start()
      const id = 'delivery' in started ? started.attemptId : newId()
      const next = startAttempt(circuit, id, now, 1_000)
      expect([step, 'delivery' in started]).toEqual([step, next !== undefined])
      if (next && 'delivery' in started) {
        circuit = next
        running.push(started)
      } else expect(started).toMatchObject({ refusal: { circuit: circuit.state } })
    } else if (action < 9) {
      const [ending] = running.splice(random(running.length), 1)
      if (!ending) continue
      const signal = (['failed', 'failed', 'failed', 'failed', 'unknown', 'answered'] as const)[random(6)]!
      await end(ending, signal)
      circuit = endAttempt(circuit, ending.attemptId, signal, now, limits)
    } else {
      await letPauseEnd()
      if (circuit.state !== 'closed') circuit = { ...circuit, trialAt: now }
    }
    const { trialAt, ...actual } = await state()
    const isDue = trialAt === null ? undefined : trialAt.getTime() <= Date.now()
    const { trialAt: expectedTrialAt, ...expected } = circuit
    expect({ step, isDue, ...actual }).toEqual({
      step,
      isDue: expectedTrialAt === undefined ? undefined : expectedTrialAt <= now,
      trialId: undefined,
      ...expected,
    })
    seen.add(`${circuit.state} ${circuit.pauseMs}`)
  }
  expect([...seen].toSorted()).toEqual([
    'closed 0',
    'half_open 1000000',
    'half_open 2000000',
    'half_open 3000000',
    'open 1000000',
    'open 2000000',
    'open 3000000',
  ])
})

test('of attempts that start at the same time after the pause, one is the trial', async () => {
  const { start, open, letPauseEnd } = await arrange()
  await open()
  await letPauseEnd()
  const started = await Promise.all(Array.from({ length: 12 }, () => start()))
  expect(started.filter((one) => 'delivery' in one)).toHaveLength(1)
})

test('a trial that is not made after all is replaced at once', async () => {
  const { db, start, mustStart, open, letPauseEnd } = await arrange()
  await open()
  await letPauseEnd()
  const { delivery, attemptId } = await mustStart()
  expect(await start()).toMatchObject({ hasSlot: false })
  await withdrawAttempt(db, delivery, attemptId)
  await mustStart()
})

test('a successful test closes the circuit, and a repair lets the next delivery trial at once', async () => {
  const { db, destinationId, start, mustStart, end, open, state } = await arrange()
  await open()
  expect(await start()).toMatchObject({ hasSlot: false, refusal: { circuit: 'open' } })
  await db.transaction((trx) => endPause(trx, [destinationId]))
  await end(await mustStart(), 'failed')
  expect(await state()).toMatchObject({ state: 'open', pauseMs: 2 * limits.pauseMs })
  await closeCircuit(db, destinationId)
  expect(await state()).toMatchObject({ state: 'closed', failures: 0 })
  await Promise.all([mustStart(), mustStart()])
})

test('a circuit that was open when circuits are switched off holds nothing back', async () => {
  const scene = await arrange()
  await scene.open()
  const { delivery } = (await scene.start()) as unknown as Started
  expect(delivery).toBeUndefined()
  const load = createLoadJob(scene.db, { ...config, DELIVERY_CIRCUIT_FAILURES: 0 })
  const waiting = await scene.db('deliveries').where({ destination_id: scene.destinationId, status: 'pending' }).first()
  const job = await load(
    { documentId: waiting.document_id, destinationId: scene.destinationId, ...firstRound },
    { attemptId: newId(), ...asCalled },
  )
  expect(job).toMatchObject({ hasSlot: true })
})
