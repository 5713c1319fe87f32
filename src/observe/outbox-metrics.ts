import { Gauge, type Metric } from 'prom-client'
import type { Outbox } from '../db/outbox.ts'

export const createOutboxMetrics = (outbox: Pick<Outbox, 'count' | 'oldestDueSeconds'>): Metric[] => [
  new Gauge({
    name: 'relay_outbox_messages',
    help: 'Messages not yet sent to Temporal',
    registers: [],
    async collect() {
      this.set(await outbox.count().catch(() => Number.NaN))
    },
  }),
  new Gauge({
    name: 'relay_outbox_oldest_seconds',
    help: 'Time for which the oldest unsent message to Temporal has been due; 0 if there is none',
    registers: [],
    async collect() {
      this.set(await outbox.oldestDueSeconds().catch(() => Number.NaN))
    },
  }),
]
