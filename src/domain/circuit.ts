// The circuit of a destination. While it is closed, attempts start as the limits allow. After several consecutive failures it is opened,
// and no attempt starts for a pause. Then it is half open: one real delivery tries the target. A trial that fails opens it again, for
// twice the pause; any attempt that succeeds closes it. The circuit delays deliveries and never fails one.

/** Consecutive failed attempts from which a destination is failing, even if its circuit is closed. */
export const failingFrom = 5

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

/**
 * The meaning of an attempt for the circuit. `answered`: it succeeded, or failed for a reason that no retry can mend. `failed`: a retry
 * may help. `unknown`: it was interrupted, or sent nothing, or the relay itself failed.
 */
export type CircuitSignal = 'answered' | 'failed' | 'unknown'
