import type { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  paginateListParts,
  UploadPartCommand,
  type CompletedPart,
  type CreateMultipartUploadCommandInput,
  type HeadObjectCommandOutput,
  type S3Client,
} from '@aws-sdk/client-s3'
import { z } from 'zod'
import { Interruption } from '../connector.ts'
import type { Found } from '../shared/earlier-copy.ts'
import { isPermanentStatus } from '../shared/final-answers.ts'
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
  partBytes: z.int(),
})

/** Identifies a multipart upload. Saved for the run that resumes it. */
type SavedUpload = z.output<typeof savedUpload>

/** A multipart upload together with the parts that the store already has. */
export interface StartedUpload {
  upload: SavedUpload
  parts: CompletedPart[]
}

/** The state in which a lost worker left an upload. */
type FoundUpload =
  | { state: 'absent' }
  /** The parts cover the document up to `startByte`. */
  | ({ state: 'started'; startByte: number } & StartedUpload)
  /** The worker was lost after the store had completed the upload. */
  | { state: 'completed'; object: HeadObjectCommandOutput }

export interface Wanted {
  object: CreateMultipartUploadCommandInput
  sizeBytes: number
  sha256: string
}

const absent: FoundUpload = { state: 'absent' }

export const startUpload = async (
  client: S3Client,
  { object, sizeBytes, sha256 }: Wanted,
  abortSignal: AbortSignal,
): Promise<StartedUpload> => {
  const { UploadId } = await client.send(new CreateMultipartUploadCommand({ ...object, ...(await checksumOf(client)) }), { abortSignal })
  const { Bucket: bucket = '', Key: key = '' } = object
  const partBytes = partBytesFor(sizeBytes, maxParts)
  return { upload: { bucket, key, uploadId: UploadId ?? '', sha256, partBytes }, parts: [] }
}

// AWS must know beforehand which checksum the parts will have. The SDK computes CRC32.
const checksumOf = async (client: S3Client) => {
  const isSupported = (await client.config.requestChecksumCalculation()) === 'WHEN_SUPPORTED'
  return isSupported ? ({ ChecksumAlgorithm: 'CRC32' } as const) : {}
}

/**
 * Sends the rest of a document in parts and completes the upload. Aborts a failed upload unless another run will resume
 * it. `Upload` of lib-storage is not used: its requests ignore abort signals, and after a failed part it sends all
 * remaining ones.
 * @param options.sizeBytes is the length of `body`
 */
export const uploadParts = async (
  client: S3Client,
  { upload: { bucket, key, uploadId, partBytes }, parts: stored }: StartedUpload,
  body: Readable,
  { sizeBytes, memory }: { sizeBytes: number; memory: PartMemory },
  abortSignal: AbortSignal,
) => {
  const checksum = await checksumOf(client)
  const upload = { Bucket: bucket, Key: key, UploadId: uploadId }
  // Ends the parts in flight when one part has failed, before the upload is aborted.
  const stop = new AbortController()
  const options = { abortSignal: AbortSignal.any([abortSignal, stop.signal]) }
  const parts = [...stored]
  const send = async (bytes: Buffer, PartNumber: number) => {
    const part = await client.send(
      new UploadPartCommand({ ...upload, ...checksum, PartNumber, Body: bytes, ContentLength: bytes.length }),
      options,
    )
    parts[PartNumber - 1] = { PartNumber, ETag: part.ETag, ChecksumCRC32: part.ChecksumCRC32 }
  }
  try {
    await sendPartsInParallel(body, { sizeBytes, partBytes, memory }, (bytes, number) => send(bytes, stored.length + number))
    return await client.send(new CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts: parts } }), { abortSignal })
  } catch (thrown) {
    stop.abort()
    if (abortSignal.reason instanceof Interruption) throw thrown
    await cleanUp(client, upload, AbortSignal.timeout(cleanUpTimeoutMs)).catch(() => {})
    throw thrown
  }
}

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

/**
 * Looks up the upload that the previous run saved. Asks the store for its parts. Without permission to list parts or
 * read objects (403), the upload starts again.
 */
export const findUpload = async (client: S3Client, saved: unknown, wanted: Wanted, abortSignal: AbortSignal): Promise<FoundUpload> => {
  const { success, data: upload } = savedUpload.safeParse(saved)
  const { Bucket, Key } = wanted.object
  if (!success || upload.bucket !== Bucket || upload.key !== Key) return absent
  const location = { Bucket, Key, UploadId: upload.uploadId }
  if (upload.sha256 !== wanted.sha256) return abortUpload(client, location, abortSignal)
  try {
    const parts: CompletedPart[] = []
    let startByte = 0
    for await (const { Parts = [] } of paginateListParts({ client }, location, { abortSignal })) {
      for (const { PartNumber, Size, ETag, ChecksumCRC32 } of Parts) {
        // Parts are sent in parallel, so there may be a gap. Everything after the first gap is sent again.
        const isNext = PartNumber === parts.length + 1 && Size === Math.min(upload.partBytes, wanted.sizeBytes - startByte)
        if (!isNext) return { state: 'started', upload, parts, startByte }
        parts.push({ PartNumber, ETag, ChecksumCRC32 })
        startByte += Size
      }
    }
    return { state: 'started', upload, parts, startByte }
  } catch (thrown) {
    const status = statusOf(thrown)
    if (status === 404) return findCompleted(client, wanted, abortSignal)
    if (status === 403) return abortUpload(client, location, abortSignal)
    throw thrown
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

const statusOf = (thrown: unknown) => (thrown as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode
