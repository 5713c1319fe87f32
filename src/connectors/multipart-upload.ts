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
import { partBytesOf, sendInParts } from './parts.ts'

// the store takes 10,000 at most
const partsAtMost = 9_000
// for giving up the parts of a failed upload, which would be paid for as long as they lie there
const tidyUpTimeoutMs = 1_500

/**
 * Sends a body in parts. The `Upload` of lib-storage is not used because none of its requests ends with a signal, and after one
 * part has failed it goes on to send all the others.
 */
export const uploadInParts = async (
  client: S3Client,
  object: CreateMultipartUploadCommandInput,
  body: Readable,
  sizeBytes: number,
  abortSignal: AbortSignal,
) => {
  // AWS wants to know beforehand which checksum the parts will have; the SDK gives them CRC32
  const wanted = (await client.config.requestChecksumCalculation()) === 'WHEN_SUPPORTED'
  const checksum = wanted ? ({ ChecksumAlgorithm: 'CRC32' } as const) : {}
  const { UploadId } = await client.send(new CreateMultipartUploadCommand({ ...object, ...checksum }), { abortSignal })
  const upload = { Bucket: object.Bucket, Key: object.Key, UploadId }
  // ends what is still in flight when one part has failed
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
    const Parts = await sendInParts(body, { sizeBytes, partBytes: partBytesOf(sizeBytes, partsAtMost) }, send)
    return await client.send(new CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts } }), { abortSignal })
  } catch (thrown) {
    stop.abort()
    await client.send(new AbortMultipartUploadCommand(upload), { abortSignal: AbortSignal.timeout(tidyUpTimeoutMs) }).catch(() => {})
    throw thrown
  }
}
