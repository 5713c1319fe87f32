// A workflow that cannot go on is terminated only if two checks in a row find it at the same place. What the first one has found is kept in the
// column `stuck_run` of its delivery or bulk retry: `run/length`. The run that was terminated is kept there as `run`.

/** How far a run of a workflow has come. */
export interface RunProgress {
  runId: string
  /** Number of events in its history. */
  historyLength: number
}

/** Returns what a check notes of a workflow that cannot go on. */
export const suspicionOf = ({ runId, historyLength }: RunProgress): string => `${runId}/${historyLength}`

/** SQL: `stuck_run` after a check that has found `next`. A check that finds nothing wrong ends a suspicion, and forgets no termination. */
export const nextStuckRun = (next: string) => `case when ${next} is null and stuck_run not like '%/%' then stuck_run else ${next} end`
