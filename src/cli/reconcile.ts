import { UserError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { isOutage } from '../db/errors.ts'
import { createOnItsOwn } from '../db/on-its-own.ts'
import { createBulkRetries } from '../delivery/bulk-retry.ts'
import { createReconcile, type Reconciled } from '../delivery/reconcile.ts'
import { describeTemporalError, isTemporalError, isUnavailable } from '../temporal/errors.ts'
import { withLauncher } from './with-launcher.ts'

/**
 * `relay reconcile`: asks Temporal about overdue deliveries, and starts those again that Temporal has lost.
 * @throws `UserError` if Temporal does not answer
 */
export const reconcileNow = (config: Config, log: Log, { dryRun }: { dryRun: boolean }): Promise<Reconciled> =>
  withLauncher(config, log, 'reconcile', async (db, launcher, temporal) => {
    const { onItsOwn } = createOnItsOwn({ log, concernsAll: (thrown) => isOutage(thrown) || isUnavailable(thrown) })
    try {
      return await createReconcile(db, temporal, createBulkRetries(db), launcher.sendAll, config, { onItsOwn })({ dryRun })
    } catch (thrown) {
      if (isTemporalError(thrown)) throw new UserError(describeTemporalError(thrown, config.temporal), { cause: thrown })
      throw thrown
    }
  })
