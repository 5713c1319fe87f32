import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import type { S3Client } from '@aws-sdk/client-s3'
import { createStallLimit } from '../base/stall-limit.ts'

// A store may accept connections and then answer nothing, or one byte a minute. The SDK limits the time without any byte, also while a reader
// pauses, and repeats a request that was too slow. So the limits are here, and what was too slow is not repeated.

/**
 * A store that takes or sends less than `stepBytes` within this time is silent. A create is refused within 35 s: up to 6 s pass until the kernels
 * have taken the last bytes that they hold for a reader that does not read.
 */
export const storeSilenceMs = 22_000
const stepBytes = 64 * 1024
// S3 sends the status before it puts the parts of a large object together, and then blanks.
const completionMaxMs = 300_000

// The parts of the types of the SDK that are used here. They are declared in a package that comes with it.
interface Request {
  method: string
  query?: Record<string, unknown>
  body?: unknown
}
interface Answer {
  response: { statusCode: number; body?: unknown }
}
type Handle = (request: Request, options?: { abortSignal?: AbortSignal }) => Promise<Answer>

const silent = (ms: number) => new Error(`The store was silent for ${ms / 1_000} s.`)

function* stepsOf(body: Buffer, taken: () => void): Generator<Buffer, void, undefined> {
  for (let start = 0; start < body.length; start += stepBytes) {
    taken()
    yield body.subarray(start, start + stepBytes)
  }
}

/** Returns the body as a stream, which tells when the connection has taken a step of it. */
const inSteps = (body: unknown, taken: () => void): unknown =>
  body instanceof Uint8Array && body.length > stepBytes
    ? Readable.from(stepsOf(Buffer.from(body.buffer, body.byteOffset, body.byteLength), taken), {
        objectMode: false,
        highWaterMark: stepBytes,
      })
    : body

const isCompletion = ({ method, query }: Request) => method === 'POST' && query?.['uploadId'] !== undefined

/** Reads an answer that is no content. @throws if it does not end in time: the SDK would repeat the request for some statuses */
const readWhole = async (body: Readable, maxMs: number): Promise<Readable> => {
  const timer = setTimeout(() => body.destroy(silent(maxMs)), maxMs)
  try {
    return Readable.from([await buffer(body)], { objectMode: false })
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Makes a client give up requests to a silent store: it takes the body too slowly, or sends no status, or the rest of an answer too late.
 * The body of a GET is left to `readWithinSilence`.
 */
export const limitSilence = (client: S3Client, silenceMs: number): void => {
  const requestHandler: { handle: Handle } = client.config.requestHandler
  const handle = requestHandler.handle.bind(requestHandler)

  const handleInTime: Handle = async (request, options) => {
    const over = new AbortController()
    const timer = setTimeout(() => over.abort(), silenceMs)
    const abortSignal = options?.abortSignal ? AbortSignal.any([options.abortSignal, over.signal]) : over.signal
    try {
      const body = inSteps(request.body, () => timer.refresh())
      const { response } = await handle({ ...request, body }, { ...options, abortSignal })
      clearTimeout(timer)
      const isLeftToReader = request.method === 'GET' && response.statusCode < 300
      if (!isLeftToReader && response.body instanceof Readable) {
        response.body = await readWhole(response.body, isCompletion(request) ? completionMaxMs : silenceMs)
      }
      return { response }
    } catch (thrown) {
      clearTimeout(timer)
      throw over.signal.aborted ? silent(silenceMs) : thrown
    }
  }
  Object.assign(requestHandler, { handle: handleInTime })
}

/** Reads the body of an answer. Destroying the generator frees the connection. @throws if the store is silent */
export async function* readWithinSilence(body: Readable, silenceMs: number): AsyncGenerator<Buffer, void, undefined> {
  const chunks = body[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>
  const withinLimit = createStallLimit({ waitMaxMs: silenceMs, minBytes: stepBytes }, () => body.destroy(silent(silenceMs)))
  try {
    for (;;) {
      const chunk = await withinLimit(() => chunks.next())
      if (chunk === undefined) return
      yield chunk
    }
  } finally {
    await chunks.return?.()
  }
}
