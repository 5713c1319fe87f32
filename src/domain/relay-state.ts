// What is known of the parts of an installation that deliver: the workers, and Temporal.

/**
 * `no_worker`: documents are received, and wait until a worker runs. `temporal_unavailable`: Temporal does not answer, or refuses the relay;
 * documents are received and wait.
 */
export const relayStatuses = ['working', 'no_worker', 'temporal_unavailable'] as const
export type RelayStatus = (typeof relayStatuses)[number]

/** What a worker says about itself. */
export interface WorkerDescription {
  /** The identity under which Temporal lists it. */
  name: string
  version: string
  buildId: string | null
  startedAt: string
}

/** A worker that runs, or did so within the last hour. */
interface KnownWorker extends WorkerDescription {
  lastSeenAt: Date
  isRunning: boolean
}

export interface RelayState {
  status: RelayStatus
  /** When the process that answers noticed it, or began to look. */
  since: Date
  workers: KnownWorker[]
}
