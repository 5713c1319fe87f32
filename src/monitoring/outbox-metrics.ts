import { Gauge, type Metric } from 'prom-client'
import type { Outbox } from '../db/outbox.ts'

export const createOutboxMetrics = (outbox: Pick<Outbox, 'count'>): Metric[] => [
  new Gauge({
    name: 'relay_outbox_messages',
    help: 'Messages not yet sent to Temporal',
    registers: [],
    async collect() {
      this.set(await outbox.count().catch(() => Number.NaN))
    },
  }),
]
