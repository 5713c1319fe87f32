import type { OutboxMessage } from '../db/outbox.ts'

/** Dependencies of endpoints that change deliveries. */
export interface LaunchDeps {
  /** Sends committed messages to Temporal in the background. Never throws. */
  launch(messages: OutboxMessage[]): void
  /** Deliveries that a request cancels itself; a workflow cancels the rest. */
  batchSize?: number | undefined
}
