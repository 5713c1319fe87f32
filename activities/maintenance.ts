import { cancellationSignal } from '@temporalio/activity'
import { ApplicationFailure } from '@temporalio/common'
import { findJob, type MaintenanceDeps } from '../src/maintenance/jobs.ts'
import type { MaintenanceActivities } from '../workflows/messages.ts'
import { withHeartbeats } from './heartbeats.ts'

// A third of the heartbeat timeout of the workflow.
const heartbeatIntervalMs = 3_000

export const createMaintenanceActivities = (deps: MaintenanceDeps): MaintenanceActivities => ({
  runMaintenance: async ({ job: name, atMs }) => {
    const job = findJob(name)
    if (!job) throw ApplicationFailure.nonRetryable(`this worker has no job ${name}: delete its schedule, or upgrade the worker`)
    return withHeartbeats(heartbeatIntervalMs, () => job.run(deps, { now: new Date(atMs), signal: cancellationSignal() }))
  },
})
