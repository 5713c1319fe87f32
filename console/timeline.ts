// Where the parts of a document's timeline lie. Pure, so that it can be tested without a browser.

interface TimelineAttempt {
  number: number
  startedAtMs: number
  durationMs: number
  outcome: string
}

export interface TimelineDelivery {
  id: string
  name: string
  status: string
  /** When the delivery got its status. */
  statusSinceMs: number
  nextAttemptAtMs: number | null
  attempts: TimelineAttempt[]
}

/** A stretch of time. Positions are percent of the width. */
interface Stretch {
  left: number
  width: number
}

export interface TimelineLane {
  id: string
  name: string
  status: string
  /** Stretch from the receipt to the last thing that has happened or is planned. */
  line: Stretch
  attempts: (Stretch & { number: number; outcome: string })[]
  next: number | null
}

export interface Timeline {
  ticks: { left: number; ms: number }[]
  now: number | null
  lanes: TimelineLane[]
}

const openStatuses = new Set(['pending', 'held', 'retrying'])
const second = 1_000
const [minute, hour, day] = [60 * second, 3_600 * second, 86_400 * second]
const tickCandidates = [second, 10 * second, minute, 10 * minute, hour, 6 * hour, day, 7 * day, 30 * day, 365 * day]
// Below it, the scale is nearly linear: attempts of milliseconds stay apart from the receipt.
const kneeMs = 250
const attemptMinWidth = 0.8
const tickMinDistance = 9

/**
 * Lays a timeline out. The scale is logarithmic: the waits between attempts grow exponentially, and the first seconds matter as much as
 * the last day.
 */
export const layOutTimeline = (receivedAtMs: number, deliveries: readonly TimelineDelivery[], nowMs: number): Timeline => {
  const isOpen = deliveries.some(({ status }) => openStatuses.has(status))
  const ends = deliveries.flatMap(({ statusSinceMs, nextAttemptAtMs, attempts }) => [
    statusSinceMs,
    nextAttemptAtMs ?? 0,
    ...attempts.map(({ startedAtMs, durationMs }) => startedAtMs + durationMs),
  ])
  const spanMs = Math.max(second, ...ends.map((end) => end - receivedAtMs), isOpen ? nowMs - receivedAtMs : 0)
  const scale = Math.log1p(spanMs / kneeMs)
  // 96: a mark at the end needs space.
  const at = (ms: number) => (Math.log1p(Math.max(0, ms - receivedAtMs) / kneeMs) / scale) * 96
  const stretch = (fromMs: number, toMs: number) => ({ left: at(fromMs), width: Math.max(attemptMinWidth, at(toMs) - at(fromMs)) })

  const ticks: Timeline['ticks'] = []
  for (const ms of tickCandidates) {
    const left = at(receivedAtMs + ms)
    if (ms <= spanMs && left - (ticks.at(-1)?.left ?? 0) >= tickMinDistance) ticks.push({ left, ms })
  }

  return {
    ticks,
    now: isOpen ? at(nowMs) : null,
    lanes: deliveries.map(({ id, name, status, statusSinceMs, nextAttemptAtMs, attempts }) => {
      const last = Math.max(
        receivedAtMs,
        openStatuses.has(status) ? Math.max(nowMs, nextAttemptAtMs ?? 0) : statusSinceMs,
        ...attempts.map(({ startedAtMs, durationMs }) => startedAtMs + durationMs),
      )
      return {
        id,
        name,
        status,
        line: { left: 0, width: at(last) },
        attempts: attempts.map(({ number, startedAtMs, durationMs, outcome }) => ({
          number,
          outcome,
          ...stretch(startedAtMs, startedAtMs + durationMs),
        })),
        next: nextAttemptAtMs === null ? null : at(nextAttemptAtMs),
      }
    }),
  }
}
