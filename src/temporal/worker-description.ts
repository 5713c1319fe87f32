import { hostname } from 'node:os'
import { version } from '../base/version.ts'
import type { Config } from '../config/config.ts'
import type { WorkerDescription } from '../domain/relay-state.ts'

/** Returns what this process says about itself as a worker. */
export const describeWorker = ({ TEMPORAL_WORKER_BUILD_ID: buildId }: Pick<Config, 'TEMPORAL_WORKER_BUILD_ID'>): WorkerDescription => ({
  // As the SDK makes it.
  name: `${process.pid}@${hostname()}`,
  version,
  buildId: buildId ?? null,
  startedAt: new Date(Date.now() - process.uptime() * 1_000).toISOString(),
})
