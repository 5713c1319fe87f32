import { createCipheriv, createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { newId } from '../../src/base/ids.ts'
import { DeliveryError, type AttemptContext, type Payload } from '../../src/connectors/connector.ts'
import type { Outbound } from '../../src/security/outbound.ts'

export const MiB = 1024 * 1024

// Identical in every process, since one process may resume what another one has started. Incompressible like random
// bytes.
const block = createCipheriv('aes-256-ctr', Buffer.alloc(32, 1), Buffer.alloc(16)).update(Buffer.alloc(64 * 1024))

export const installationId = '01K9R4B6ZD8M2V7X0QF3N5T1CE'

/** Returns a payload with this content and a path of its own. */
export const payloadOf = (bytes: Buffer, overrides: Partial<Payload> = {}): Payload => ({
  ...payloadLike(bytes.length),
  sha256: createHash('sha256').update(bytes).digest('hex'),
  open: (start = 0) => Readable.from([bytes.subarray(start)], { objectMode: false }),
  ...overrides,
})

/** Returns a payload of any size whose source needs no memory. */
export const largePayload = (sizeBytes: number, overrides: Partial<Payload> = {}): Payload => {
  const hash = createHash('sha256')
  for (const chunk of chunksOf(sizeBytes)) hash.update(chunk)
  return {
    ...payloadLike(sizeBytes),
    sha256: hash.digest('hex'),
    open: (start) => Readable.from(chunksOf(sizeBytes, start), { objectMode: false }),
    ...overrides,
  }
}

/** Returns the same payload with a pause after each chunk of 64 KiB. */
export const slowly = (payload: Payload, pauseMs: number): Payload => ({
  ...payload,
  open: (start = 0) =>
    Readable.from(
      (async function* () {
        for (const chunk of chunksOf(payload.sizeBytes, start)) {
          yield chunk
          await pause(pauseMs)
        }
      })(),
      { objectMode: false },
    ),
})

/** Returns the same payload with a source that calls `act` and waits for it before the byte at `position`. */
export const pausedAt = (payload: Payload, position: number, act: () => Promise<void>): Payload => ({
  ...payload,
  open: (start = 0) =>
    Readable.from(
      (async function* () {
        yield* chunksOf(position, start)
        await act()
        yield* chunksOf(payload.sizeBytes, Math.max(start, position))
      })(),
      { objectMode: false },
    ),
})

/** Returns the same payload with a source that fails after so many bytes. */
export const failing = (payload: Payload, afterBytes: number): Payload => ({
  ...payload,
  open: () =>
    Readable.from(
      (async function* () {
        yield* chunksOf(afterBytes)
        await pause(50)
        throw new Error('the disk failed')
      })(),
      { objectMode: false },
    ),
})

/** Returns the same payload, and the positions at which it has been opened. */
export const watched = (payload: Payload): { payload: Payload; starts: number[] } => {
  const starts: number[] = []
  const open = (start = 0) => {
    starts.push(start)
    return payload.open(start)
  }
  return { payload: { ...payload, open }, starts }
}

function* chunksOf(sizeBytes: number, start = 0) {
  for (let at = start; at < sizeBytes;) {
    const chunk = block.subarray(at % block.length).subarray(0, sizeBytes - at)
    yield chunk
    at += chunk.length
  }
}

const payloadLike = (sizeBytes: number): Omit<Payload, 'sha256' | 'open'> => ({
  deliveryId: `${newId()}_${newId()}`,
  // Of a content of its own, as every other payload has.
  messageId: `${newId()}_${newId()}.${newId()}`,
  attempt: 1,
  again: 0,
  workspace: 'acme/invoices',
  connectionId: newId(),
  documentId: newId(),
  repoId: 'R1',
  docId: newId(),
  compId: 'data',
  erpObjectType: null,
  erpObjectId: null,
  arObject: null,
  fileName: null,
  description: null,
  fields: {},
  properties: {},
  path: `R1/${newId()}/data`,
  location: null,
  contentType: 'application/pdf',
  sizeBytes,
  receivedAt: new Date('2026-11-21T09:00:00.000Z'),
  downloadUrl: () => undefined,
})

export const contextOf = (outbound: Outbound, overrides: Partial<AttemptContext> = {}): AttemptContext => ({
  signal: new AbortController().signal,
  onProgress: () => {},
  outbound,
  connectTimeoutMs: 60_000,
  idleTimeoutMs: 60_000,
  answerMaxBytes: 16 * 1024,
  workspace: 'acme/invoices',
  installationId,
  saved: undefined,
  save: () => {},
  pin: () => {},
  ...overrides,
})

/** Returns the error of an attempt that must fail. */
export const failure = async (attempt: Promise<unknown>): Promise<DeliveryError> => {
  const thrown: unknown = await attempt.then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(thrown).toBeInstanceOf(DeliveryError)
  return thrown as DeliveryError
}

/** Runs `act` with the clock set forward. */
export const later = async <Result>(minutes: number, act: () => Promise<Result>): Promise<Result> => {
  const { now } = Date
  Date.now = () => now() + minutes * 60_000
  try {
    return await act()
  } finally {
    Date.now = now
  }
}
