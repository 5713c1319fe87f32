// What a rate of documents demands of each part of an installation. docs/scaling.md explains the numbers.

/** Measured per document of 10 KiB with one destination that succeeds at once, see docs/performance.md. */
export interface Costs {
  /** Processor time of an API process that accepts the document, in milliseconds. */
  acceptCpuMs: number
  /** Of a worker that delivers it. */
  deliverCpuMs: number
  /** Of PostgreSQL, for both. */
  relayDatabaseCpuMs: number
  /** Of the Temporal server, without its database. */
  temporalCpuMs: number
  /** Of the database of Temporal. */
  temporalDatabaseCpuMs: number
  /** Write-ahead log of the relay's database, without the bytes of the document. */
  walBytes: number
  /** Rows and indexes that stay in the relay's database, without bodies. */
  storedBytes: number
  /** Time for which a connection of the pool is held, by all statements together, in milliseconds. */
  connectionMs: number
}

export interface Demand {
  perSecond: number
  destinations: number
  documentBytes: number
}

// On 2 processors; Temporal with its database in SQLite, and the database on PostgreSQL from a run of Temporal alone.
export const measuredCosts: Costs = {
  acceptCpuMs: 5,
  deliverCpuMs: 46,
  relayDatabaseCpuMs: 5,
  temporalCpuMs: 60,
  temporalDatabaseCpuMs: 65,
  walBytes: 20_000,
  storedBytes: 6_000,
  connectionMs: 15,
}

/** Returns what Temporal has to do for one document. test/workflows/cost.system.test.ts counts the events. */
export const temporalWork = (destinations: number) => {
  const documentTasks = 2 + destinations
  const deliveryTasks = 2 * destinations
  const workflowTasks = documentTasks + deliveryTasks
  const activities = destinations
  return {
    events: 14 + 6 * (destinations - 1) + 11 * destinations,
    actions: 1 + 2 * destinations,
    // One start, and for each task one poll and one answer.
    requests: 1 + 2 * (workflowTasks + activities),
    // Each start, each start and end of a task, and each change of a child that the parent notes.
    transitions: 1 + destinations + 2 * (workflowTasks + activities) + 2 * destinations,
    // Tasks that no worker owns yet: the first task of each workflow, and the activities unless they start eagerly.
    queuedTasks: 1 + destinations + activities,
  }
}

// Defaults of a Temporal server, per host (1.29).
const temporalLimits = { frontendRequests: 2_400, historyRequests: 3_000, matchingRequests: 1_200, historyWrites: 9_000 }

const historyShards = 512
// A shard writes one change after the other. Measured on local disks: 2 to 4 ms with a synchronous commit.
const shardWriteMs = 4
// A partition of a task queue hands out several hundred tasks per second, one host's worth of requests at most.
const partitionTasks = 400
// A part that is used above this share of its time gets slower.
const utilization = 0.6
const mebibyte = 2 ** 20

export const demandOf = (costs: Costs, { perSecond, destinations, documentBytes }: Demand) => {
  const cores = (cpuMs: number) => (perSecond * cpuMs) / 1_000 / utilization
  const work = temporalWork(destinations)
  const hosts = (amount: number, limit: number) => Math.max(1, Math.ceil((perSecond * amount) / limit / utilization))
  return {
    api_cores: cores(costs.acceptCpuMs),
    worker_cores: cores(costs.deliverCpuMs * destinations),
    relay_database_cores: cores(costs.relayDatabaseCpuMs),
    relay_wal_mb_per_second: (perSecond * costs.walBytes) / 1e6,
    relay_connections_in_use: (perSecond * costs.connectionMs) / 1_000 / utilization,
    relay_gib_per_day: (perSecond * costs.storedBytes * 86_400) / 2 ** 30,
    content_mib_per_second: (perSecond * documentBytes) / mebibyte,
    temporal_cores: cores(costs.temporalCpuMs * destinations),
    temporal_database_cores: cores(costs.temporalDatabaseCpuMs * destinations),
    temporal_writes_per_second: perSecond * work.transitions,
    frontend_hosts_by_default_limit: hosts(work.requests, temporalLimits.frontendRequests),
    history_hosts_by_default_limit: hosts(work.transitions, temporalLimits.historyRequests),
    matching_hosts_by_default_limit: hosts(2 * (work.queuedTasks + work.requests / 2), temporalLimits.matchingRequests),
    busy_share_of_history_shards: (perSecond * work.transitions * shardWriteMs) / 1_000 / historyShards,
    task_queue_partitions: Math.max(4, Math.ceil((perSecond * work.queuedTasks) / partitionTasks)),
    actions_per_second: perSecond * work.actions,
  }
}
