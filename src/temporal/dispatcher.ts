import type { DeliveryTermsConfig } from '../archive/delivery-input.ts'
import { logFailure } from '../base/failure-log.ts'
import { newId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { Database } from '../db/database.ts'
import { holdShares, leaveShares } from '../db/duties.ts'
import { createOnItsOwn, type PassOver } from '../db/on-its-own.ts'
import { dispatchShares } from '../db/starts.ts'
import { createLook, createToBegin, startsOf, type BegunDocument, type Queue, type WaitingDocument } from '../delivery/to-begin.ts'
import type { DeliveryRef } from '../delivery/transition.ts'
import type { WorkerDescription } from '../domain/relay-state.ts'
import type { Temporal } from './client.ts'
import { isUnavailable } from './errors.ts'
import { createStartWindow } from './start-window.ts'
import { createTurns } from './turns.ts'
import { describeWorker } from './worker-description.ts'

const dispatcherLimits = {
  /** Time after which other workers take the shares over of one that is lost. */
  leaseMs: 5_000,
  /** Shares are renewed this often, and as soon are they divided with a new worker. */
  renewMs: 1_000,
  /** A document that no worker begins for this long does not count as open any more: it says nothing about the others. */
  stuckMs: 10_000,
  /** Pause of a document that cannot be begun, because Temporal refuses it or the settings of its workspace cannot be read. */
  refusedMs: 60_000,
  /** While the window is full, it is noticed this soon that another worker has begun something, if there is one. */
  busyMs: 25,
  /** A worker that is alone notes what it begins, and looks this often for what nothing begins. */
  aloneMs: 1_000,
}

// Queues and side work are looked for this often: a document that its API process does not start waits half of it, on average.
const idleMs = 100
const pauseMs = 1_000

/** The duty of the dispatchers, as the table `duties` names it and its shares. */
export const dispatchDuty = 'dispatch'

const isSameQueue = (one: Queue, other: Queue): boolean => one.workspaceId === other.workspaceId && one.beginAs === other.beginAs

interface Open extends BegunDocument {
  share: number
  workspaceId: string
  startedAt: number
  /** Ids of the destinations whose deliveries this worker has not begun. */
  waiting: Set<string>
}

/** A kind of side work: its queues are looked at this often, and the workflows of those started in which something is due. */
export interface SideWork {
  everyMs: number
  /** SQL: true if something may be due. It is asked with each look for documents, and spares the look at the queues. */
  isDue?: string
  startDue(): Promise<void>
}

interface DispatcherDeps {
  db: Database
  temporal: Pick<Temporal, 'send'>
  sideWork?: SideWork[]
  config: DeliveryTermsConfig
  log: Log
  passOver?: PassOver
  worker?: WorkerDescription
}

/**
 * Begins the deliveries that wait in the database. The workspaces of the installation are divided into shares, and each worker has its fair
 * part of them: all, if it is alone. Workspaces take turns, and as many documents are open as the window allows, which is one for all shares
 * of a worker. A document is open from its start until its first attempt begins, as the database says.
 * Nothing but the database is needed to go on after a crash: what was started and not begun is started again, which has no effect.
 */
export const createDispatcher = (
  {
    db,
    temporal,
    sideWork = [],
    config,
    log,
    passOver = createOnItsOwn({ log }).passOver,
    worker = describeWorker({ TEMPORAL_WORKER_BUILD_ID: undefined }),
  }: DispatcherDeps,
  limits: Partial<typeof dispatcherLimits> = {},
) => {
  const { leaseMs, renewMs, stuckMs, refusedMs, busyMs, aloneMs } = { ...dispatcherLimits, ...limits }
  const now = () => performance.now()
  const toBegin = createToBegin(db)
  const lookFor = createLook(
    db,
    sideWork.map(({ isDue = 'true' }) => isDue),
  )
  const window = createStartWindow(now)
  const turns = createTurns()
  const part = { name: dispatchDuty, shares: dispatchShares, holder: newId(), about: worker }
  let held: number[] = []
  const open = new Map<string, Open>()
  const closed = new AbortController()
  const underWay = new Set<Promise<void>>()
  const nextLookAt = new Map<SideWork, number>()
  let pausedUntil = 0
  // Workspaces of documents that could not be begun. If that is due to the workspace, its other documents fail as well, and each costs a write.
  const restUntil = new Map<string, number>()
  let lookedAt = Number.NEGATIVE_INFINITY
  let begunSeenAt = Number.NEGATIVE_INFINITY
  // As they were at the last look, without those that were found empty since.
  let queues: Queue[] = []
  let isWoken = false
  let endRest = () => {}

  const isAlone = () => held.length === dispatchShares

  /** Never throws. The loop does not wait: the answer of Temporal says nothing about when an attempt begins. */
  const begin = async (document: WaitingDocument, isBusy: boolean): Promise<void> => {
    const { documentId, share, workspaceId } = document
    const waiting = new Set(document.deliveries.map(({ destination }) => destination.id))
    const requestIds = document.deliveries.map(({ requestId }) => requestId)
    open.set(documentId, { documentId, requestIds, share, workspaceId, startedAt: now(), waiting })
    const urgency = document.beginAs === 'document' ? (isBusy ? 'busy' : 'quiet') : 'bulk'
    try {
      // Beside others, a worker would keep all documents of its workspaces to itself.
      for (const message of startsOf(document, { urgency, eager: isAlone() }, config)) await temporal.send(message)
    } catch (thrown) {
      if (isUnavailable(thrown)) {
        pausedUntil = now() + pauseMs
        logFailure(log, thrown, 'failed to begin a document, it is tried again later', { document_id: documentId })
      } else {
        passOver('dispatcher', { workspace_id: workspaceId, document_id: documentId }, thrown)
        restUntil.set(workspaceId, now() + pauseMs)
        await toBegin.postpone(documentId, refusedMs).catch(() => {})
      }
      open.delete(documentId)
    }
  }

  const closeOne = (documentId: string, { startedAt }: Open): void => {
    window.noteBegun(now() - startedAt)
    open.delete(documentId)
  }

  const size = () => window.size(held.length / dispatchShares)

  const isFull = () => open.size >= size()

  /** Notices what other workers have begun, and what nothing will begin. */
  const closeBegun = async (): Promise<void> => {
    if (open.size === 0 || now() - begunSeenAt < (isAlone() ? aloneMs : isFull() ? busyMs : idleMs)) return
    begunSeenAt = now()
    const waiting = await toBegin.stillWaiting([...open.values()])
    const stuck: Open[] = []
    for (const [documentId, document] of open) {
      if (!waiting.has(documentId)) closeOne(documentId, document)
      else if (now() - document.startedAt > stuckMs) stuck.push(document)
    }
    for (const { documentId } of stuck) open.delete(documentId)
    if (stuck.length > 0) await toBegin.leave(stuck)
  }

  /** Looks for queues, and for side work, which is done by the worker that has the first share. What begins between two looks costs none. */
  const look = async (): Promise<void> => {
    if (now() - lookedAt < idleMs) return
    lookedAt = now()
    const found = await lookFor(held)
    queues = found.queues
    if (held.includes(0)) for (const [index, work] of sideWork.entries()) if (found.holds[index]) startSideWork(work)
  }

  /** Starts as many documents as the window allows. */
  const startNext = async (): Promise<void> => {
    const free = size() - open.size
    if (free <= 0 || now() < pausedUntil) return
    for (const [workspaceId, until] of restUntil) if (now() >= until) restUntil.delete(workspaceId)
    const busy = new Set([...open.values()].map(({ workspaceId }) => workspaceId))
    const waiting = queues.filter(({ workspaceId }) => !restUntil.has(workspaceId))
    const taken = turns.take(waiting, busy, free)
    if (taken.length === 0) return
    const found = await toBegin.findOldest(taken, [...open.keys()])
    for (const document of found) {
      const beginning = begin(document, busy.has(document.workspaceId)).finally(() => underWay.delete(beginning))
      underWay.add(beginning)
      busy.add(document.workspaceId)
    }
    const emptied = taken.filter((turn) => found.filter((document) => isSameQueue(document, turn)).length < turn.documents)
    queues = queues.filter((queue) => !emptied.some((turn) => isSameQueue(turn, queue)))
  }

  /** Never throws, and does not wait for the end. A look that takes long is not made twice at a time. */
  const startSideWork = (work: SideWork): void => {
    if (now() < (nextLookAt.get(work) ?? 0)) return
    nextLookAt.set(work, Number.POSITIVE_INFINITY)
    const starting = work
      .startDue()
      .catch((thrown: unknown) => logFailure(log, thrown, 'failed to start side work, the next round tries again'))
      .finally(() => {
        nextLookAt.set(work, now() + work.everyMs)
        underWay.delete(starting)
      })
    underWay.add(starting)
  }

  const wake = (): void => {
    isWoken = true
    endRest()
  }

  /** Waits, unless it was woken since the last wait. Each document wakes it, and an aborted signal would cost an error with its stack each time. */
  const rest = async (ms: number): Promise<void> => {
    if (!isWoken) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms)
        endRest = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    isWoken = false
  }

  /** Takes or renews the shares of this worker. What is open of others is theirs now. */
  const takeShares = async (): Promise<void> => {
    held = await holdShares(db, part, leaseMs)
    for (const [documentId, { share }] of open) if (!held.includes(share)) open.delete(documentId)
  }

  const run = async (): Promise<void> => {
    let renewAt = Number.NEGATIVE_INFINITY
    while (!closed.signal.aborted) {
      try {
        if (now() >= renewAt) {
          renewAt = now() + renewMs
          await takeShares()
        }
        if (held.length === 0) {
          await rest(renewMs)
          continue
        }
        await closeBegun()
        await look()
        await startNext()
        await rest(isFull() && !isAlone() ? busyMs : Math.max(0, lookedAt + idleMs - now()))
      } catch (thrown) {
        logFailure(log, thrown, 'failed to begin deliveries, the next round tries again')
        await rest(pauseMs)
      }
    }
  }
  let running: Promise<void> | undefined

  return {
    start: (): void => {
      running ??= run()
    },
    /** Notes that this worker has begun a delivery, and begins the next one at once if there is a place. */
    noteBegun: ({ documentId, destinationId }: DeliveryRef): void => {
      const document = open.get(documentId)
      if (!document?.waiting.delete(destinationId) || document.waiting.size > 0) return
      closeOne(documentId, document)
      wake()
    },
    /** Gives the shares up. What has not been begun is left to other workers. */
    close: async (): Promise<void> => {
      closed.abort()
      wake()
      await running
      await Promise.all(underWay)
      await leaveShares(db, part).catch(() => {})
    },
  }
}

export type Dispatcher = ReturnType<typeof createDispatcher>
