import {
  applyOutcome,
  newRun,
  noteFailure,
  requestRetry,
  startRound,
  type DeliveryRun,
  type FailedAttempt,
} from '../../src/domain/delivery-run.ts'

type Ended = Parameters<typeof applyOutcome>[1]

const policy = { maxRetries: 10, ttlMs: 3_600_000, initialIntervalMs: 1_000, maxIntervalMs: 60_000 }
const otherPolicy = { ...policy, maxRetries: 2 }
const defaults = { requestId: 'default', policy }

const failure: FailedAttempt = { error: 'HTTP 503', errorCode: 'http_503' }
const failed: Ended = { status: 'failed', error: 'HTTP 403', errorCode: 'permission_denied', remedy: 'Give the permission.' }
const waiting: Ended = { status: 'waiting', askAgainMs: 5_000 }

const inRound = (change: Partial<DeliveryRun> = {}): DeliveryRun => ({ ...startRound(newRun(), 'first', policy), ...change })

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
    const started = startRound(once, 'first', policy)
    expect(requestRetry(started, { requestId: 'r1' }, defaults)).toBe(started)
  })

  test('keeps the policy of the last of several requests', () => {
    const twice = requestRetry(requestRetry(newRun(), { requestId: 'r1' }, defaults), { requestId: 'r2', policy: otherPolicy }, defaults)
    expect(twice).toMatchObject({ requested: otherPolicy, acceptedRequests: ['r1', 'r2'] })
  })
})

describe('startRound', () => {
  const round = (id: string, ofRound = policy) => ({ id, policy: ofRound })

  test('starts the round of a release under its policy, and uses up the release', () => {
    const released = { ...newRun(), released: otherPolicy }
    const expected = { acceptedRequests: [], isCalled: false }
    expect(startRound(released, 'first', policy)).toEqual({ status: 'pending', ...expected, round: round('first', otherPolicy) })
    const held = applyOutcome({ ...inRound(), released: otherPolicy }, { status: 'held' })
    expect(held).toMatchObject({ status: 'held', round: undefined, released: otherPolicy })
    expect(startRound(held, 'second', policy)).toEqual({ status: 'retrying', ...expected, round: round('second', otherPolicy) })
  })

  test('starts the first round without a change of the status', () => {
    expect(inRound()).toEqual({ status: 'pending', acceptedRequests: [], isCalled: false, round: round('first') })
  })

  test('starts a requested round under its own policy, as retrying and without the last error, ahead of the line', () => {
    const run = requestRetry(applyOutcome(inRound(), failed), { requestId: 'r1', policy: otherPolicy }, defaults)
    expect(startRound(run, 'second', policy)).toEqual({
      status: 'retrying',
      acceptedRequests: ['r1'],
      isCalled: true,
      round: round('second', otherPolicy),
    })
  })
})

describe('noteFailure', () => {
  test('makes the delivery retrying, with the error, in the same round', () => {
    const run = noteFailure(inRound(), failure)
    expect(run).toEqual({ ...inRound(), status: 'retrying', ...failure })
    expect(noteFailure(run, { error: 'the worker was lost' })).toEqual({ ...inRound(), status: 'retrying', error: 'the worker was lost' })
  })
})

describe('applyOutcome', () => {
  test.each<[string, DeliveryRun, Ended, object]>([
    ['delivered ends the round', inRound(), { status: 'delivered' }, { status: 'delivered' }],
    ['held ends the round', noteFailure(inRound(), failure), { status: 'held' }, { status: 'held' }],
    ['cancelled ends the round', inRound(), { status: 'cancelled' }, { status: 'cancelled' }],
    ['delivered clears the last error', noteFailure(inRound(), failure), { status: 'delivered' }, { status: 'delivered' }],
    ['failed ends the round, with the error and its remedy', inRound(), failed, failed],
    ['failed as one of many leaves no trace of that in the next run', inRound(), { ...failed, keepsOpen: false }, failed],
    [
      'an error without a code clears the code of the last error',
      noteFailure(inRound(), failure),
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
    expect(applyOutcome(run, outcome)).toEqual({ acceptedRequests: [], isCalled: false, ...expected })
  })

  test('waiting changes nothing', () => {
    const run = noteFailure(inRound(), failure)
    expect(applyOutcome(run, waiting)).toBe(run)
  })

  test('keeps the business object of an earlier failure', () => {
    const run = noteFailure(inRound(), { ...failure, businessObject: 'BUS2081/4711' })
    expect(noteFailure(run, failure).businessObject).toBe('BUS2081/4711')
    expect(applyOutcome(run, { status: 'delivered' }).businessObject).toBe('BUS2081/4711')
  })

  test('keeps a request that arrived during the attempt', () => {
    const run = requestRetry(inRound(), { requestId: 'r1' }, defaults)
    expect(applyOutcome(run, failed)).toMatchObject({ status: 'failed', requested: policy, acceptedRequests: ['r1'] })
  })
})
