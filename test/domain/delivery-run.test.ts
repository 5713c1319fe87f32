import {
  applyOutcome,
  attemptBudget,
  newRun,
  nextAttempt,
  requestRetry,
  startRound,
  type AttemptOutcome,
  type DeliveryRun,
} from '../../src/domain/delivery-run.ts'

const policy = { maxRetries: 10, ttlMs: 3_600_000, initialIntervalMs: 1_000, maxIntervalMs: 60_000 }
const otherPolicy = { ...policy, maxRetries: 2 }
const defaults = { requestId: 'default', policy }
const startedAt = 100_000

const retrying: AttemptOutcome = { status: 'retrying', delayMs: 1_000, failures: 1, error: 'HTTP 503', errorCode: 'http_503' }
const failed: AttemptOutcome = { status: 'failed', error: 'HTTP 403', errorCode: 'permission_denied', remedy: 'Give the permission.' }
const waiting: AttemptOutcome = { status: 'waiting', delayMs: 5_000 }

const inRound = (change: Partial<DeliveryRun> = {}): DeliveryRun => ({ ...startRound(newRun(), policy), ...change })

describe('requestRetry', () => {
  test.each<[string, unknown, { requested: object; acceptedRequests: string[] }]>([
    ['a request with an id and a policy', { requestId: 'r1', policy: otherPolicy }, { requested: otherPolicy, acceptedRequests: ['r1'] }],
    ['a request without a policy', { requestId: 'r1' }, { requested: policy, acceptedRequests: ['r1'] }],
    ['an empty object', {}, { requested: policy, acceptedRequests: ['default'] }],
    ['no payload', undefined, { requested: policy, acceptedRequests: ['default'] }],
    ['null', null, { requested: policy, acceptedRequests: ['default'] }],
    ['a text', 'retry', { requested: policy, acceptedRequests: ['default'] }],
    ['a number as id', { requestId: 7 }, { requested: policy, acceptedRequests: ['default'] }],
    ['an incomplete policy', { requestId: 'r1', policy: { maxRetries: 3 } }, { requested: policy, acceptedRequests: ['r1'] }],
  ])('accepts %s', (_, payload, expected) => {
    expect(requestRetry(newRun(), payload, defaults)).toEqual({ ...newRun(), ...expected })
  })

  test('accepts a request once', () => {
    const once = requestRetry(newRun(), { requestId: 'r1' }, defaults)
    const started = startRound(once, policy)
    expect(requestRetry(started, { requestId: 'r1' }, defaults)).toBe(started)
  })

  test('keeps the policy of the last of several requests', () => {
    const twice = requestRetry(requestRetry(newRun(), { requestId: 'r1' }, defaults), { requestId: 'r2', policy: otherPolicy }, defaults)
    expect(twice).toMatchObject({ requested: otherPolicy, acceptedRequests: ['r1', 'r2'] })
  })
})

describe('startRound', () => {
  test('starts the round of a release under its policy, and uses up the release', () => {
    const released = { ...newRun(), released: otherPolicy }
    const round = { policy: otherPolicy, failures: 0, waits: 0 }
    expect(startRound(released, policy)).toEqual({ status: 'pending', acceptedRequests: [], round })
    const held = applyOutcome({ ...inRound(), released: otherPolicy }, { status: 'held' }, startedAt)
    expect(held).toMatchObject({ status: 'held', round: undefined, released: otherPolicy })
    expect(startRound(held, policy)).toEqual({ status: 'retrying', acceptedRequests: [], round })
  })

  test('starts the first round without a change of the status', () => {
    expect(startRound(newRun(), policy)).toEqual({ status: 'pending', acceptedRequests: [], round: { policy, failures: 0, waits: 0 } })
  })

  test('starts a requested round under its own policy, as retrying and without the last error', () => {
    const run = requestRetry(applyOutcome(inRound(), failed, startedAt), { requestId: 'r1', policy: otherPolicy }, defaults)
    expect(startRound(run, policy)).toEqual({
      status: 'retrying',
      acceptedRequests: ['r1'],
      round: { policy: otherPolicy, failures: 0, waits: 0 },
    })
  })
})

describe('attemptBudget', () => {
  test.each([
    ['the first attempt has the whole time to live', {}, { failures: 0, waits: 0, remainingMs: policy.ttlMs }],
    [
      'a later attempt has what remains since the start of the first',
      { failures: 3, firstAttemptAt: 40_000 },
      { failures: 3, waits: 0, remainingMs: policy.ttlMs - 60_000 },
    ],
    [
      'the remaining time may be negative',
      { failures: 3, firstAttemptAt: startedAt - policy.ttlMs - 1 },
      { failures: 3, waits: 0, remainingMs: -1 },
    ],
    ['waits for a slot are passed on', { waits: 4 }, { failures: 0, waits: 4, remainingMs: policy.ttlMs }],
  ])('%s', (_, round, expected) => {
    const run = inRound({ round: { policy, failures: 0, waits: 0, ...round } })
    expect(attemptBudget(run, startedAt)).toEqual({ policy, ...expected })
  })
})

describe('applyOutcome', () => {
  test.each<[string, DeliveryRun, AttemptOutcome, object]>([
    ['delivered ends the round', inRound(), { status: 'delivered' }, { status: 'delivered' }],
    ['held ends the round', applyOutcome(inRound(), retrying, startedAt), { status: 'held' }, { status: 'held' }],
    ['cancelled ends the round', inRound(), { status: 'cancelled' }, { status: 'cancelled' }],
    ['delivered clears the last error', applyOutcome(inRound(), retrying, startedAt), { status: 'delivered' }, { status: 'delivered' }],
    [
      'failed ends the round, with the error and its remedy',
      inRound(),
      failed,
      { status: 'failed', error: 'HTTP 403', errorCode: 'permission_denied', remedy: 'Give the permission.' },
    ],
    [
      'retrying keeps the round, with the failures and the start of the first attempt',
      inRound(),
      retrying,
      {
        status: 'retrying',
        error: 'HTTP 503',
        errorCode: 'http_503',
        round: { policy, failures: 1, waits: 0, firstAttemptAt: startedAt },
      },
    ],
    [
      'a second failure keeps the start of the first attempt',
      applyOutcome(inRound(), retrying, startedAt - 5_000),
      { ...retrying, failures: 2 },
      {
        status: 'retrying',
        error: 'HTTP 503',
        errorCode: 'http_503',
        round: { policy, failures: 2, waits: 0, firstAttemptAt: startedAt - 5_000 },
      },
    ],
    [
      'a failure after waits for a slot resets the waits',
      inRound({ round: { policy, failures: 0, waits: 7 } }),
      retrying,
      { status: 'retrying', error: 'HTTP 503', errorCode: 'http_503', round: { policy, failures: 1, waits: 0, firstAttemptAt: startedAt } },
    ],
    [
      'waiting counts one wait and changes nothing else',
      applyOutcome(inRound(), retrying, startedAt),
      waiting,
      {
        status: 'retrying',
        error: 'HTTP 503',
        errorCode: 'http_503',
        round: { policy, failures: 1, waits: 1, firstAttemptAt: startedAt },
      },
    ],
    [
      'an error without a code clears the code of the last error',
      applyOutcome(inRound(), retrying, startedAt),
      { status: 'failed', error: 'The worker was lost' },
      { status: 'failed', error: 'The worker was lost' },
    ],
    [
      'a business object that arrived meanwhile is kept',
      inRound(),
      { ...failed, businessObject: 'BUS2081/4711' },
      { ...failed, businessObject: 'BUS2081/4711' },
    ],
  ])('%s', (_, run, outcome, expected) => {
    expect(applyOutcome(run, outcome, startedAt)).toEqual({ acceptedRequests: [], ...expected })
  })

  test('keeps the business object of an earlier failure', () => {
    const run = applyOutcome(inRound(), { ...retrying, businessObject: 'BUS2081/4711' }, startedAt)
    expect(applyOutcome(run, retrying, startedAt).businessObject).toBe('BUS2081/4711')
    expect(applyOutcome(run, { status: 'delivered' }, startedAt).businessObject).toBe('BUS2081/4711')
  })

  test('keeps a request that arrived during the attempt', () => {
    const run = requestRetry(inRound(), { requestId: 'r1' }, defaults)
    expect(applyOutcome(run, failed, startedAt)).toMatchObject({ status: 'failed', requested: policy, acceptedRequests: ['r1'] })
  })
})

test('counts attempts from one, the first attempt included', () => {
  expect(nextAttempt(inRound())).toBe('attempt 1 of 11')
  expect(nextAttempt(applyOutcome(inRound(), { ...retrying, failures: 4 }, startedAt))).toBe('attempt 5 of 11')
})
