import { ApplicationFailure } from '@temporalio/common'
import { cancellationSignal, heartbeat } from '@temporalio/activity'
import { findChore, type ChoreDeps } from '../src/chores.ts'
import type { ChoreActivities } from '../workflows/messages.ts'

// a third of what the workflow allows
const heartbeatIntervalMs = 3_000

export const createChoreActivities = (deps: ChoreDeps): ChoreActivities => ({
  runChore: async ({ name, atMs }) => {
    const found = findChore(name)
    if (!found) throw ApplicationFailure.nonRetryable(`this worker knows no chore ${name}: delete its schedule, or update the worker`)
    const beats = setInterval(() => heartbeat(), heartbeatIntervalMs)
    try {
      return await found.run(deps, { now: new Date(atMs), signal: cancellationSignal() })
    } finally {
      clearInterval(beats)
    }
  },
})
