import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import { createOutbox } from '../db/outbox.ts'
import { withDatabase } from '../db/with-database.ts'
import { openTemporal, type Temporal } from '../temporal/client.ts'
import { createLauncher, type Launcher } from '../temporal/launcher.ts'

/** Opens the database and Temporal for a command that sends messages. What cannot be sent is sent later by a worker. */
export const withLauncher = <Result>(
  config: Config,
  log: Log,
  verb: string,
  work: (db: Database, launcher: Launcher, temporal: Temporal) => Promise<Result>,
): Promise<Result> =>
  withDatabase(config, verb, async (db) => {
    const temporal = openTemporal(config)
    const launcher = createLauncher(temporal, createOutbox(db), log)
    try {
      return await work(db, launcher, temporal)
    } finally {
      await launcher.close()
      await temporal.close()
    }
  })
