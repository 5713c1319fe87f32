import type { Readable } from 'node:stream'
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  UploadPartCommand,
  type CompletedPart,
  type CreateMultipartUploadCommandInput,
  type S3Client,
} from '@aws-sdk/client-s3'
import { Interruption } from './connector.ts'
import type { SavedUpload } from './multipart-resume.ts'
import { partBytesOf, sendInParts } from './parts.ts'

// the store takes 10,000 at most
const partsAtMost = 9_000
// for giving up the parts of a failed upload, which would be paid for as long as they lie there
const tidyUpTimeoutMs = 1_500

/** An upload that takes parts, with those it has already. */
export interface BegunUpload {
  upload: SavedUpload
  parts: CompletedPart[]
}

/** Asks the store for an upload in parts. */
export const beginUpload = async (
  client: S3Client,
  object: CreateMultipartUploadCommandInput,
  { sizeBytes, sha256 }: { sizeBytes: number; sha256: string },
  abortSignal: AbortSignal,
): Promise<BegunUpload> => {
  const { UploadId } = await client.send(new CreateMultipartUploadCommand({ ...object, ...(await checksumOf(client)) }), { abortSignal })
  const { Bucket: bucket = '', Key: key = '' } = object
  const partBytes = partBytesOf(sizeBytes, partsAtMost)
  return { upload: { bucket, key, uploadId: UploadId ?? '', sha256, partBytes }, parts: [] }
}

// AWS wants to know beforehand which checksum the parts will have; the SDK gives them CRC32
const checksumOf = async (client: S3Client) => {
  const wanted = (await client.config.requestChecksumCalculation()) === 'WHEN_SUPPORTED'
  return wanted ? ({ ChecksumAlgorithm: 'CRC32' } as const) : {}
}

/**
 * Sends the rest of a body in parts. The `Upload` of lib-storage is not used because none of its requests ends with a signal, and after one
 * part has failed it goes on to send all the others.
 * @param sizeBytes what the body brings
 */
export const uploadInParts = async (
  client: S3Client,
  { upload: { bucket, key, uploadId, partBytes }, parts: sent }: BegunUpload,
  body: Readable,
  sizeBytes: number,
  abortSignal: AbortSignal,
) => {
  const checksum = await checksumOf(client)
  const upload = { Bucket: bucket, Key: key, UploadId: uploadId }
  // ends what is still in flight when one part has failed, before the whole is given up
  const stop = new AbortController()
  const options = { abortSignal: AbortSignal.any([abortSignal, stop.signal]) }
  const send = async (bytes: Buffer, PartNumber: number): Promise<CompletedPart> => {
    const part = await client.send(
      new UploadPartCommand({ ...upload, ...checksum, PartNumber, Body: bytes, ContentLength: bytes.length }),
      options,
    )
    return { PartNumber, ETag: part.ETag, ChecksumCRC32: part.ChecksumCRC32 }
  }
  try {
    const rest = await sendInParts(body, { sizeBytes, partBytes }, (bytes, number) => send(bytes, sent.length + number))
    const Parts = [...sent, ...rest]
    return await client.send(new CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts } }), { abortSignal })
  } catch (thrown) {
    stop.abort()
    // the next run goes on with them
    if (abortSignal.reason instanceof Interruption) throw thrown
    await client.send(new AbortMultipartUploadCommand(upload), { abortSignal: AbortSignal.timeout(tidyUpTimeoutMs) }).catch(() => {})
    throw thrown
  }
}
