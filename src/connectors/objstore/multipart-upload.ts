import type { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  ListPartsCommand,
  UploadPartCommand,
  type CompletedPart,
  type CreateMultipartUploadCommandInput,
  type HeadObjectCommandOutput,
  type Part,
  type S3Client,
} from '@aws-sdk/client-s3'
import { z } from 'zod'
import type { AttemptContext } from '../connector.ts'
import type { Found } from '../shared/earlier-copy.ts'
import { isPermanentStatus } from '../shared/final-statuses.ts'
import { partBytesFor, sendPartsInParallel, type PartMemory } from '../shared/upload-parts.ts'

// The store accepts 10,000.
const maxParts = 9_000
// The time for aborting a failed upload, in milliseconds. Parts of an upload that is not aborted cost storage.
const cleanUpTimeoutMs = 1_500
// Before each request that aborts an upload.
const cleanUpPausesMs = [0, 100, 300, 500]

const savedUpload = z.object({
  bucket: z.string(),
  key: z.string(),
  uploadId: z.string(),
  /** The source system may have appended to the document since. */
  sha256: z.string(),
  partBytes: z.int().min(1),
  /** The attempts in succession that have stored nothing. */
  faults: z.int().default(0),
})

/** Identifies a multipart upload. Saved for the attempt that continues it. */
type SavedUpload = z.output<typeof savedUpload>

/** A multipart upload together with the parts that the store already has. */
export interface StartedUpload {
  upload: SavedUpload
  /** Parts are sent in parallel, so there may be gaps. */
  parts: CompletedPart[]
  /** The position of the first byte that the store lacks. */
  startByte: number
}

/** The state in which an earlier attempt left an upload. */
type FoundUpload =
  | { state: 'absent' }
  | ({ state: 'started' } & StartedUpload)
  /** The worker was lost after the store had completed the upload. */
  | { state: 'completed'; object: HeadObjectCommandOutput }

export interface Wanted {
  object: CreateMultipartUploadCommandInput
  sizeBytes: number
  sha256: string
  /** Nothing is stored under the key: if something is by then, the store must not take this. */
  isNew?: boolean
}

/** The condition of a request that stores something new. */
export const conditionOf = ({ isNew }: { isNew?: boolean | undefined }) => (isNew ? { IfNoneMatch: '*' } : {})

const absent: FoundUpload = { state: 'absent' }

export const startUpload = async (
  client: S3Client,
  { object, sizeBytes, sha256 }: Wanted,
  abortSignal: AbortSignal,
): Promise<StartedUpload> => {
  const { UploadId } = await client.send(new CreateMultipartUploadCommand({ ...object, ...(await checksumOf(client)) }), { abortSignal })
  const { Bucket: bucket = '', Key: key = '' } = object
  const partBytes = partBytesFor(sizeBytes, maxParts)
  return { upload: { bucket, key, uploadId: UploadId ?? '', sha256, partBytes, faults: 0 }, parts: [], startByte: 0 }
}

/** AWS must know beforehand which checksum the parts will have. The SDK computes CRC32. Other stores get the digests of `signDigests`. */
export const checksumOf = async (client: S3Client) => {
  const isSupported = (await client.config.requestChecksumCalculation()) === 'WHEN_SUPPORTED'
  return isSupported ? ({ ChecksumAlgorithm: 'CRC32' } as const) : undefined
}

/**
 * Sends what is missing of a document in parts and completes the upload. A failed upload stays at the store if another attempt can continue it,
 * and is aborted otherwise. `Upload` of lib-storage is not used: its requests ignore abort signals, and after a failed part it sends all
 * remaining ones.
 * @param body is the document from `startByte` on
 * @param options.canGoOn returns false for an error after which no attempt can continue the upload
 * @returns the answer to the completion, and how many bytes were sent
 */
export const uploadParts = async (
  client: S3Client,
  { upload: { bucket, key, uploadId, partBytes, faults }, parts: stored, startByte }: StartedUpload,
  body: Readable,
  { sizeBytes, isNew, memory, canGoOn, saveFaults }: UploadOptions,
  abortSignal: AbortSignal,
) => {
  const checksum = await checksumOf(client)
  const upload = { Bucket: bucket, Key: key, UploadId: uploadId }
  // Ends the parts in flight when one part has failed, before the upload is aborted.
  const stop = new AbortController()
  const options = { abortSignal: AbortSignal.any([abortSignal, stop.signal]) }
  const partsBefore = startByte / partBytes
  const parts = new Map(stored.map((part) => [part.PartNumber ?? 0, part]))
  let bytesSent = 0
  const send = async (bytes: Buffer, PartNumber: number) => {
    const part = await client.send(
      new UploadPartCommand({ ...upload, ...checksum, PartNumber, Body: bytes, ContentLength: bytes.length }),
      options,
    )
    parts.set(PartNumber, { PartNumber, ETag: part.ETag, ChecksumCRC32: part.ChecksumCRC32 })
    bytesSent += bytes.length
  }
  // An upload can be broken for good while the store works.
  const faultsSoFar = () => (bytesSent > 0 ? 0 : faults + 1)
  const goesOn = (thrown: unknown) => canGoOn(thrown, abortSignal) && !endsUpload.test(nameOf(thrown)) && faultsSoFar() < maxFaults
  try {
    await sendPartsInParallel(
      body,
      { sizeBytes: sizeBytes - startByte, partBytes, memory, isStored: (nth) => parts.has(partsBefore + nth), goesOn },
      (bytes, nth) => send(bytes, partsBefore + nth),
    )
    const Parts = [...parts.values()].toSorted((one, other) => one.PartNumber! - other.PartNumber!)
    const answer = await client.send(
      new CompleteMultipartUploadCommand({ ...upload, ...conditionOf({ isNew }), MultipartUpload: { Parts } }),
      { abortSignal },
    )
    return { answer, bytesSent }
  } catch (thrown) {
    stop.abort()
    if (!goesOn(thrown)) await cleanUp(client, upload, AbortSignal.timeout(cleanUpTimeoutMs)).catch(() => {})
    else if (faultsSoFar() !== faults) saveFaults(faultsSoFar())
    throw thrown
  }
}

interface UploadOptions {
  /** The length of the whole document. */
  sizeBytes: number
  isNew?: boolean | undefined
  memory: PartMemory
  canGoOn(thrown: unknown, ofStream: AbortSignal): boolean
  /** Saves for the next attempt how many in succession have stored nothing. */
  saveFaults(faults: number): void
}

const maxFaults = 3
// The store has lost the upload, or a part of it.
const endsUpload = /^(?:NoSuchUpload|InvalidPart|InvalidPartOrder|EntityTooSmall)$/

/**
 * Aborts an upload with its parts. The store may go on receiving parts whose requests have ended, and keep them and the upload
 * (documentation of AbortMultipartUpload), so the upload is aborted until the store no longer knows it.
 */
const cleanUp = async (client: S3Client, location: UploadLocation, abortSignal: AbortSignal) => {
  for (const pauseMs of cleanUpPausesMs) {
    await delay(pauseMs, undefined, { signal: abortSignal })
    const status = await client.send(new AbortMultipartUploadCommand(location), { abortSignal }).then(() => 204, statusOf)
    if (status === 404 || status === 403) return
  }
}

/** Aborts the upload that an earlier attempt has saved, if it is one of this bucket. */
export const giveUpUpload = async (client: S3Client, saved: unknown, bucket: string, abortSignal: AbortSignal): Promise<void> => {
  const { success, data: upload } = savedUpload.safeParse(saved)
  if (!success || upload.bucket !== bucket) return
  await cleanUp(client, { Bucket: bucket, Key: upload.key, UploadId: upload.uploadId }, abortSignal)
}

/**
 * Looks up the upload that an earlier attempt saved. Asks the store for its parts. Without permission to list parts or
 * read objects (403), the upload starts again.
 * @param save is called before the question, because an upload that an attempt does not save is forgotten
 */
export const findUpload = async (
  client: S3Client,
  { saved, save, signal: abortSignal }: Pick<AttemptContext, 'saved' | 'save' | 'signal'>,
  wanted: Wanted,
): Promise<FoundUpload> => {
  const { success, data: upload } = savedUpload.safeParse(saved)
  const { Bucket, Key } = wanted.object
  if (!success || upload.bucket !== Bucket || upload.key !== Key) return absent
  const location = { Bucket, Key, UploadId: upload.uploadId }
  if (upload.sha256 !== wanted.sha256) return abortUpload(client, location, abortSignal)
  save(upload)
  const { partBytes } = upload
  const sizeOf = (number: number) => Math.min(partBytes, wanted.sizeBytes - (number - 1) * partBytes)
  try {
    const parts: CompletedPart[] = []
    for await (const { PartNumber = 0, Size, ETag, ChecksumCRC32 } of listParts(client, location, abortSignal)) {
      if (Size === sizeOf(PartNumber)) parts.push({ PartNumber, ETag, ChecksumCRC32 })
    }
    const numbers = new Set(parts.map(({ PartNumber }) => PartNumber))
    let covered = 0
    while (numbers.has(covered + 1)) covered += 1
    return { state: 'started', upload, parts, startByte: Math.min(covered * partBytes, wanted.sizeBytes) }
  } catch (thrown) {
    const status = statusOf(thrown)
    if (status === 404) return findCompleted(client, wanted, abortSignal)
    if (status === 403) return abortUpload(client, location, abortSignal)
    throw thrown
  }
}

/** The paginator of the SDK is not used: some stores name a next part also after the last page, and it would not end. */
async function* listParts(client: S3Client, location: UploadLocation, abortSignal: AbortSignal): AsyncGenerator<Part> {
  let marker = 0
  for (;;) {
    const page = await client.send(new ListPartsCommand({ ...location, PartNumberMarker: String(marker) }), { abortSignal })
    yield* page.Parts ?? []
    const next = Number(page.NextPartNumberMarker ?? 0)
    if (!page.IsTruncated || next <= marker) return
    marker = next
  }
}

/** Looks at the object under the key of a document. */
export const findObject = async (
  client: S3Client,
  { object, sizeBytes, sha256 }: Wanted,
  abortSignal: AbortSignal,
): Promise<Found<HeadObjectCommandOutput>> => {
  try {
    const { Bucket, Key, Metadata = {} } = object
    const stored = await client.send(new HeadObjectCommand({ Bucket, Key }), { abortSignal })
    const isOurs = stored.Metadata?.sha256 === sha256 && stored.Metadata['delivery-id'] === Metadata['delivery-id']
    return isOurs && stored.ContentLength === sizeBytes ? { state: 'ours', stored } : { state: 'other' }
  } catch (thrown) {
    const status = statusOf(thrown) ?? 0
    if (status === 404) return { state: 'absent' }
    // Without permission to list the bucket, a store answers 403 also for an absent object.
    if (isPermanentStatus(status)) return { state: 'unknown', needs: 'it needs s3:GetObject to look' }
    throw thrown
  }
}

const findCompleted = async (client: S3Client, wanted: Wanted, abortSignal: AbortSignal): Promise<FoundUpload> => {
  const found = await findObject(client, wanted, abortSignal)
  return found.state === 'ours' ? { state: 'completed', object: found.stored } : absent
}

type UploadLocation = Pick<CreateMultipartUploadCommandInput, 'Bucket' | 'Key'> & { UploadId: string }

const abortUpload = async (client: S3Client, location: UploadLocation, abortSignal: AbortSignal) => {
  await client.send(new AbortMultipartUploadCommand(location), { abortSignal }).catch((thrown: unknown) => {
    // Any status means that the store has answered: the upload no longer exists or cannot be aborted.
    if (statusOf(thrown) === undefined) throw thrown
  })
  return absent
}

const nameOf = (thrown: unknown) => String((thrown as { name?: unknown }).name)

export const statusOf = (thrown: unknown) => (thrown as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode
