import { heartbeat } from '@temporalio/activity'

/**
 * Runs work that may take longer than the heartbeat timeout of its activity, and sends heartbeats to Temporal while it runs.
 * @param intervalMs at most a third of that timeout
 */
export const withHeartbeats = async <Result>(intervalMs: number, work: () => Promise<Result>): Promise<Result> => {
  const beats = setInterval(() => heartbeat(), intervalMs)
  try {
    return await work()
  } finally {
    clearInterval(beats)
  }
}
