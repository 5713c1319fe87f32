/** The number of deliveries by the upper bound of their latency in milliseconds, which is a power of two. */
export type LatencyHistogram = Readonly<Record<string, number>>

/** Adds up histograms. */
export const addHistograms = (histograms: readonly LatencyHistogram[]): LatencyHistogram => {
  const sum: Record<string, number> = {}
  for (const histogram of histograms) {
    for (const [bound, count] of Object.entries(histogram)) sum[bound] = (sum[bound] ?? 0) + count
  }
  return sum
}

/**
 * Estimates a percentile. The buckets double, and latencies are taken to be spread evenly in each.
 * @param share 0.95 for the 95th percentile
 * @returns whole milliseconds, or null without deliveries
 */
export const percentileOf = (histogram: LatencyHistogram, share: number): number | null => {
  const buckets = Object.entries(histogram)
    .map(([bound, count]) => ({ bound: Number(bound), count }))
    .filter(({ count }) => count > 0)
    .toSorted((one, other) => one.bound - other.bound)
  const rank = share * buckets.reduce((sum, { count }) => sum + count, 0)
  let below = 0
  for (const { bound, count } of buckets) {
    if (below + count >= rank) return Math.round(bound / 2 + (bound / 2) * ((rank - below) / count))
    below += count
  }
  return null
}
