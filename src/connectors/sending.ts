import type { Readable } from 'node:stream'
import { DeliveryError, type AttemptContext, type Parcel } from './connector.ts'
import { metered } from './metered.ts'

/** Reads the document from there on, for as long as it is being sent. What `send` has begun with the signal ends with it. */
export const sending = async <Sent>(
  parcel: Parcel,
  { signal, onProgress }: Pick<AttemptContext, 'signal' | 'onProgress'>,
  startByte: number,
  send: (body: Readable, abortSignal: AbortSignal) => Promise<Sent>,
): Promise<Sent> => {
  const stop = new AbortController()
  const abortSignal = AbortSignal.any([signal, stop.signal])
  const body = metered(parcel.open(startByte), {
    sizeBytes: parcel.sizeBytes - startByte,
    signal: abortSignal,
    onBytes: (bytes) => onProgress(startByte + bytes),
  })
  // the SDKs do not notice when a body dies, and would wait for the rest of it
  body.once('error', (error) => stop.abort(error))
  try {
    return await send(body, abortSignal)
  } catch (thrown) {
    throw stop.signal.reason instanceof DeliveryError ? stop.signal.reason : thrown
  } finally {
    // ends the parts that are still in flight when one has failed
    stop.abort()
    body.destroy()
  }
}
