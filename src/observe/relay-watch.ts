import { messageOf } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Participant } from '../db/duties.ts'
import type { RelayState, RelayStatus, WorkerDescription } from '../domain/relay-state.ts'

interface WatchDeps {
  /** Lists the workers that ask Temporal for tasks. Undefined if Temporal does not tell. Rejects if Temporal is unavailable; has its own timeout. */
  listPollers(): Promise<readonly string[] | undefined>
  /** Lists the workers that have noted in the database that they run. */
  listWorkers(): Promise<Participant<WorkerDescription>[]>
  log: Pick<Log, 'info' | 'warn'>
}

const intervalMs = 5_000

// The API and the workers of an installation may be started at the same time.
const startMs = 30_000

const texts: Record<RelayStatus, string> = {
  working: 'deliveries go on: a worker runs, and Temporal answers',
  no_worker: 'no worker is running: documents are received and wait',
  temporal_unavailable: 'Temporal does not answer: documents are received and wait',
}

/**
 * Creates the watch of an API process over what delivers: workers and Temporal. It looks every few seconds, so that no request waits
 * for an answer of Temporal. What is bad counts when two looks in a row have found it: a single one may have met a busy machine.
 */
export const createRelayWatch = ({ listPollers, listWorkers, log }: WatchDeps, graceMs = startMs) => {
  let state: RelayState = { status: 'working', since: new Date(), workers: [] }
  const workersDueAt = performance.now() + graceMs
  let badSince: Date | undefined
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  const statusOf = (workers: RelayState['workers'], pollers: PromiseSettledResult<readonly string[] | undefined>): RelayStatus => {
    if (pollers.status === 'rejected') return 'temporal_unavailable'
    if (workers.length === 0 && performance.now() < workersDueAt) return 'working'
    return workers.some(({ isRunning }) => isRunning) && pollers.value?.length !== 0 ? 'working' : 'no_worker'
  }

  /** Looks once. Without an answer of the database, nothing is known: the state stays as it was. */
  const look = async (): Promise<void> => {
    const [pollers, listed] = await Promise.allSettled([listPollers(), listWorkers()])
    if (listed.status === 'rejected') return
    const workers = listed.value.map(({ about, lastSeenAt, isPresent }) => ({ ...about, lastSeenAt, isRunning: isPresent }))
    const status = statusOf(workers, pollers)
    const [before, firstSeen] = [state.status, badSince]
    badSince = status === 'working' ? undefined : (badSince ?? new Date())
    if (status === before || (status !== 'working' && !firstSeen)) {
      state = { ...state, workers }
      return
    }
    state = { status, since: firstSeen && before === 'working' ? firstSeen : new Date(), workers }
    const reason = pollers.status === 'rejected' ? messageOf(pollers.reason) : undefined
    log[status === 'working' ? 'info' : 'warn']({ event: `relay.${status}`, reason }, texts[status])
  }

  const run = async (): Promise<void> => {
    await look()
    if (!isClosed) timer = setTimeout(() => void (running = run()), intervalMs)
  }
  let running: Promise<void> | undefined

  return {
    look,
    /** Looks from now on. */
    start: (): void => {
      running ??= run()
    },
    /** Returns what the last look has found. */
    read: (): RelayState => state,
    close: async (): Promise<void> => {
      isClosed = true
      clearTimeout(timer)
      await running
    },
  }
}

export type RelayWatch = ReturnType<typeof createRelayWatch>
