import { ApplicationFailure } from '@temporalio/common'
import { MockActivityEnvironment } from '@temporalio/testing'

/** Creates the environment of an activity that the workflow has asked for just now. */
export const createActivityEnvironment = (info: ConstructorParameters<typeof MockActivityEnvironment>[0] = {}): MockActivityEnvironment =>
  new MockActivityEnvironment({ scheduledTimestampMs: Date.now(), ...info })

/** What an activity tells Temporal: its outcome, or a failure with the time after which Temporal repeats it. */
interface Told {
  outcome?: unknown
  message?: string
  /** True if Temporal does not repeat it. */
  isFinal?: boolean
  delayMs?: number
}

/** Runs an activity for the nth time, as Temporal does. */
export const runActivity = async (attempt: number, activity: () => Promise<unknown>): Promise<Told> => {
  try {
    return { outcome: await createActivityEnvironment({ attempt }).run(activity) }
  } catch (thrown) {
    if (!(thrown instanceof ApplicationFailure)) throw thrown
    const { message, nonRetryable, nextRetryDelay } = thrown
    return { message, isFinal: nonRetryable ?? false, ...(nextRetryDelay != null && { delayMs: Number(nextRetryDelay) }) }
  }
}

/** Expects that a run has told what the one before it had, whose answer was lost. Of a delay, less is left. */
export const expectSame = (second: Told, first: Told): void => {
  expect({ ...second, delayMs: 0 }).toEqual({ ...first, delayMs: 0 })
  if (first.delayMs === undefined) return
  expect(second.delayMs).toBeGreaterThan(0)
  expect(second.delayMs).toBeLessThanOrEqual(first.delayMs)
}
