import {
  AbortMultipartUploadCommand,
  HeadObjectCommand,
  paginateListParts,
  type CompletedPart,
  type CreateMultipartUploadCommandInput,
  type HeadObjectCommandOutput,
  type S3Client,
} from '@aws-sdk/client-s3'
import { z } from 'zod'

const savedUpload = z.object({
  bucket: z.string(),
  key: z.string(),
  uploadId: z.string(),
  /** The document may have been appended to since. */
  sha256: z.string(),
  partBytes: z.int(),
})

/** What names an upload in parts that was begun. */
export type SavedUpload = z.output<typeof savedUpload>

/** An upload as a lost worker left it. */
export type FoundUpload =
  | { state: 'absent' }
  /** Its parts are whole up to `startBytes`. */
  | { state: 'begun'; upload: SavedUpload; parts: CompletedPart[]; startBytes: number }
  /** The worker died between the last answer and its record. */
  | { state: 'completed'; object: HeadObjectCommandOutput }

interface Wanted {
  object: CreateMultipartUploadCommandInput
  sizeBytes: number
  sha256: string
}

const absent: FoundUpload = { state: 'absent' }

/**
 * Looks for what the run before this one has saved. The store is asked, not the memory of a process that is gone. An account without the right to
 * list parts or read objects begins again: that is said by a 403.
 */
export const findUpload = async (client: S3Client, saved: unknown, wanted: Wanted, abortSignal: AbortSignal): Promise<FoundUpload> => {
  const { success, data: upload } = savedUpload.safeParse(saved)
  const { Bucket, Key } = wanted.object
  if (!success || upload.bucket !== Bucket || upload.key !== Key) return absent
  const place = { Bucket, Key, UploadId: upload.uploadId }
  if (upload.sha256 !== wanted.sha256) return giveUp(client, place, abortSignal)
  try {
    const parts: CompletedPart[] = []
    let startBytes = 0
    for await (const { Parts = [] } of paginateListParts({ client }, place, { abortSignal })) {
      for (const { PartNumber, Size, ETag, ChecksumCRC32 } of Parts) {
        // several are sent at a time: what follows a gap is sent again
        const isNext = PartNumber === parts.length + 1 && Size === Math.min(upload.partBytes, wanted.sizeBytes - startBytes)
        if (!isNext) return { state: 'begun', upload, parts, startBytes }
        parts.push({ PartNumber, ETag, ChecksumCRC32 })
        startBytes += Size
      }
    }
    return { state: 'begun', upload, parts, startBytes }
  } catch (thrown) {
    const status = statusOf(thrown)
    if (status === 404) return findCompleted(client, wanted, abortSignal)
    if (status === 403) return giveUp(client, place, abortSignal)
    throw thrown
  }
}

const findCompleted = async (client: S3Client, { object, sizeBytes, sha256 }: Wanted, abortSignal: AbortSignal): Promise<FoundUpload> => {
  try {
    const { Bucket, Key, Metadata = {} } = object
    const found = await client.send(new HeadObjectCommand({ Bucket, Key }), { abortSignal })
    const isOurs = found.Metadata?.sha256 === sha256 && found.Metadata['delivery-id'] === Metadata['delivery-id']
    return isOurs && found.ContentLength === sizeBytes ? { state: 'completed', object: found } : absent
  } catch (thrown) {
    if ([403, 404].includes(statusOf(thrown) ?? 0)) return absent
    throw thrown
  }
}

type UploadPlace = Pick<CreateMultipartUploadCommandInput, 'Bucket' | 'Key'> & { UploadId: string }

const giveUp = async (client: S3Client, place: UploadPlace, abortSignal: AbortSignal) => {
  await client.send(new AbortMultipartUploadCommand(place), { abortSignal }).catch((thrown: unknown) => {
    // gone already
    if (statusOf(thrown) === undefined) throw thrown
  })
  return absent
}

const statusOf = (thrown: unknown) => (thrown as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode
