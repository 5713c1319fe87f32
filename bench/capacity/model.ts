// What a rate of documents demands of each part of an installation. docs/scaling.md explains the numbers.

/** Costs of a document of 10 KiB with one destination that succeeds at once. */
export interface Costs {
  /** Processor time of an API process that accepts the document, in milliseconds. */
  acceptCpuMs: number
  /** CPU time of a worker that delivers it. */
  deliverCpuMs: number
  /** CPU time of PostgreSQL, for both. */
  relayDatabaseCpuMs: number
  /** CPU time of the Temporal server, without its database. */
  temporalCpuMs: number
  /** CPU time of the database of Temporal. */
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

// The processor times of the first row under "On a cluster of Temporal with PostgreSQL" in docs/scaling.md. Of the 27 ms of the relay,
// accepting takes 2 (docs/performance.md). Of the 25 ms of PostgreSQL, the relay's database takes 5, as beside the dev server, whose
// database is SQLite.
export const measuredCosts: Costs = {
  acceptCpuMs: 2,
  deliverCpuMs: 25,
  relayDatabaseCpuMs: 5,
  temporalCpuMs: 43,
  temporalDatabaseCpuMs: 20,
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

// Defaults of Temporal 1.31.2, per host (common/dynamicconfig/constants.go).
const temporalLimits = { frontendRequests: 2_400, historyRequests: 3_000, matchingRequests: 1_200, historyWrites: 9_000 }

const historyShards = 512
// A shard writes one change after the other. Measured on local disks: 2 to 4 ms with a synchronous commit.
const shardWriteMs = 4
// A partition of a task queue hands out several hundred tasks per second, one host's worth of requests at most.
const partitionTasks = 400
// A part that is used above this share of its time gets slower.
const utilization = 0.6
const mebibyte = 2 ** 20
const gibibyte = 2 ** 30

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
    relay_gib_per_day: (perSecond * costs.storedBytes * 86_400) / gibibyte,
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

// Of the documents of a day, those of its busiest hour. Batch runs of source systems are less even than people.
const busiestHour = 0.2
// One more than the load needs, so that one can be replaced or lost.
const processesMin = 2
// History and visibility of an event, with indexes: an estimate.
const eventBytes = 1_024
const temporalRetentionDays = 3
const contentDays = 30
const daysOfYear = 365

// Memory (docs/scaling.md, "Sizing").
// 468 MiB were measured with 100 clients (docs/performance.md, content-server).
const apiMemoryBytes = 512 * mebibyte
// 800 MiB were measured after 10,000 documents (docs/performance.md, footprint).
const workerMemoryBytes = 1_024 * mebibyte
// PostgreSQL without the rows that are in use: an estimate. Of a small one, 395 MiB were measured with 70 processes.
const databaseMemoryBytes = gibibyte
const connectionMemoryBytes = 6 * mebibyte
const poolConnections = 10
// 670 MiB were measured for four services with 512 history shards, after 1,200 workflows.
const serviceMemoryBytes = 256 * mebibyte
// An estimate.
const cachedWorkflowBytes = 20 * 1_024
// Default of Temporal 1.31.2 per host of the history service. A workflow stays for an hour.
const cachedWorkflowsMax = 128_000

/** Returns what to install for a number of documents a day. */
export const sizeOf = (costs: Costs, { perDay, destinations, documentBytes }: Omit<Demand, 'perSecond'> & { perDay: number }) => {
  const perSecond = (perDay * busiestHour) / 3_600
  const demand = demandOf(costs, { perSecond, destinations, documentBytes })
  const apiProcesses = Math.max(processesMin, Math.ceil(demand.api_cores))
  const workerProcesses = Math.max(processesMin, Math.ceil(demand.worker_cores))
  const gib = (bytes: number) => bytes / gibibyte

  const connections = (apiProcesses + workerProcesses) * poolConnections
  const historyHosts = demand.history_hosts_by_default_limit
  // One more for the worker service.
  const temporalServices = demand.frontend_hosts_by_default_limit + historyHosts + demand.matching_hosts_by_default_limit + 1
  const workflowsOfHour = perDay * busiestHour * (1 + destinations)
  const cachedWorkflows = Math.min(workflowsOfHour, historyHosts * cachedWorkflowsMax)
  const temporalEventBytes = temporalWork(destinations).events * eventBytes
  return {
    documents_per_second_in_the_busiest_hour: perSecond,
    api_processes: apiProcesses,
    worker_processes: workerProcesses,
    cores_of_postgresql: Math.ceil(demand.relay_database_cores),
    cores_of_temporal: Math.ceil(demand.temporal_cores),
    cores_of_the_database_of_temporal: Math.ceil(demand.temporal_database_cores),
    gib_of_memory_of_api_processes: gib(apiProcesses * apiMemoryBytes),
    gib_of_memory_of_worker_processes: gib(workerProcesses * workerMemoryBytes),
    // The rows of a day: within it, a delivery is retried.
    gib_of_memory_of_postgresql: Math.ceil(gib(databaseMemoryBytes + connections * connectionMemoryBytes + perDay * costs.storedBytes)),
    gib_of_memory_of_temporal: Math.ceil(gib(temporalServices * serviceMemoryBytes + cachedWorkflows * cachedWorkflowBytes)),
    // The events of the busiest hour.
    gib_of_memory_of_the_database_of_temporal: Math.ceil(gib(databaseMemoryBytes + perDay * busiestHour * temporalEventBytes)),
    gib_of_postgresql_per_year: gib(perDay * costs.storedBytes * daysOfYear),
    gib_of_contents_in_30_days: gib(perDay * documentBytes * contentDays),
    gib_of_archived_log_per_day: gib(perDay * costs.walBytes),
    gib_of_temporal: gib(perDay * temporalEventBytes * temporalRetentionDays),
  }
}
