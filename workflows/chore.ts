import { proxyActivities } from '@temporalio/workflow'
import type { ChoreActivities } from './messages.ts'

// one that fails is seen as failed: its schedule starts the next one soon enough
const { runChore } = proxyActivities<ChoreActivities>({
  startToCloseTimeout: '1h',
  heartbeatTimeout: '10s',
  retry: { maximumAttempts: 1 },
})

/** One run of a chore, started by its schedule. */
export async function chore(name: string): Promise<string> {
  return runChore({ name, atMs: Date.now() })
}
