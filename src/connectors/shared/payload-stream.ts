import { addAbortSignal, pipeline, Readable, Transform } from 'node:stream'
import { messageOf } from '../../base/errors.ts'
import { DeliveryError, type AttemptContext, type Payload } from '../connector.ts'

/** A content that can be read. */
export type OpenPayload = Pick<Payload, 'open' | 'sizeBytes'>

interface StreamOptions {
  signal: AbortSignal
  onProgress?: AttemptContext['onProgress'] | undefined
  startByte?: number
}

/**
 * Opens the document for reading. Every connector reads through this stream: it reports progress and fails if the
 * document is shorter or longer than announced. The libraries behind the connectors handle an abort or a failing source
 * differently (some hang for ever), so this stream ends on an abort, and destroying either side destroys the other.
 */
export const openPayload = (payload: OpenPayload, { signal, onProgress, startByte = 0 }: StreamOptions): Readable => {
  const { sizeBytes } = payload
  const source = payload.open(startByte)
  let position = startByte
  let sourceError: Error | undefined
  source.on('error', (error) => {
    sourceError = error
  })
  const isFromSource = (error: Error & { code?: string }) => error === sourceError || error.code === 'ERR_STREAM_PREMATURE_CLOSE'
  const unreadable = (reason: string, cause?: unknown) =>
    new DeliveryError('content_unreadable', `the stored document could not be read: ${reason}`, { cause })

  const checked = new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      position += chunk.length
      if (position > sizeBytes) return done(unreadable(`it is longer than ${sizeBytes} bytes`))
      onProgress?.(position)
      done(null, chunk)
    },
    flush: (done) => done(position === sizeBytes ? null : unreadable(`it ends at byte ${position} of ${sizeBytes}`)),
    // The reader may destroy the stream with an error of its own, which is no failure of the source.
    destroy: (error, done) => done(error && !signal.aborted && isFromSource(error) ? unreadable(messageOf(error), error) : error),
  })
  // Readers learn of an error by reading. After an abort there is no reader, and an unhandled 'error' event would end the
  // process.
  checked.on('error', () => {})
  pipeline(addAbortSignal(signal, source), checked, () => {})
  return checked
}

/**
 * Opens the document while `send` runs, and closes it afterwards.
 * @param send must pass the signal to its requests. The signal is also aborted when reading fails or `send` has ended.
 * @throws DeliveryError `content_unreadable` instead of the error of `send`, if that error is a consequence of failed
 *   reading
 */
export const withPayloadStream = async <Result>(
  payload: OpenPayload,
  { signal, onProgress, startByte }: StreamOptions,
  send: (body: Readable, abortSignal: AbortSignal) => Promise<Result>,
): Promise<Result> => {
  const stop = new AbortController()
  const abortSignal = AbortSignal.any([signal, stop.signal])
  const body = openPayload(payload, { signal: abortSignal, onProgress, ...(startByte !== undefined && { startByte }) })
  // The SDKs do not notice a body that fails and would wait for its remainder.
  body.once('error', (error) => stop.abort(error))
  try {
    return await send(body, abortSignal)
  } catch (thrown) {
    throw stop.signal.reason instanceof DeliveryError ? stop.signal.reason : thrown
  } finally {
    // Ends requests that are still in flight, such as the other parts of an upload of which one part has failed.
    stop.abort()
    body.destroy()
  }
}

/**
 * Wraps a request body of known length to report whether the HTTP client has consumed all of it. The end of the stream
 * does not tell: a source may need a while to find its end, and a fast target answers the last byte before that.
 */
export const trackConsumption = (source: Readable, sizeBytes: number): { body: Readable; isConsumed(): boolean } => {
  let left = sizeBytes
  const bytes = async function* () {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      yield chunk
      left -= chunk.length
    }
  }
  return { body: Readable.from(bytes(), { objectMode: false }), isConsumed: () => left <= 0 }
}
