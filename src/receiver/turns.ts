import { setTimeout as delay } from 'node:timers/promises'

/**
 * Runs work of the same name one after the other within this process. Between processes the database decides.
 * @returns undefined where the turn did not come within the time
 */
export const createTurns = (timeoutMs: number) => {
  const last = new Map<string, Promise<unknown>>()

  return async <T>(name: string, work: () => Promise<T>): Promise<{ done: T } | undefined> => {
    const before = last.get(name)
    let end = () => {}
    const mine = Promise.all([before, new Promise<void>((resolve) => (end = resolve))])
    last.set(name, mine)
    try {
      if (before && (await Promise.race([before, delay(timeoutMs, 'late', { ref: false })])) === 'late') return undefined
      return { done: await work() }
    } finally {
      end()
      if (last.get(name) === mine) last.delete(name)
    }
  }
}

export type Turns = ReturnType<typeof createTurns>
