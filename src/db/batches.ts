export interface BatchLimits {
  maxItems: number
  maxBytes: number
  /** Time after which an item no longer waits for the end of a running batch. */
  maxWaitMs: number
}

/** Limits for reads, which are small. The time is that of a few queries. */
export const readLimits: BatchLimits = { maxItems: 100, maxBytes: Infinity, maxWaitMs: 2 }

interface Entry<Item, Result> {
  item: Item
  sizeBytes: number
  resolve(result: Promise<Result>): void
}

/**
 * Creates a function that runs items together. An item runs at once if nothing else does. What arrives while a batch runs makes up the
 * next one, which begins at the end of a running batch or after `maxWaitMs`. So batches grow with the load, and nothing waits alone.
 * @param run returns one result per item, in their order
 */
export const createBatches = <Item, Result>(run: (items: Item[]) => Promise<Result>[], limits: BatchLimits) => {
  const waiting: Entry<Item, Result>[] = []
  let running = 0
  let immediate: NodeJS.Immediate | undefined
  let timer: NodeJS.Timeout | undefined

  const takeBatch = (): Entry<Item, Result>[] => {
    let bytes = 0
    const end = waiting.slice(0, limits.maxItems).findIndex(({ sizeBytes }, index) => {
      bytes += sizeBytes
      return bytes > limits.maxBytes && index > 0
    })
    return waiting.splice(0, end < 0 ? limits.maxItems : end)
  }

  const runBatch = async (batch: Entry<Item, Result>[]): Promise<void> => {
    running += 1
    const results = run(batch.map(({ item }) => item))
    for (const [index, { resolve }] of batch.entries()) resolve(results[index]!)
    await Promise.allSettled(results)
    running -= 1
    runWaiting()
  }

  const runWaiting = () => {
    clearImmediate(immediate)
    clearTimeout(timer)
    immediate = timer = undefined
    while (waiting.length > 0) void runBatch(takeBatch())
  }

  /** Runs an item. @param sizeBytes its share of `maxBytes` */
  return (item: Item, sizeBytes = 0): Promise<Result> =>
    new Promise((resolve) => {
      waiting.push({ item, sizeBytes, resolve })
      // Requests that Node has read in the same turn run together.
      if (running === 0) immediate ??= setImmediate(runWaiting)
      else timer ??= setTimeout(runWaiting, limits.maxWaitMs)
    })
}
