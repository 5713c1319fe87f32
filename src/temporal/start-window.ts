const windowLimits = {
  /**
   * Starts that may be open in any case: one for a workspace that has nothing open, and some for the others. Measured on two processors
   * beside a flood of 60 documents per second: with 5, 16.4 are delivered per second, and another workspace waits 0.50 s (p95); with 8, 15.8
   * and 0.68 s. But without a flood, 5 reach 0.66 of the bare workflows with 1 MiB, and 8 reach 0.79.
   */
  minimum: 8,
  /** However fast the workers are. */
  maximum: 200,
}

// The least that may be open with a small part of the workspaces: one, and one more for a workspace that has nothing open.
const leastOpen = 2

// The window aims at this multiple of the unloaded time. With less, the rate could not grow.
const goal = 2
// Rates are measured over this time.
const rateMs = 2_000
// The unloaded time is measured again at this interval, because others may use the processors as well. Until it is known, the window is at its
// minimum, and what was started before does not count.
const baseMs = 30_000
const baseSamples = 5

/**
 * Limits the open starts of a dispatcher: documents whose workflows were started and whose first attempts have not begun. More of them
 * would deliver nothing earlier. They would wait in Temporal, in front of the documents of other workspaces.
 *
 * By Little's law, as many are open as begin per second, times the time that each takes. The window is what is open if each takes twice the
 * time that it takes in an idle installation, as in the congestion control BBR of TCP: there is nothing to configure, and it follows the
 * speed of the machines. This holds for each part of the workspaces by itself: the rates of the parts add up, and so do their windows. Only
 * the minimum has to be divided, or as many dispatchers would let as many times the minimum wait in Temporal.
 * @param now returns the time in milliseconds
 */
export const createStartWindow = (now: () => number, { minimum, maximum } = windowLimits) => {
  let base = { ms: Number.POSITIVE_INFINITY, samples: 0, since: now() }
  let begun: number[] = []

  return {
    /** Returns how many starts may be open. @param part of the workspaces that this dispatcher has, above 0 and up to 1 */
    size: (part = 1): number => {
      const least = Math.min(minimum, Math.max(leastOpen, Math.ceil(part * minimum)))
      if (base.samples < baseSamples) return least
      const since = now() - rateMs
      begun = begun.filter((at) => at > since)
      const perMs = begun.length / rateMs
      return Math.min(maximum, Math.max(least, Math.ceil(goal * perMs * base.ms)))
    },
    /** Notes that the first attempt of a document has begun. @param tookMs time since its start */
    noteBegun: (tookMs: number): void => {
      if (now() - base.since > baseMs) base = { ms: Number.POSITIVE_INFINITY, samples: 0, since: now() }
      if (now() - tookMs >= base.since) base = { ...base, ms: Math.min(base.ms, tookMs), samples: base.samples + 1 }
      begun.push(now())
    },
  }
}
