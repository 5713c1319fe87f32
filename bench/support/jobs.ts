import { createRetention } from '../../src/maintenance/retention.ts'
import { createCheckIncidents } from '../../src/notifications/check-incidents.ts'
import { computeAggregates } from '../../src/observe/aggregates.ts'
import type { Side } from './side.ts'

type Work = Pick<Side<unknown>, 'db' | 'config'>

/** The jobs of maintenance that ask about everything: each runs once, as if at that time. */
export const jobs = {
  'compute-metrics': ({ db }: Work) => computeAggregates(db),
  'check-incidents': ({ db, config }: Work, now = new Date()) => createCheckIncidents(db, config)(now),
  'apply-retention': ({ db, config }: Work, now = new Date()) =>
    createRetention(db, config).removeExpired(now, new AbortController().signal),
}
