import { Gauge, type Metric } from 'prom-client'
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import { countOverdue, maxCountedOverdue } from '../delivery/overdue.ts'

export const createOverdueMetric = (db: Database, config: Pick<Config, 'RECONCILE_INTERVAL_MS'>): Metric =>
  new Gauge({
    name: 'relay_deliveries_overdue',
    help: `Open deliveries whose next attempt is overdue and about which nobody has asked Temporal, up to ${maxCountedOverdue}`,
    registers: [],
    async collect() {
      this.set(await countOverdue(db, config).catch(() => Number.NaN))
    },
  })
