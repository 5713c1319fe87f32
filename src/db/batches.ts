export interface BatchLimits {
  maxItems: number
  maxBytes: number
  /** Time after which an item no longer waits for others. */
  maxWaitMs: number
}

/** Limits for reads, which are small. The time is that of a few queries. */
export const readLimits: BatchLimits = { maxItems: 100, maxBytes: Infinity, maxWaitMs: 2 }

interface Entry<Item, Result> {
  item: Item
  sizeBytes: number
  resolve(result: Promise<Result>): void
}

// Up to so many items that are under way together run as one batch. More run as two in turns, so that the callers have work while one runs.
const fewItems = 4

/**
 * Creates a function that runs items together. An item that comes alone runs at once. Where several have been under way, it waits for as
 * many as make up a batch, at most for `maxWaitMs`: callers that were answered together come back together, and the first of them would
 * otherwise run alone, and the others after it. So batches grow with the load, and nothing waits alone.
 * @param run returns one result per item, in their order
 */
export const createBatches = <Item, Result>(run: (items: Item[]) => Promise<Result>[], limits: BatchLimits) => {
  const waiting: Entry<Item, Result>[] = []
  // Items of the running batches; and the most that there have been, a tenth less with each batch.
  let running = 0
  let expected = 0
  let immediate: NodeJS.Immediate | undefined
  let timer: NodeJS.Timeout | undefined

  const isEnough = () => waiting.length >= Math.max(expected / 2, Math.min(expected, fewItems))

  const takeBatch = (): Entry<Item, Result>[] => {
    let bytes = 0
    const end = waiting.slice(0, limits.maxItems).findIndex(({ sizeBytes }, index) => {
      bytes += sizeBytes
      return bytes > limits.maxBytes && index > 0
    })
    return waiting.splice(0, end < 0 ? limits.maxItems : end)
  }

  const runBatch = async (batch: Entry<Item, Result>[]): Promise<void> => {
    running += batch.length
    expected = Math.max(running, Math.floor(expected * 0.9))
    const results = run(batch.map(({ item }) => item))
    for (const [index, { resolve }] of batch.entries()) resolve(results[index]!)
    await Promise.allSettled(results)
    running -= batch.length
    if (isEnough()) runWaiting()
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
      if (running === 0 && isEnough()) immediate ??= setImmediate(runWaiting)
      else timer ??= setTimeout(runWaiting, limits.maxWaitMs)
    })
}
