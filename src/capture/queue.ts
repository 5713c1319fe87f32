import type { Metric } from 'prom-client'
import { logFailure } from '../base/failure-log.ts'
import type { Log } from '../base/log.ts'
import { counterOf, gaugeOf } from '../base/metrics.ts'
import type { Config } from '../config/config.ts'
import { fitting } from '../db/batches.ts'
import { isOutage } from '../db/errors.ts'
import { sourceOf } from '../security/address-filter.ts'
import { createCaptureMemory, createStreamingBody, type StreamingBody } from './body.ts'
import {
  captureOf,
  clientGoneStatus,
  type Capture,
  type CaptureStore,
  type Completion,
  type RequestFacts,
  type ResponseFacts,
} from './capture.ts'
import { createHourlyBudget, type HourlyBudget } from './hourly-budget.ts'

type QueueConfig = Pick<Config, 'CAPTURE_BODY_MAX_BYTES' | 'CAPTURE_MEMORY_MAX_BYTES'>

interface WaitingCapture {
  request: RequestFacts
  response: ResponseFacts
  headBytes: number
  /** Set once the capture is redacted. */
  capture?: Capture
  release(): void
}

// Long enough to write many captures together, and short enough that an operator finds a request when its answer is there.
const defaultWriteIntervalMs = 200

// Size of one statement: large enough to make the round trip cheap, small enough not to delay other statements.
const batchLimits = { maxItems: 200, maxBytes: 8 * 1024 * 1024 }

const batchMaxCompletions = 1_000

// Times are small, and not worth more memory while the database is unavailable.
const waitingMaxCompletions = 10_000

type Workspace = Pick<RequestFacts, 'userSlug' | 'workspaceSlug'>

const nameOf = ({ userSlug, workspaceSlug }: Workspace) => `${userSlug}/${workspaceSlug}`

const headBytesOf = ({ uri, queryString, headers }: RequestFacts, response: ResponseFacts): number =>
  fixedHeadBytes + JSON.stringify([uri, queryString, headers, response.headers]).length

// Ids, times and the objects that hold them, as measured with 10,000 waiting captures of 3.9 KB each.
const fixedHeadBytes = 3_500

/**
 * Writes captures that no transaction writes: shortly after the response, many at once, and without delaying a response.
 * @param options.writeIntervalMs time that a capture waits so that several are written together
 * @param options.now clock of the hourly budgets
 */
export const createCaptureQueue = (
  store: CaptureStore,
  config: QueueConfig,
  log: Log,
  { writeIntervalMs = defaultWriteIntervalMs, now = Date.now } = {},
) => {
  const maxBytes = config.CAPTURE_MEMORY_MAX_BYTES
  const memory = createCaptureMemory(maxBytes)
  // Anybody can send requests that are refused. A flood of them does not end the capture of requests that failed.
  const budgets = { refused: createHourlyBudget(maxBytes, maxBytes / 2, now), failed: createHourlyBudget(maxBytes, maxBytes, now) }
  const waiting: WaitingCapture[] = []
  const completions: Completion[] = []
  let isFull = false
  let isClosed = false
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> | undefined

  const lost = counterOf(
    'relay_captures_lost_total',
    'Requests that were not captured, by reason: full (too many were waiting), budget (of refused or failed requests), no_workspace, refused (by the database), unwritten (at shutdown)',
    ['reason'],
    ['full', 'budget', 'no_workspace', 'refused', 'unwritten'].map((reason) => ({ reason })),
  )
  const length = gaugeOf('relay_captures_waiting', 'Captured requests waiting to be written', () => waiting.length)
  const oldest = gaugeOf(
    'relay_capture_oldest_seconds',
    'Time since the response of the oldest captured request that waits to be written; 0 if none waits',
    () => (waiting[0] ? Math.max(0, (Date.now() - waiting[0].response.at.getTime()) / 1_000) : 0),
  )

  const lose = (reason: 'full' | 'refused' | 'unwritten', ids: string[]) => {
    lost.inc({ reason }, ids.length)
    log.warn({ reason, count: ids.length, request_id: ids[0] }, 'requests were not captured')
  }

  const write = async (captures: Capture[]): Promise<Set<string>> => {
    const written = new Set(await store.upsert(captures))
    if (written.size < captures.length) lost.inc({ reason: 'no_workspace' }, captures.length - written.size)
    return written
  }

  /** Writes captures one by one, so that a capture that the database refuses does not affect the others. */
  const writeEach = async (captures: Capture[]): Promise<Set<string>> => {
    const written = new Set<string>()
    for (const capture of captures) {
      try {
        for (const id of await write([capture])) written.add(id)
      } catch (thrown) {
        if (isOutage(thrown)) throw thrown
        log.error({ request_id: capture.id, err: thrown }, 'the database refused a capture')
        lose('refused', [capture.id])
      }
    }
    return written
  }

  const writeBatch = async (captures: Capture[]): Promise<Set<string>> => {
    try {
      return await write(captures)
    } catch (thrown) {
      if (isOutage(thrown)) throw thrown
      return writeEach(captures)
    }
  }

  const releaseBodies = (request: RequestFacts, response: ResponseFacts) => {
    request.body.release()
    response.body.release()
  }

  const bytesOf = ({ request, response, headBytes }: WaitingCapture) => headBytes + request.body.heldBytes() + response.body.heldBytes()

  /** Returns the budget of a request that was refused or failed. A client that disconnected was not refused. */
  const budgetOf = ({ status, isFailure }: ResponseFacts): HourlyBudget | undefined => {
    if (status < 400 || status === clientGoneStatus) return undefined
    return isFailure ? budgets.failed : budgets.refused
  }

  const writeCaptures = async (): Promise<void> => {
    const batch = waiting.slice(0, fitting(waiting, bytesOf, batchLimits))
    const captures: Capture[] = []
    for (const item of batch) {
      if (!item.capture && budgetOf(item.response)?.isSpentOnBodies(nameOf(item.request))) item.request.body.discard('refused')
      captures.push((item.capture ??= await captureOf(item.request, item.response)))
    }
    const written = await writeBatch(captures)
    // After a failure, captures stay in the queue and are written again. A second write has no effect.
    for (const item of waiting.splice(0, batch.length)) {
      // Only existing workspaces have a budget, or invented names would fill the memory.
      if (written.has(item.request.id)) {
        const bodies = item.request.body.heldBytes()
        budgetOf(item.response)?.spend(nameOf(item.request), { heads: bytesOf(item) - bodies, bodies })
      }
      item.release()
    }
    isFull = false
  }

  const writeCompletions = async (): Promise<void> => {
    const batch = completions.slice(0, batchMaxCompletions)
    try {
      await store.complete(batch)
    } catch (thrown) {
      if (isOutage(thrown)) throw thrown
      log.error({ request_id: batch[0]!.id, err: thrown }, 'the database refused the durations of captured requests')
    }
    completions.splice(0, batch.length)
  }

  const writeAll = async (): Promise<void> => {
    try {
      while (waiting.length > 0) await writeCaptures()
      while (completions.length > 0) await writeCompletions()
    } catch (thrown) {
      logFailure(log, thrown, 'failed to write captures, trying again later', { count: waiting.length })
    }
  }

  const writeNow = () => {
    writing ??= writeAll().finally(() => {
      writing = undefined
    })
    return writing
  }

  const writeSoon = () => {
    if (isClosed) return
    timer ??= setTimeout(() => {
      timer = undefined
      void writeNow().then(() => waiting.length + completions.length > 0 && writeSoon())
    }, writeIntervalMs)
  }

  return {
    metrics: [lost, length, oldest] as Metric[],

    /** Creates the recorder of a body to capture. @param sourceIp address of the client, which has a share of the memory */
    streamingBody: (sourceIp: string): StreamingBody => createStreamingBody(config.CAPTURE_BODY_MAX_BYTES, memory.of(sourceOf(sourceIp))),

    bodyMaxBytes: config.CAPTURE_BODY_MAX_BYTES,

    /** Returns false if the bodies of refused requests have used up their part of the hourly budget of a workspace. */
    keepsRefusedBodies: (workspace: Workspace): boolean => !budgets.refused.isSpentOnBodies(nameOf(workspace)),

    /** Writes one capture at once. Takes ownership of both bodies. @throws errors of the database */
    write: async (request: RequestFacts, response: ResponseFacts): Promise<void> => {
      try {
        await write([await captureOf(request, response)])
      } finally {
        releaseBodies(request, response)
      }
    },

    /** Adds a capture to the queue without waiting. Takes ownership of both bodies. */
    add: (request: RequestFacts, response: ResponseFacts): void => {
      if (isClosed) {
        releaseBodies(request, response)
        return lose('unwritten', [request.id])
      }
      if (budgetOf(response)?.isSpent(nameOf(request))) {
        releaseBodies(request, response)
        return lost.inc({ reason: 'budget' })
      }
      const headBytes = headBytesOf(request, response)
      const ownMemory = memory.of(sourceOf(request.sourceIp))
      if (!ownMemory.reserve(headBytes, 'head')) {
        releaseBodies(request, response)
        if (isFull) return lost.inc({ reason: 'full' })
        isFull = true
        return lose('full', [request.id])
      }
      const release = () => {
        releaseBodies(request, response)
        ownMemory.release(headBytes)
      }
      waiting.push({ request, response, headBytes, release })
      return writeSoon()
    },

    /** Sets the final times of a capture that a transaction has written, without waiting. */
    complete: (completion: Completion): void => {
      if (isClosed || completions.length >= waitingMaxCompletions) return
      completions.push(completion)
      writeSoon()
    },

    /** Writes the waiting captures, if the database is available, and accepts no more. */
    close: async (): Promise<void> => {
      isClosed = true
      clearTimeout(timer)
      await writing
      await writeNow()
      const left = waiting.splice(0)
      if (left.length > 0)
        lose(
          'unwritten',
          left.map(({ request }) => request.id),
        )
    },
  }
}

export type CaptureQueue = ReturnType<typeof createCaptureQueue>
