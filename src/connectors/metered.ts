import { addAbortSignal, pipeline, Transform, type Readable } from 'node:stream'
import { messageOf } from '../errors.ts'
import { DeliveryError } from './connector.ts'

/**
 * The one way a connector reads a document: counts what passes, and fails a source that is shorter or longer than announced.
 * The libraries behind the connectors differ in what they do with an abort or a dying source (some hang for ever), so this
 * ends both at once: an abort ends the stream, and whichever side is destroyed takes the other along.
 */
export const metered = (
  source: Readable,
  { sizeBytes, signal, onBytes }: { sizeBytes: number; signal: AbortSignal; onBytes?: (bytes: number) => void },
): Readable => {
  let count = 0
  let sourceError: Error | undefined
  source.on('error', (error) => {
    sourceError = error
  })
  const isOfSource = (error: Error & { code?: string }) => error === sourceError || error.code === 'ERR_STREAM_PREMATURE_CLOSE'
  const unreadable = (reason: string, cause?: unknown) =>
    new DeliveryError('content_unreadable', `the stored document could not be read: ${reason}`, { cause })

  const meter = new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      count += chunk.length
      if (count > sizeBytes) return done(unreadable(`it is longer than ${sizeBytes} bytes`))
      onBytes?.(count)
      done(null, chunk)
    },
    flush: (done) => done(count === sizeBytes ? null : unreadable(`it ended at ${count} of ${sizeBytes} bytes`)),
    // whoever reads may end the stream with an error too, which says nothing about the source
    destroy: (error, done) => done(error && !signal.aborted && isOfSource(error) ? unreadable(messageOf(error), error) : error),
  })
  // who reads learns of an error by reading; nobody does after an abort, and an unheard 'error' ends the process
  meter.on('error', () => {})
  pipeline(addAbortSignal(signal, source), meter, () => {})
  return meter
}
