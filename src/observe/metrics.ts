import { Gauge, type Metric } from 'prom-client'
import type { Database } from '../db/database.ts'

interface Pool {
  numUsed(): number
  numFree(): number
  numPendingAcquires(): number
}

/** Counts the connections of all pools of a process. */
export const createPoolMetric = (): { metric: Metric; watch(db: Database): void } => {
  const pools: Pool[] = []
  const sum = (count: (pool: Pool) => number) => pools.reduce((total, pool) => total + count(pool), 0)
  const metric = new Gauge({
    name: 'relay_database_pool_connections',
    help: 'Database connections of this process by state: `used`, `free`, or `waiting`: statements that wait for a connection',
    labelNames: ['state'],
    registers: [],
    collect() {
      this.set(
        { state: 'used' },
        sum((pool) => pool.numUsed()),
      )
      this.set(
        { state: 'free' },
        sum((pool) => pool.numFree()),
      )
      this.set(
        { state: 'waiting' },
        sum((pool) => pool.numPendingAcquires()),
      )
    },
  })
  return { metric, watch: ({ client }) => void pools.push((client as { pool: Pool }).pool) }
}
