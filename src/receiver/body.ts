import { finished } from 'node:stream/promises'
import type { Config } from '../config.ts'
import { announcesBody, type Incoming } from './incoming.ts'
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
 * The body, piece by piece: they throw a Refusal where it is too large, ClientGone where it breaks off or stalls.
 * @throws Refusal at once where none is announced, or one that is too large
 */
export const readBody = (request: Incoming, limits: BodyLimits): AsyncGenerator<Buffer, void, undefined> => {
  // an older client may mean "until I hang up"
  if (!announcesBody(request)) throw new Refusal('invalid_parameter', 'Content-Length is missing')
  if (Number(request.headers['content-length'] ?? 0) > limits.RELAY_DOCUMENT_MAX_BYTES) throw tooLarge(limits)
  return piecesOf(request, limits)
}

const tooLarge = ({ RELAY_DOCUMENT_MAX_BYTES: maxBytes }: BodyLimits) =>
  new Refusal('too_large', `a request may bring ${maxBytes} bytes at most`)

async function* piecesOf(request: Incoming, limits: BodyLimits): AsyncGenerator<Buffer, void, undefined> {
  // leaving early must not destroy the connection: a refusal is still to be sent on it
  const pieces = request.body.iterator({ destroyOnReturn: false })
  const nextPiece = createPatience(request, limits)
  let receivedBytes = 0
  try {
    for (;;) {
      const piece = await nextPiece(() => pieces.next() as Promise<IteratorResult<Buffer, undefined>>)
      if (piece === undefined) {
        request.passing.end()
        return
      }
      request.passing.add(piece)
      receivedBytes += piece.length
      if (receivedBytes > limits.RELAY_DOCUMENT_MAX_BYTES) throw tooLarge(limits)
      yield piece
    }
  } finally {
    await pieces.return?.()
  }
}

/** Counts only the time in which we wait for the client: while a store is slow, nobody loses patience. */
const createPatience = ({ body }: Incoming, limits: BodyLimits) => {
  let waitedMs = 0
  let broughtBytes = 0

  return async (next: () => Promise<IteratorResult<Buffer, undefined>>): Promise<Buffer | undefined> => {
    const began = performance.now()
    const cut = setTimeout(() => body.destroy(new ClientGone('the body stalls')), limits.RELAY_HTTP_IDLE_TIMEOUT_MS - waitedMs)
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
 * Reads what is left of a body that nobody wants, for the capture only: a client that writes first and reads later would be reset in
 * mid-write, and never see why.
 * @returns whether that was the end of it within the time
 */
export const readRest = async (request: Incoming, timeoutMs: number): Promise<boolean> => {
  const { body, passing } = request
  if (announcesBody(request) && !body.readableEnded) {
    body.on('data', passing.add).resume()
    try {
      await finished(body, { signal: AbortSignal.timeout(timeoutMs), writable: false })
    } catch {
      if (!body.readableEnded) return false
    }
  }
  passing.end()
  return true
}
