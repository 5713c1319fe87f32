// What the overview says. Pure, so that it can be tested without a browser.
import type { components } from '../clients/typescript/src/schema.ts'

export type Statistics = components['schemas']['Stats']['attributes']
export type Period = components['schemas']['StatsPeriod']

export const ranges = ['24h', '7d', '30d'] as const
export type Range = (typeof ranges)[number]

export const rangeNamed = (name: string | null): Range => ranges.find((range) => range === name) ?? '24h'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

/** Returns the start of a range that ends now and has only whole hours, or days in UTC, but for the last one. @param nowMs since 1970 */
export const startOf = (range: Range, nowMs: number): Date => {
  const [unitMs, count] = { '24h': [hourMs, 24], '7d': [hourMs, 7 * 24], '30d': [dayMs, 30] }[range] as [number, number]
  return new Date(Math.floor(nowMs / unitMs) * unitMs - (count - 1) * unitMs)
}

/** Adds up the periods, so that the tiles agree with the plots. */
export const totalsOf = (series: readonly Period[]) => ({
  received: series.reduce((sum, { received }) => sum + (received ?? 0), 0),
  delivered: series.reduce((sum, { delivered }) => sum + delivered, 0),
  failed: series.reduce((sum, { failed }) => sum + failed, 0),
})

export type State = 'attention' | 'retrying' | 'held' | 'pending'

/** Returns what is not delivered, with its numbers, the most urgent first. */
export const statesOf = ({ unacknowledged_failures: failures, retrying, pending, held }: Statistics['present']): [State, number][] => {
  const states: [State, number][] = [
    ['attention', failures ?? 0],
    ['retrying', retrying],
    ['held', held],
    ['pending', pending],
  ]
  return states.filter(([, number]) => number > 0)
}
