import type { Replay } from '../../src/capture/replay.ts'
import type { Database } from '../../src/db/database.ts'
import { createAcknowledge, createAcknowledgeReplayed } from '../../src/delivery/acknowledge.ts'
import { createBulkPage } from '../../src/delivery/bulk-page.ts'
import { testConfig } from './factories.ts'

const withoutReceiver: Replay = () => Promise.reject(new Error('There is no receiver in this test'))

/** Returns what the workflow of a bulk retry calls. @param replay without one, no request can be replayed */
export const bulkPageOf = (db: Database, { config = testConfig(), replay = withoutReceiver } = {}) =>
  createBulkPage({ db, replay, acknowledge: createAcknowledge(db), acknowledgeReplayed: createAcknowledgeReplayed(db), config })
