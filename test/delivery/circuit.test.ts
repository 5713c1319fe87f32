import type { Circuit, CircuitSignal } from '../../src/domain/circuit.ts'
import { closedCircuit, endAttempt, startAttempt } from './circuit.ts'

const limits = { maxFailures: 3, pauseMs: 10_000, maxPauseMs: 30_000 }
const now = 1_000_000

const open: Circuit = { state: 'open', failures: 3, pauseMs: 10_000, trialAt: now + 10_000 }
const halfOpen: Circuit = { state: 'half_open', failures: 3, pauseMs: 10_000, trialAt: now + 60_000, trialId: 'trial' }

test.each<[string, Circuit, number, Circuit | undefined]>([
  ['starts while the circuit is closed', { ...closedCircuit, failures: 2 }, 0, { ...closedCircuit, failures: 2 }],
  ['waits while the circuit is open', open, 9_999, undefined],
  ['is the trial after the pause', open, 10_000, { ...halfOpen, trialAt: now + 10_000 + 60_000, trialId: 'next' }],
  ['waits for the trial', halfOpen, 59_999, undefined],
  ['replaces a trial that was lost', halfOpen, 60_000, { ...halfOpen, trialAt: now + 120_000, trialId: 'next' }],
])('an attempt %s', (_, circuit, afterMs, expected) => {
  expect(startAttempt(circuit, 'next', now + afterMs, 60_000)).toEqual(expected)
})

test.each<[string, Circuit, string, CircuitSignal, Circuit]>([
  ['a failure is counted', { ...closedCircuit, failures: 1 }, 'a', 'failed', { ...closedCircuit, failures: 2 }],
  ['the last of several failures opens the circuit', { ...closedCircuit, failures: 2 }, 'a', 'failed', open],
  ['an answer ends the count', { ...closedCircuit, failures: 2 }, 'a', 'answered', closedCircuit],
  ['an interruption says nothing', { ...closedCircuit, failures: 2 }, 'a', 'unknown', { ...closedCircuit, failures: 2 }],
  ['a late failure does not prolong the pause', open, 'late', 'failed', { ...open, failures: 4 }],
  ['a late answer closes the circuit', open, 'late', 'answered', closedCircuit],
  ['a failed trial doubles the pause', halfOpen, 'trial', 'failed', { state: 'open', failures: 4, pauseMs: 20_000, trialAt: now + 20_000 }],
  [
    'the pause has a maximum',
    { ...halfOpen, pauseMs: 20_000 },
    'trial',
    'failed',
    { state: 'open', failures: 4, pauseMs: 30_000, trialAt: now + 30_000 },
  ],
  ['an interrupted trial is replaced at once', halfOpen, 'trial', 'unknown', { ...halfOpen, trialAt: now }],
  ['a failure beside the trial is counted', halfOpen, 'late', 'failed', { ...halfOpen, failures: 4 }],
  ['a trial that is answered closes the circuit', halfOpen, 'trial', 'answered', closedCircuit],
])('%s', (_, circuit, id, signal, expected) => {
  expect(endAttempt(circuit, id, signal, now, limits)).toEqual(expected)
})

test('a circuit that is switched off is never opened', () => {
  const circuit = { ...closedCircuit, failures: 1_000 }
  expect(endAttempt(circuit, 'a', 'failed', now, { ...limits, maxFailures: 0 })).toMatchObject({ state: 'closed' })
})
