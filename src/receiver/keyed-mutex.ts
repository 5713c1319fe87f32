import { setTimeout as delay } from 'node:timers/promises'

/**
 * Runs work of the same key one after another within this process. Between processes, database locks decide.
 * @param timeoutMs the longest time to wait for the lock
 * @returns a function that returns undefined if the lock was not acquired in time
 */
export const createKeyedMutex = (timeoutMs: number) => {
  const last = new Map<string, Promise<unknown>>()

  return async <T>(key: string, work: () => Promise<T>): Promise<{ result: T } | undefined> => {
    const previous = last.get(key)
    let release = () => {}
    const current = Promise.all([previous, new Promise<void>((resolve) => (release = resolve))])
    last.set(key, current)
    try {
      if (previous && (await Promise.race([previous, delay(timeoutMs, 'timeout', { ref: false })])) === 'timeout') return undefined
      return { result: await work() }
    } finally {
      release()
      if (last.get(key) === current) last.delete(key)
    }
  }
}

export type KeyedMutex = ReturnType<typeof createKeyedMutex>
