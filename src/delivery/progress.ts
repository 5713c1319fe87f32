import { messageOf } from '../base/errors.ts'
import { Interruption } from '../connectors/connector.ts'
import { openOrUndefined, uploadOf, type KeyRing } from '../security/seal.ts'
import type { DeliveryRef } from './transition.ts'

/** Details of a heartbeat, for the next run of the same activity. */
export interface Progress {
  attemptId: string
  /** Names the content that is sent. A saved upload of another content is of no use. */
  content: string
  bytesSent: number
  /** State of the connector's upload, sealed: heartbeats are part of the workflow's history. */
  savedUpload?: string | undefined
}

// Each heartbeat is a call to the server. A shorter attempt sends none.
const firstHeartbeatMs = 1_000

interface HeartbeatOptions {
  heartbeat(details: unknown): void
  intervalMs: number
  /** Called with each heartbeat but the first, until the sending has ended. Must not reject. */
  renew(): Promise<void>
}

/** Sends heartbeats with the progress until `stop` is called, and renews the lease of the slot until `stopRenewing` is. */
export const sendHeartbeats = (progress: Progress, { heartbeat, intervalMs, renew }: HeartbeatOptions) => {
  const send = () => heartbeat({ ...progress })
  let interval: NodeJS.Timeout | undefined
  let isSending = true
  let renewal = Promise.resolve()
  const first = setTimeout(
    () => {
      send()
      interval = setInterval(() => {
        send()
        if (isSending) renewal = renew()
      }, intervalMs)
    },
    Math.min(firstHeartbeatMs, intervalMs),
  )
  let hasSaved = false
  return {
    saveUpload: (sealed: string) => {
      progress.savedUpload = sealed
      hasSaved = true
      send()
    },
    /** Notes that the attempt has failed. An upload with which it got nowhere is not continued: the target may have forgotten it. */
    fail: () => {
      if (hasSaved || progress.savedUpload === undefined) return
      progress.savedUpload = undefined
      send()
    },
    /** Waits for a renewal under way: the record of the attempt passes over a slot that it has locked, and the slot would stay taken. */
    stopRenewing: async () => {
      isSending = false
      await renewal
    },
    stop: () => {
      clearTimeout(first)
      clearInterval(interval)
    },
  }
}

export type Heartbeats = ReturnType<typeof sendHeartbeats>

// Enough for ids and addresses. A list of thousands of parts belongs to the target.
const savedUploadMaxBytes = 16 * 1024

/** Seals the state of a connector's upload for a heartbeat. */
export const createUploadSeal = (keyRing: KeyRing, { documentId, destinationId }: DeliveryRef) => {
  const owner = uploadOf(documentId, destinationId)
  return {
    seal: (state: unknown): string => {
      const sealed = keyRing.seal(state, owner)
      if (sealed.length > savedUploadMaxBytes) {
        throw new RangeError(`a connector may save ${savedUploadMaxBytes} bytes, not ${sealed.length}`)
      }
      return sealed.toString('base64')
    },
    /** @returns undefined if the key is gone; the upload then starts again */
    open: (sealed: string): unknown => openOrUndefined(keyRing, Buffer.from(sealed, 'base64'), owner),
  }
}

/**
 * Returns a signal for connectors that follows the cancellation of the activity. Its reason is an `Interruption` unless the delivery itself
 * was cancelled: another run will then continue the upload.
 */
export const connectorSignal = (cancellation: AbortSignal): AbortSignal => {
  const controller = new AbortController()
  const abort = () => {
    const { reason } = cancellation as { reason: unknown }
    controller.abort(messageOf(reason) === 'CANCELLED' ? reason : new Interruption())
  }
  if (cancellation.aborted) abort()
  else cancellation.addEventListener('abort', abort, { once: true })
  return controller.signal
}
