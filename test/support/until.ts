import { setTimeout as delay } from 'node:timers/promises'

// The disk of a busy machine can stall for half a minute. Only a failing test waits this long.
const defaultTimeoutMs = 60_000

/**
 * Calls `read` every 25 ms until `isDone` accepts its value; by default, until the value is truthy.
 * @param description completes the message `timed out waiting for: ...`
 * @returns the accepted value
 */
export const until = async <T>(
  description: string,
  read: () => Promise<T> | T,
  isDone: (value: T) => boolean = Boolean,
  timeoutMs = defaultTimeoutMs,
): Promise<T> => {
  for (const deadline = Date.now() + timeoutMs; ; await delay(25)) {
    const value = await read()
    if (isDone(value)) return value
    if (Date.now() > deadline) throw new Error(`timed out waiting for: ${description}; last value: ${JSON.stringify(value)}`)
  }
}
