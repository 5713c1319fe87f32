import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { createMaintenanceActivities } from '../../activities/maintenance.ts'
import type { Database } from '../../src/db/database.ts'
import { createTemporal } from '../../src/temporal/client.ts'
import { testConfig } from '../support/factories.ts'
import { createMaintenanceDeps } from '../support/maintenance.ts'

export const config = testConfig({
  TEMPORAL_START_TIMEOUT_MS: '60000',
})

/** Creates the real activities. The sweep starts workflows on a task queue without a worker. */
export const maintenanceActivities = (db: Database, env: TestWorkflowEnvironment) =>
  createMaintenanceActivities(
    createMaintenanceDeps(db, createTemporal(env.client, env.connection, { ...config, TEMPORAL_TASK_QUEUE: 'nobody' }), config),
  )
