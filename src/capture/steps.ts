import { setImmediate as nextTurn } from 'node:timers/promises'

/** Work on a text that pauses after a limited number of steps, and returns its result in the end. */
export type Steps<Result> = Generator<undefined, Result, undefined>

// A step handles one token, in about a microsecond.
const stepsUntilPause = 1_000
const sliceMs = 10

/** Creates a function for `if (isPauseDue()) yield`. It returns true after a limited number of calls. */
export const pauseAfterSteps = () => {
  let steps = 0
  return (): boolean => (steps += 1) % stepsUntilPause === 0
}

/**
 * Runs the work in slices of about ten milliseconds, so that a hostile text of a megabyte does not delay other requests. Short work ends in
 * the first slice.
 */
export const runInSlices = async <Result>(work: Steps<Result>): Promise<Result> => {
  let sliceEndsAt = performance.now() + sliceMs
  for (;;) {
    const step = work.next()
    if (step.done) return step.value
    if (performance.now() < sliceEndsAt) continue
    await nextTurn()
    sliceEndsAt = performance.now() + sliceMs
  }
}

/** Runs the work at once. Only for texts that are known to be short. */
export const runAtOnce = <Result>(work: Steps<Result>): Result => {
  for (;;) {
    const step = work.next()
    if (step.done) return step.value
  }
}
