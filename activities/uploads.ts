import { Interruption } from '../src/connectors/connector.ts'
import { messageOf } from '../src/errors.ts'
import { SealError, uploadOf, type KeyRing } from '../src/security/seal.ts'
import type { AttemptInput } from '../workflows/messages.ts'

/** Tells a connector whether anybody will go on: unless the delivery itself was cancelled, another run will. */
export const stopped = (cancelled: AbortSignal): AbortSignal => {
  const stop = new AbortController()
  const pass = () => {
    const { reason } = cancelled as { reason: unknown }
    stop.abort(messageOf(reason) === 'CANCELLED' ? reason : new Interruption())
  }
  if (cancelled.aborted) pass()
  else cancelled.addEventListener('abort', pass, { once: true })
  return stop.signal
}

// heartbeats are for ids and addresses, a list of thousands of parts belongs to the target
const savedMaxBytes = 16 * 1024

export const sealedUploads = (keyRing: KeyRing, { documentId, destinationId }: Pick<AttemptInput, 'documentId' | 'destinationId'>) => ({
  seal: (state: unknown): string => {
    const sealed = keyRing.seal(state, uploadOf(documentId, destinationId))
    if (sealed.length > savedMaxBytes) throw new RangeError(`a connector may save ${savedMaxBytes} bytes, not ${sealed.length}`)
    return sealed.toString('base64')
  },
  /** Nothing where its key is gone: the upload then begins again. */
  open: (sealed: string): unknown => {
    try {
      return keyRing.open(Buffer.from(sealed, 'base64'), uploadOf(documentId, destinationId))
    } catch (thrown) {
      if (thrown instanceof SealError) return undefined
      throw thrown
    }
  },
})
