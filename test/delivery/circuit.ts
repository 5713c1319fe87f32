import type { Circuit, CircuitSignal } from '../../src/domain/circuit.ts'

// The rules of the circuit, which SQL applies in src/delivery. circuit.db.test.ts compares the two.

interface CircuitLimits {
  /** Consecutive failures that open the circuit; 0 keeps it closed. */
  maxFailures: number
  pauseMs: number
  maxPauseMs: number
}

export const closedCircuit: Circuit = { state: 'closed', failures: 0, pauseMs: 0 }

/**
 * Returns the circuit after the start of an attempt, or undefined if the attempt must wait. src/delivery/circuit.ts
 * applies this rule in SQL.
 * @param leaseMs time after which another trial replaces this one if its worker is lost
 */
export const startAttempt = (circuit: Circuit, trialId: string, now: number, leaseMs: number): Circuit | undefined => {
  if (circuit.state === 'closed') return circuit
  if (circuit.trialAt! > now) return undefined
  return { ...circuit, state: 'half_open', trialAt: now + leaseMs, trialId }
}

/** Returns the circuit after the end of an attempt. src/delivery/circuit.ts applies this rule in SQL. */
export const endAttempt = (circuit: Circuit, id: string, signal: CircuitSignal, now: number, limits: CircuitLimits): Circuit => {
  const isTrial = circuit.trialId === id
  if (signal === 'answered') return closedCircuit
  if (signal === 'unknown') return isTrial ? { ...circuit, trialAt: now } : circuit
  const failures = circuit.failures + 1
  const isTooMany = limits.maxFailures > 0 && failures >= limits.maxFailures
  const opens = isTrial || (circuit.state === 'closed' && isTooMany)
  if (!opens) return { ...circuit, failures }
  const pauseMs = isTrial ? Math.min(2 * circuit.pauseMs, limits.maxPauseMs) : limits.pauseMs
  return { state: 'open', failures, pauseMs, trialAt: now + pauseMs }
}
