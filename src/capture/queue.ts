import { Counter, Gauge, type Metric } from 'prom-client'
import type { Config } from '../config.ts'
import type { Capture } from '../db/captures.ts'
import { isOutage } from '../db/database.ts'
import { messageOf } from '../errors.ts'
import type { Log } from '../log.ts'
import { createMemory, createPassingBody, type PassingBody } from './body.ts'
import { captureOf, type RequestFacts, type ResponseFacts } from './capture.ts'

type QueueConfig = Pick<
  Config,
  | 'CAPTURE_BODY_MAX_BYTES'
  | 'CAPTURE_COMMIT_BODY_MAX_BYTES'
  | 'CAPTURE_MEMORY_MAX_BYTES'
  | 'CAPTURE_WAITING_MAX_REQUESTS'
  | 'CAPTURE_WRITE_INTERVAL_MS'
>

interface Waiting {
  capture: Capture
  headBytes: number
  release(): void
}

// one statement: enough that a round trip does not count, little enough that it holds nobody up
const batchMaxRequests = 200
const batchMaxBytes = 8 * 1024 * 1024

/**
 * Captures what no transaction of its own writes: soon, many at once, and never at the cost of an answer.
 * @param upsert writes captures; returns how many belong to a workspace
 */
export const createCaptureQueue = (upsert: (captures: Capture[]) => Promise<number>, config: QueueConfig, log: Log) => {
  const memory = createMemory(config.CAPTURE_MEMORY_MAX_BYTES)
  const waiting: Waiting[] = []
  let isFull = false
  let isClosed = false
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> | undefined

  const lost = new Counter({
    name: 'relay_captures_lost_total',
    help: 'Requests that were not captured: full (too many waited), no_workspace, refused (by the database), unwritten (at the end)',
    labelNames: ['reason'],
    registers: [],
  })
  const length = new Gauge({
    name: 'relay_captures_waiting',
    help: 'Captured requests that have not been written yet',
    registers: [],
    collect() {
      this.set(waiting.length)
    },
  })

  const lose = (reason: 'full' | 'refused' | 'unwritten', captures: Capture[]) => {
    lost.inc({ reason }, captures.length)
    log.warn({ reason, count: captures.length, requestId: captures[0]?.id }, 'requests were not captured')
  }

  const write = async (captures: Capture[]): Promise<void> => {
    const written = await upsert(captures)
    if (written < captures.length) lost.inc({ reason: 'no_workspace' }, captures.length - written)
  }

  /** One that the database refuses must not take the others along. */
  const writeEach = async (captures: Capture[]): Promise<void> => {
    for (const capture of captures) {
      try {
        await write([capture])
      } catch (thrown) {
        if (isOutage(thrown)) throw thrown
        log.error({ requestId: capture.id, err: thrown }, 'the database refuses a capture')
        lose('refused', [capture])
      }
    }
  }

  const writeBatch = async (captures: Capture[]): Promise<void> => {
    try {
      await write(captures)
    } catch (thrown) {
      if (isOutage(thrown)) throw thrown
      await writeEach(captures)
    }
  }

  const nextBatch = (): Waiting[] => {
    let bytes = 0
    const end = waiting.slice(0, batchMaxRequests).findIndex(({ capture, headBytes }, index) => {
      bytes += headBytes + (capture.requestBody?.data.length ?? 0) + (capture.responseBody?.data.length ?? 0)
      return bytes > batchMaxBytes && index > 0
    })
    return waiting.slice(0, end < 0 ? batchMaxRequests : end)
  }

  const writeAll = async (): Promise<void> => {
    try {
      while (waiting.length > 0) {
        const batch = nextBatch()
        await writeBatch(batch.map(({ capture }) => capture))
        // written twice does no harm: what fails half way stays where it is
        for (const { release } of waiting.splice(0, batch.length)) release()
        isFull = false
      }
    } catch (thrown) {
      log.warn({ count: waiting.length, reason: messageOf(thrown) }, 'captures are not written yet, the next round will try again')
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
      void writeNow().then(() => waiting.length > 0 && writeSoon())
    }, config.CAPTURE_WRITE_INTERVAL_MS)
  }

  return {
    metrics: [lost, length] as Metric[],

    /** For a body that is to be captured. */
    passingBody: (): PassingBody => createPassingBody(config.CAPTURE_BODY_MAX_BYTES, memory),

    bodyMaxBytes: config.CAPTURE_BODY_MAX_BYTES,
    commitBodyMaxBytes: config.CAPTURE_COMMIT_BODY_MAX_BYTES,

    /** Takes over both bodies, and the capture is there when this ends. @throws what the database throws */
    write: async (request: RequestFacts, response: ResponseFacts): Promise<void> => {
      try {
        await write([captureOf(request, response)])
      } finally {
        request.body.release()
        response.body.release()
      }
    },

    /** Takes over both bodies, and never waits. */
    add: (request: RequestFacts, response: ResponseFacts): void => {
      const capture = captureOf(request, response)
      const headBytes = JSON.stringify({ ...capture, requestBody: null, responseBody: null }).length
      const hasRoom = !isClosed && waiting.length < config.CAPTURE_WAITING_MAX_REQUESTS && memory.take(headBytes)
      const release = () => {
        request.body.release()
        response.body.release()
        if (hasRoom) memory.give(headBytes)
      }
      if (!hasRoom) {
        release()
        if (isClosed) return lose('unwritten', [capture])
        if (isFull) return lost.inc({ reason: 'full' })
        isFull = true
        return lose('full', [capture])
      }
      waiting.push({ capture, headBytes, release })
      return writeSoon()
    },

    /** Writes what waits, as far as the database is there. */
    close: async (): Promise<void> => {
      isClosed = true
      clearTimeout(timer)
      await writing
      await writeNow()
      const left = waiting.splice(0)
      if (left.length > 0)
        lose(
          'unwritten',
          left.map(({ capture }) => capture),
        )
    },
  }
}

export type CaptureQueue = ReturnType<typeof createCaptureQueue>
