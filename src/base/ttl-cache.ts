/** A bounded map whose entries expire. A full cache drops the least recently used entry. */
export interface TtlCache<Value> {
  /** Returns the value of an entry that has not expired, and marks the entry as recently used. */
  get(key: string): Value | undefined
  /** @param expiresAtMs in milliseconds by the cache's clock. An entry without it never expires. */
  set(key: string, value: Value, expiresAtMs?: number): void
  delete(key: string): void
  /** Empties the cache. @returns the values it held */
  drain(): Value[]
}

/** @param onEvict is called with each value that is dropped because the cache is full */
export const createTtlCache = <Value>({
  maxEntries,
  now = () => Date.now(),
  onEvict,
}: {
  maxEntries: number
  now?: () => number
  onEvict?: (value: Value) => void
}): TtlCache<Value> => {
  // A Map iterates in insertion order. Each use inserts its entry again, so the first entry is the least recently used
  // one.
  const entries = new Map<string, { value: Value; expiresAtMs: number }>()
  return {
    get: (key) => {
      const entry = entries.get(key)
      if (!entry) return undefined
      entries.delete(key)
      if (entry.expiresAtMs <= now()) return undefined
      entries.set(key, entry)
      return entry.value
    },
    set: (key, value, expiresAtMs = Infinity) => {
      entries.delete(key)
      entries.set(key, { value, expiresAtMs })
      const [oldest] = entries
      if (entries.size <= maxEntries || oldest === undefined) return
      entries.delete(oldest[0])
      onEvict?.(oldest[1].value)
    },
    delete: (key) => void entries.delete(key),
    drain: () => {
      const values = [...entries.values()].map(({ value }) => value)
      entries.clear()
      return values
    },
  }
}
