import { setCurrentDetails, sleep } from '@temporalio/workflow'
import { controlActivities } from './control.ts'
import type { MaintenanceActivities, MaintenanceInput } from './messages.ts'

/**
 * Runs a maintenance job, started by its schedule. A job that is due more often than the schedule fires is repeated within one workflow.
 * With one workflow per run, operators would see little else in the list of workflows.
 */
export async function maintenance({ job, everyMs, forMs }: MaintenanceInput): Promise<string> {
  const { runMaintenance } = controlActivities<MaintenanceActivities>({
    startToCloseTimeout: '1h',
    heartbeatTimeout: '10s',
    retry: { initialInterval: '5s', backoffCoefficient: 2, maximumInterval: '1m' },
  })
  const endsAt = Date.now() + forMs
  for (;;) {
    const summary = await runMaintenance({ job, atMs: Date.now() })
    setCurrentDetails(summary)
    if (Date.now() + everyMs >= endsAt) return summary
    await sleep(everyMs)
  }
}
