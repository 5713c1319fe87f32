import { proxyActivities, setCurrentDetails, sleep } from '@temporalio/workflow'
import type { ChoreActivities, ChoreInput } from './messages.ts'

const { runChore } = proxyActivities<ChoreActivities>({
  startToCloseTimeout: '1h',
  heartbeatTimeout: '10s',
  retry: { initialInterval: '5s', backoffCoefficient: 2, maximumInterval: '1m' },
})

/**
 * One run of a chore, started by its schedule. What has to be done more often than the schedule starts runs is done again and again within one:
 * a run for each time would leave operators no other workflow to see.
 */
export async function chore({ name, everyMs, forMs }: ChoreInput): Promise<string> {
  const endsAt = Date.now() + forMs
  for (;;) {
    const told = await runChore({ name, atMs: Date.now() })
    setCurrentDetails(told)
    if (Date.now() + everyMs >= endsAt) return told
    await sleep(everyMs)
  }
}
