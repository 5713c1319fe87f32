import type { Config } from '../config/config.ts'
import type { OutboxMessage } from '../db/outbox.ts'

/** Dependencies of endpoints that change deliveries. */
export interface LaunchDeps {
  /** Sends committed messages to Temporal in the background. Never throws. */
  launch(messages: OutboxMessage[]): void
  config: Pick<Config, 'DELIVERY_BATCH_SIZE'>
}
