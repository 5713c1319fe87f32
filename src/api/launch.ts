import type { OutboxMessage } from '../db/outbox.ts'
import type { Start } from '../db/starts.ts'

/** Dependencies of endpoints that change deliveries. */
export interface LaunchDeps {
  /** Sends committed messages to Temporal in the background. Never throws. */
  launch(messages: (OutboxMessage | Start)[]): void
  /** Deliveries that a request cancels itself; a workflow cancels the rest. */
  batchSize?: number | undefined
}
