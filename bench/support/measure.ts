import type { Installation } from './installation.ts'
import type { Answered } from './load.ts'
import type { CpuTimes } from './processes.ts'
import { mediansOf, quantile, rangeOf } from './statistics.ts'

/** One round of a case. */
export interface Measured extends Answered {
  /** CPU time per request, in milliseconds, by process. */
  cpuMs: CpuTimes
}

/** Measures the CPU time per request that the processes of an installation use while the load runs. */
export const measure = async ({ cpuTimes }: Installation, run: () => Promise<Answered>): Promise<Measured> => {
  const before = cpuTimes()
  const answered = await run()
  return { ...answered, cpuMs: cpuMsPerUnit(before, cpuTimes(), answered.requests) }
}

/** Returns the CPU time between two readings, per request or document. */
export const cpuMsPerUnit = (before: CpuTimes, after: CpuTimes, units: number): CpuTimes =>
  Object.fromEntries(Object.entries(after).map(([name, ms]) => [name, (ms - (before[name] ?? 0)) / units]))

/** Summarizes the rounds of a case. Latencies of all rounds count together. */
export const summarize = (rounds: Measured[]) => {
  const latenciesMs = rounds.flatMap((round) => round.latenciesMs)
  return {
    per_second: rangeOf(rounds.map(({ requests, seconds }) => requests / seconds)),
    median_ms: quantile(latenciesMs, 0.5),
    p95_ms: quantile(latenciesMs, 0.95),
    p99_ms: quantile(latenciesMs, 0.99),
    cpu_ms: mediansOf(rounds.map(({ cpuMs }) => cpuMs)),
  }
}

export type Summary = ReturnType<typeof summarize>
