import { Gauge, type Metric } from 'prom-client'
import type { Database } from '../db/database.ts'
import { findRepositoryWarnings } from '../workspace/repository-warnings.ts'

export const createRepositoryMetrics = (db: Database): Metric[] => [
  new Gauge({
    name: 'relay_repository_warnings',
    help: 'Active repositories with a warning, by its code. `not_connected`: what the repository receives is discarded',
    labelNames: ['code'],
    registers: [],
    async collect() {
      this.reset()
      const found = await findRepositoryWarnings(db).catch(() => ({}))
      for (const [code, names] of Object.entries<string[]>(found)) this.set({ code }, names.length)
    },
  }),
]
