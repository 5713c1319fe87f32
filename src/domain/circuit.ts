// The circuit of a destination. While it is closed, attempts start as the limits allow. After several consecutive failures it is opened,
// and no attempt starts for a pause. Then it is half open: one real delivery tries the target. A trial that fails opens it again, for
// twice the pause; any attempt that succeeds closes it. The circuit delays deliveries and never fails one.

export const circuitStates = ['closed', 'open', 'half_open'] as const

export interface Circuit {
  state: (typeof circuitStates)[number]
  /** Consecutive failed attempts. */
  failures: number
  /** The pause before the latest trial, in milliseconds. */
  pauseMs: number
  /** Time at which a trial may start, in milliseconds; undefined while the circuit is closed. */
  trialAt?: number | undefined
  /** The attempt that tries the target. */
  trialId?: string | undefined
}

export interface CircuitLimits {
  /** Consecutive failures that open the circuit; 0 keeps it closed. */
  maxFailures: number
  pauseMs: number
  maxPauseMs: number
}

/**
 * The meaning of an attempt for the circuit. `answered`: it succeeded, or failed for a reason that no retry can mend. `failed`: a retry
 * may help. `unknown`: it was interrupted, or sent nothing, or the relay itself failed.
 */
export type CircuitSignal = 'answered' | 'failed' | 'unknown'

export const closedCircuit: Circuit = { state: 'closed', failures: 0, pauseMs: 0 }

/**
 * Returns the circuit after the start of an attempt, or undefined if the attempt must wait. The statement in src/delivery/delivery-job.ts
 * applies the same rule; test/delivery/circuit.db.test.ts compares the two.
 * @param leaseMs time after which another trial replaces this one if its worker is lost
 */
export const startAttempt = (circuit: Circuit, trialId: string, now: number, leaseMs: number): Circuit | undefined => {
  if (circuit.state === 'closed') return circuit
  if (circuit.trialAt! > now) return undefined
  return { ...circuit, state: 'half_open', trialAt: now + leaseMs, trialId }
}

/** Returns the circuit after the end of an attempt. The statement in src/delivery/record-attempt.ts applies the same rule. */
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
