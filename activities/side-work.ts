import { cancellationSignal } from '@temporalio/activity'
import type { RunQueue } from '../src/db/side-work.ts'
import type { SideWorkActivities } from '../workflows/messages.ts'
import { withHeartbeats } from './heartbeats.ts'

// A sixth of the heartbeat timeout of the workflows.
const heartbeatMs = 5_000

const activityOf =
  (run: RunQueue): SideWorkActivities[keyof SideWorkActivities] =>
  (queue) =>
    withHeartbeats(heartbeatMs, () => run(queue, cancellationSignal()))

export const createSideWorkActivities = <Name extends keyof SideWorkActivities>(
  runs: Record<Name, RunQueue>,
): Pick<SideWorkActivities, Name> =>
  Object.fromEntries(Object.entries<RunQueue>(runs).map(([name, run]) => [name, activityOf(run)])) as Pick<SideWorkActivities, Name>
