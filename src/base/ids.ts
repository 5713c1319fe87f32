import { randomInt } from 'node:crypto'
import { decodeTime, encodeTime, monotonicFactory, ulid } from 'ulid'

const random = () => randomInt(32) / 32

// Corrections of a clock that is right are smaller.
const clockStepMs = 1_000

const clock = { latestMs: 0, next: monotonicFactory(random) }

/**
 * Creates a ULID: 26 characters, sortable by time and strictly increasing within a process, unless its clock is set back by more than a
 * second: then ids follow the clock, because they say when something happened. Randomness comes from Node's `randomInt`, which requests it
 * from the system in bulk and takes 2 us per id. The library's default requests it for each character and takes 60 us.
 */
export const newId = (): string => {
  const now = Date.now()
  if (now < clock.latestMs - clockStepMs) Object.assign(clock, { latestMs: now, next: monotonicFactory(random) })
  clock.latestMs = Math.max(clock.latestMs, now)
  return clock.next(now)
}

/** Creates a ULID that is later than another one, which may come from a process whose clock is ahead. Later ids of this process are not. */
export const newIdAfter = (other: string): string => {
  const id = newId()
  return id > other ? id : ulid(decodeTime(other) + 1, random)
}

export const idPattern = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/

export const isId = (text: string) => idPattern.test(text)

/**
 * Returns the first ten characters of the ULIDs created in a millisecond, the lower bound of that time in a column of
 * ids.
 */
export const idPrefixAt = (time: Date) => encodeTime(Math.max(0, time.getTime()), 10)

/** Returns the time, in milliseconds, at which an id was created. */
export const timeOfId = (id: string) => new Date(decodeTime(id))

/** Returns the time of the first ten characters of an id. */
export const timeOfIdPrefix = (prefix: string) => timeOfId(prefix.padEnd(26, '0'))
