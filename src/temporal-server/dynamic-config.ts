/**
 * Dynamic configuration of the servers that the relay starts, as `name=value`. Without `matching.enableFairness` the server ignores the fairness
 * keys of workflows. With the default of `history.transferProcessorMaxPollRPS`, 20 per second and shard, each of the nine steps of a document
 * waits for up to 50 ms, because these servers have few shards. With the default of four partitions of a task queue, a task in one that no worker
 * polls is forwarded to another one, and again and again while no worker polls at all; partitions serve rates that these servers do not reach.
 * With one look a second at what the lists of workflows have to show, instead of 20, a workflow that ends within the second is written to them
 * once, and not at its start as well; the batch is larger, because one of 100 would be all that a shard shows in a second. Each look of a shard
 * at its new tasks goes through those that it remembers, and it forgets those that are done every 3 seconds, by default 30: with few shards, that took
 * an eighth of the server's processor time.
 */
export const dynamicConfig = [
  'system.enableActivityEagerExecution=true',
  'matching.useNewMatcher=true',
  'matching.enableFairness=true',
  'history.transferProcessorMaxPollRPS=100',
  'matching.numTaskqueueReadPartitions=1',
  'matching.numTaskqueueWritePartitions=1',
  'history.visibilityProcessorMaxPollRPS=1',
  'history.visibilityTaskBatchSize=1000',
  'history.transferProcessorUpdateAckInterval="3s"',
  'history.timerProcessorUpdateAckInterval="3s"',
  'history.visibilityProcessorUpdateAckInterval="3s"',
]

/**
 * Dynamic configuration of the servers that are children of the relay. By default, history keeps 128,000 workflows in memory, each for an hour after its last
 * step: at 2 documents a second the server had 880 MiB after three quarters of an hour, and still grew. A workflow takes several times the
 * memory that is counted for it. If what is kept comes near the limit of the heap, much of the processor time goes into collecting garbage. A workflow
 * that is not in memory is read again from the database at its next step.
 */
export const memoryLimits = [
  'history.cacheSizeBasedLimit=true',
  'history.hostLevelCacheMaxSizeBytes=8388608',
  'history.cacheTTL="20s"',
  'history.cacheBackgroundEvict={"Enabled":true,"LoopInterval":"5s","MaxEntryPerCall":1024}',
]

/** Returns settings in the form of the server's file. YAML includes JSON. */
export const dynamicConfigFile = (settings: readonly string[]): string =>
  JSON.stringify(
    Object.fromEntries(
      settings.map((setting) => {
        const [name, value] = setting.split('=') as [string, string]
        return [name, [{ value: JSON.parse(value) as unknown }]]
      }),
    ),
  )

/** Fewer collections of garbage while there is little of it. Measured with the development server: a fifth more documents a second. */
export const garbageCollector = { GOGC: '400', GOMEMLIMIT: '512MiB' }
