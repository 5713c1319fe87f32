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

/** Returns how many of the first items fit in a batch: at least one, if there is any. */
export const fitting = <Item>(
  items: Item[],
  sizeOf: (item: Item) => number,
  { maxItems, maxBytes }: Pick<BatchLimits, 'maxItems' | 'maxBytes'>,
): number => {
  const first = items.slice(0, maxItems)
  let bytes = 0
  const end = first.findIndex((item, index) => {
    bytes += sizeOf(item)
    return bytes > maxBytes && index > 0
  })
  return end < 0 ? first.length : end
}

// What a statement costs, however many items it has, is then little for each of them. More would leave the callers without work while it runs.
const enoughItems = 6

/**
 * Creates a function that runs items together. Callers that were answered together come back together, and the first of them would run
 * alone, and the others after it. So an item waits until there are as many as are expected to be under way, or enough of them: for
 * `maxWaitMs` at most, and not at all if it has come alone lately.
 * @param run returns one result per item, in their order
 */
export const createBatches = <Item, Result>(run: (items: Item[]) => Promise<Result>[], limits: BatchLimits) => {
  const waiting: Entry<Item, Result>[] = []
  let running = 0
  // How many items run or wait together: the most since the last wait for others that did not come.
  let expected = 0
  let immediate: NodeJS.Immediate | undefined
  let timer: NodeJS.Timeout | undefined

  const countOfBatch = () => fitting(waiting, ({ sizeBytes }) => sizeBytes, limits)

  const isEnough = () => waiting.length >= Math.min(expected, enoughItems, limits.maxItems) || countOfBatch() < waiting.length

  const runBatch = (batch: Entry<Item, Result>[]): void => {
    running += batch.length
    const ended = () => {
      running -= 1
      if (waiting.length > 0 && isEnough()) runWaiting()
    }
    const results = run(batch.map(({ item }) => item))
    for (const [index, { resolve }] of batch.entries()) {
      const result = results[index]!
      resolve(result)
      result.then(ended, ended)
    }
  }

  const runWaiting = () => {
    clearImmediate(immediate)
    clearTimeout(timer)
    immediate = timer = undefined
    while (waiting.length > 0) runBatch(waiting.splice(0, countOfBatch()))
  }

  const runLate = () => {
    if (running === 0) expected = waiting.length
    runWaiting()
  }

  /** Runs an item. @param sizeBytes its share of `maxBytes` */
  return (item: Item, sizeBytes = 0): Promise<Result> =>
    new Promise((resolve) => {
      waiting.push({ item, sizeBytes, resolve })
      expected = Math.max(expected, running + waiting.length)
      // Requests that Node has read in the same turn run together.
      if (running === 0 && isEnough()) immediate ??= setImmediate(runWaiting)
      else timer ??= setTimeout(runLate, limits.maxWaitMs)
    })
}
