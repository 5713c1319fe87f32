import type { IncomingMessage } from 'node:http'
import { finished } from 'node:stream/promises'
import type { Config } from '../config.ts'
import { Refusal } from './refusal.ts'

export type BodyLimits = Pick<Config, 'RELAY_DOCUMENT_MAX_BYTES' | 'RELAY_HTTP_IDLE_TIMEOUT_MS' | 'RELAY_HTTP_MIN_BODY_BYTES'>

/** The connection broke off, or carried so little that we cut it: there is nobody left to answer. */
export class ClientGone extends Error {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.name = 'ClientGone'
  }
}

/**
 * The body, piece by piece.
 * @throws Refusal where it is too large, at once where its length is announced; ClientGone where it breaks off or stalls
 */
export async function* readBody(request: IncomingMessage, limits: BodyLimits): AsyncGenerator<Buffer, void, undefined> {
  const tooLarge = () => new Refusal('too_large', `a request may bring ${limits.RELAY_DOCUMENT_MAX_BYTES} bytes at most`)
  if (Number(request.headers['content-length'] ?? 0) > limits.RELAY_DOCUMENT_MAX_BYTES) throw tooLarge()

  // leaving early must not destroy the connection: a refusal is still to be sent on it
  const pieces = request.iterator({ destroyOnReturn: false })
  const nextPiece = createPatience(request, limits)
  let receivedBytes = 0
  try {
    for (;;) {
      const piece = await nextPiece(() => pieces.next() as Promise<IteratorResult<Buffer, undefined>>)
      if (piece === undefined) return
      receivedBytes += piece.length
      if (receivedBytes > limits.RELAY_DOCUMENT_MAX_BYTES) throw tooLarge()
      yield piece
    }
  } finally {
    await pieces.return?.()
  }
}

/** Counts only the time in which we wait for the client: while a store is slow, nobody loses patience. */
const createPatience = (request: IncomingMessage, limits: BodyLimits) => {
  let waitedMs = 0
  let broughtBytes = 0

  return async (next: () => Promise<IteratorResult<Buffer, undefined>>): Promise<Buffer | undefined> => {
    const began = performance.now()
    const cut = setTimeout(() => request.destroy(new ClientGone('the body stalls')), limits.RELAY_HTTP_IDLE_TIMEOUT_MS - waitedMs)
    try {
      const { done, value } = await next()
      if (done) return undefined
      waitedMs += performance.now() - began
      broughtBytes += value.length
      if (broughtBytes >= limits.RELAY_HTTP_MIN_BODY_BYTES) {
        waitedMs = 0
        broughtBytes = 0
      }
      return value
    } catch (thrown) {
      throw thrown instanceof ClientGone ? thrown : new ClientGone('the connection broke off in mid-body', { cause: thrown })
    } finally {
      clearTimeout(cut)
    }
  }
}

/**
 * Reads what is left of a refused body and throws it away: a client that writes first and reads later would be reset in
 * mid-write, and never see why.
 * @returns whether that was the end of it within the time
 */
export const discardRest = async (request: IncomingMessage, timeoutMs: number): Promise<boolean> => {
  if (request.complete) return true
  request.resume()
  try {
    await finished(request, { signal: AbortSignal.timeout(timeoutMs) })
    return true
  } catch {
    return request.complete
  }
}
