import type { Config } from '../config.ts'
import type { OutboxMessage } from '../db/outbox.ts'

/** For endpoints that change what is on its way. */
export interface LaunchDeps {
  /** Sends what has been committed. Never throws, and waits for nothing. */
  launch(messages: OutboxMessage[]): void
  config: Pick<Config, 'DELIVERY_BATCH_SIZE'>
}
