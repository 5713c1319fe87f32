/** Remembers values until their time is over, and no more of them than this: the one unused for longest gives way. */
export const createExpiring = <Value>(entriesAtMost: number) => {
  const entries = new Map<string, { value: Value; untilMs: number }>()
  return {
    find: (key: string, nowMs = Date.now()): Value | undefined => {
      const entry = entries.get(key)
      if (!entry) return undefined
      entries.delete(key)
      if (entry.untilMs <= nowMs) return undefined
      // moved to the end: the first of the map is the one unused for longest
      entries.set(key, entry)
      return entry.value
    },
    keep: (key: string, value: Value, untilMs: number) => {
      entries.delete(key)
      entries.set(key, { value, untilMs })
      const [oldest] = entries.keys()
      if (entries.size > entriesAtMost && oldest !== undefined) entries.delete(oldest)
    },
    forget: (key: string) => void entries.delete(key),
  }
}
