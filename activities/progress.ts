import { heartbeat } from '@temporalio/activity'

/** What a heartbeat carries to the next run of the same activity. */
export interface Progress {
  /** Missing once the attempt is over: the next run must not take it for cut off. */
  startedAt: number
  bytesSent: number
  /** What the connector needs to go on, sealed: heartbeats lie in the history. */
  saved?: string | undefined
}

// a heartbeat is a call to the server: an attempt that is over sooner than this sends none
const firstHeartbeatMs = 1_000

/** What the run before this one has told; undefined for a first run. */
export const toldBefore = (details: Partial<Progress> | null | undefined) => details ?? undefined

/** Tells the server now and then that the attempt is under way. */
export const tellProgress = (progress: Progress, { intervalMs, atOnce }: { intervalMs: number; atOnce: boolean }) => {
  let told = false
  const tell = () => {
    told = true
    heartbeat({ ...progress })
  }
  if (atOnce) tell()
  let interval: NodeJS.Timeout | undefined
  const first = setTimeout(
    () => {
      tell()
      interval = setInterval(tell, intervalMs)
    },
    Math.min(firstHeartbeatMs, intervalMs),
  )
  return {
    save: (sealed: string) => {
      progress.saved = sealed
      tell()
    },
    /** The attempt is over, one way or the other. */
    stop: () => {
      clearTimeout(first)
      clearInterval(interval)
      if (told) heartbeat(progress.saved === undefined ? undefined : { saved: progress.saved })
    },
  }
}
