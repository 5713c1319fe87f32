import { finished } from 'node:stream/promises'
import type { Quota } from '../archive/quota.ts'
import { createStallLimit } from '../base/stall-limit.ts'
import type { Config } from '../config/config.ts'
import { encodingOf } from '../content-server/encoding.ts'
import { announcesBody, type ReceiverRequest } from './exchange.ts'
import type { ReceiverLimits } from './limits.ts'
import { checkQuota } from './quota.ts'
import { Refusal } from './refusal.ts'

export type BodyLimits = Pick<Config, 'RELAY_DOCUMENT_MAX_BYTES'> &
  Pick<ReceiverLimits, 'idleTimeoutMs' | 'minBodyBytes'> & {
    /** Set if the body will be stored. */
    quota?: Quota
  }

/** The client closed the connection, or was too slow and was disconnected. No answer is expected. */
export class ClientGone extends Error {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.name = 'ClientGone'
  }
}

/**
 * Reads the body in chunks. Reading throws a `Refusal` if the body is too large or exceeds the quota, and `ClientGone` if it breaks off
 * or stalls.
 * @throws `Refusal` at once if no body is announced, or one that is encoded, too large or exceeds the quota
 */
export const readBody = (request: ReceiverRequest, limits: BodyLimits): AsyncGenerator<Buffer, void, undefined> => {
  // An older client may mean "until the connection ends".
  if (!announcesBody(request)) throw new Refusal('invalid_parameter', 'Content-Length is missing')
  checkEncoding(request)
  const announcedBytes = Number(request.headers['content-length'] ?? 0)
  if (announcedBytes > limits.RELAY_DOCUMENT_MAX_BYTES) throw tooLarge(limits)
  if (limits.quota) checkQuota(announcedBytes, limits.quota)
  return readChunks(request, limits)
}

const checkEncoding = ({ headers }: ReceiverRequest): void => {
  refuseEncoding('the body', (name) => [headers[name] ?? []].flat())
  const transfer = headers['transfer-encoding']?.trim() ?? ''
  if (!/^(chunked)?$/i.test(transfer)) throw encoded('the body', `Transfer-Encoding: ${transfer}`)
}

const encoded = (what: string, encoding: string) =>
  new Refusal('invalid_parameter', `${what} is encoded (${encoding}); send it without an encoding`)

/**
 * What is stored is what arrives: bytes in compressed or transfer-encoded form would be delivered as if they were the document.
 * @throws `Refusal` if the headers of a body or of a part say that it is encoded
 */
export const refuseEncoding = (what: string, valuesOf: (name: string) => readonly string[]): void => {
  const encoding = encodingOf(valuesOf)
  if (encoding !== undefined) throw encoded(what, encoding)
}

const tooLarge = ({ RELAY_DOCUMENT_MAX_BYTES: maxBytes }: BodyLimits) =>
  new Refusal('too_large', `a request may contain at most ${maxBytes} bytes`)

const throwClientGone = (thrown: unknown): never => {
  throw thrown instanceof ClientGone ? thrown : new ClientGone('the connection closed before the end of the body', { cause: thrown })
}

async function* readChunks(request: ReceiverRequest, limits: BodyLimits): AsyncGenerator<Buffer, void, undefined> {
  // Leaving early must not destroy the connection: a refusal is still to be sent.
  const chunks = request.body.iterator({ destroyOnReturn: false })
  const waits = { waitMaxMs: limits.idleTimeoutMs, minBytes: limits.minBodyBytes }
  const withinLimit = createStallLimit(waits, () => request.body.destroy(new ClientGone('the body stalls')))
  let receivedBytes = 0
  try {
    for (;;) {
      const chunk = await withinLimit(() => chunks.next() as Promise<IteratorResult<Buffer, undefined>>).catch(throwClientGone)
      if (chunk === undefined) {
        checkLength(request, receivedBytes)
        request.recordedBody.end()
        return
      }
      request.recordedBody.add(chunk)
      receivedBytes += chunk.length
      if (receivedBytes > limits.RELAY_DOCUMENT_MAX_BYTES) throw tooLarge(limits)
      if (limits.quota) checkQuota(receivedBytes, limits.quota)
      yield chunk
    }
  } finally {
    await chunks.return?.()
  }
}

/**
 * The memory of packets is freed when the parser of HTTP has read them. One that did not copy a body from them would lose bytes, which must not be
 * acknowledged. A replay may repeat a body that was redacted.
 */
const checkLength = ({ headers, replayOf }: ReceiverRequest, receivedBytes: number): void => {
  const announced = headers['content-length']
  if (replayOf === null && announced !== undefined && Number(announced) !== receivedBytes) {
    throw new Error(`${receivedBytes} of the ${announced} bytes of the body have arrived`)
  }
}

/**
 * Reads the rest of a body that no command has read: a client that writes its whole request before it reads would otherwise see a reset
 * connection instead of the refusal.
 * @returns true if the end of the body was reached in time
 */
export const drainBody = async (request: ReceiverRequest, timeoutMs: number): Promise<boolean> => {
  const { body, recordedBody } = request
  if (announcesBody(request) && !body.readableEnded) {
    body.on('data', recordedBody.add).resume()
    try {
      await finished(body, { signal: AbortSignal.timeout(timeoutMs), writable: false })
    } catch {
      if (!body.readableEnded) return false
    }
  }
  recordedBody.end()
  return true
}
