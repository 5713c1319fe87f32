import { createCipheriv, createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { DeliveryError, type AttemptContext, type Parcel } from '../../src/connectors/connector.ts'
import { newId } from '../../src/ids.ts'
import type { OutboundGuard } from '../../src/security/outbound.ts'

export const MiB = 1024 * 1024
// the same in every process, as one may go on with what another began, and like random bytes in all else
const block = createCipheriv('aes-256-ctr', Buffer.alloc(32, 1), Buffer.alloc(16)).update(Buffer.alloc(64 * 1024))

/** A parcel of the bytes given, under a path of its own. */
export const parcelOf = (bytes: Buffer, overrides: Partial<Parcel> = {}): Parcel => ({
  ...parcelLike(bytes.length),
  sha256: createHash('sha256').update(bytes).digest('hex'),
  open: (start = 0) => Readable.from([bytes.subarray(start)], { objectMode: false }),
  ...overrides,
})

/** A parcel of any size whose source takes no memory. */
export const largeParcel = (sizeBytes: number, overrides: Partial<Parcel> = {}): Parcel => {
  const hash = createHash('sha256')
  for (const chunk of blocks(sizeBytes)) hash.update(chunk)
  return {
    ...parcelLike(sizeBytes),
    sha256: hash.digest('hex'),
    open: (start) => Readable.from(blocks(sizeBytes, start), { objectMode: false }),
    ...overrides,
  }
}

/** The same parcel, but its bytes come as slowly as this. */
export const slowly = (parcel: Parcel, pauseMs: number): Parcel => ({
  ...parcel,
  open: (start = 0) =>
    Readable.from(
      (async function* () {
        for (const chunk of blocks(parcel.sizeBytes, start)) {
          yield chunk
          await pause(pauseMs)
        }
      })(),
      { objectMode: false },
    ),
})

/** The same parcel, but its source dies after so many bytes. */
export const dying = (parcel: Parcel, afterBytes: number): Parcel => ({
  ...parcel,
  open: () =>
    Readable.from(
      (async function* () {
        yield* blocks(afterBytes)
        await pause(50)
        throw new Error('the disk is gone')
      })(),
      { objectMode: false },
    ),
})

function* blocks(sizeBytes: number, start = 0) {
  for (let at = start; at < sizeBytes;) {
    const chunk = block.subarray(at % block.length).subarray(0, sizeBytes - at)
    yield chunk
    at += chunk.length
  }
}

const parcelLike = (sizeBytes: number): Omit<Parcel, 'sha256' | 'open'> => ({
  deliveryId: `${newId()}_${newId()}`,
  documentId: newId(),
  repoId: 'R1',
  docId: newId(),
  compId: 'data',
  arObject: null,
  path: `R1/${newId()}/data`,
  contentType: 'application/pdf',
  sizeBytes,
  receivedAt: new Date('2026-11-21T09:00:00.000Z'),
  downloadUrl: () => undefined,
})

export const contextOf = (outbound: OutboundGuard, overrides: Partial<AttemptContext> = {}): AttemptContext => ({
  signal: new AbortController().signal,
  onProgress: () => {},
  outbound,
  connectTimeoutMs: 10_000,
  idleTimeoutMs: 10_000,
  answerMaxBytes: 16 * 1024,
  saved: undefined,
  save: () => {},
  ...overrides,
})

/** What an attempt that must fail fails with. */
export const failure = async (attempt: Promise<unknown>): Promise<DeliveryError> => {
  const thrown: unknown = await attempt.then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(thrown).toBeInstanceOf(DeliveryError)
  return thrown as DeliveryError
}

/** Acts as if it were so much later. */
export const later = async <Result>(minutes: number, act: () => Promise<Result>): Promise<Result> => {
  const { now } = Date
  Date.now = () => now() + minutes * 60_000
  try {
    return await act()
  } finally {
    Date.now = now
  }
}
