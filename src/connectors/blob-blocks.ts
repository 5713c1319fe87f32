import { isRestError, type BlockBlobClient, type BlockBlobCommitBlockListOptions } from '@azure/storage-blob'
import { z } from 'zod'
import type { AttemptContext, Parcel } from './connector.ts'
import { partBytesOf, sendInParts } from './parts.ts'
import { sending } from './sending.ts'

const savedBlocks = z.object({
  /** The blob, without what would let anybody write it. */
  path: z.string(),
  /** The document may have been appended to since. */
  sha256: z.string(),
  /** How many blocks lie there, without a gap. */
  staged: z.int().min(0),
})

// the service takes 50,000
const blocksAtMost = 49_000

/**
 * Sends a document in blocks, and makes a blob of them. Goes on after the blocks that the run before this one has staged; where the
 * service has dropped them (after a week, or when somebody wrote the blob), all are sent anew.
 */
export const uploadInBlocks = async (
  client: BlockBlobClient,
  path: string,
  parcel: Parcel,
  properties: BlockBlobCommitBlockListOptions,
  context: AttemptContext,
) => {
  const before = stagedBefore(path, parcel, context.saved)
  try {
    return await uploadAfter(before, client, path, parcel, properties, context)
  } catch (thrown) {
    if (before === 0 || !isRestError(thrown) || thrown.code !== 'InvalidBlockList') throw thrown
    return uploadAfter(0, client, path, parcel, properties, context)
  }
}

const stagedBefore = (path: string, { sha256 }: Parcel, saved: unknown): number => {
  const { data } = savedBlocks.safeParse(saved)
  return data?.path === path && data.sha256 === sha256 ? data.staged : 0
}

const uploadAfter = async (
  before: number,
  client: BlockBlobClient,
  path: string,
  parcel: Parcel,
  properties: BlockBlobCommitBlockListOptions,
  context: AttemptContext,
) => {
  const { sizeBytes, sha256 } = parcel
  const partBytes = partBytesOf(sizeBytes, blocksAtMost)
  const startByte = Math.min(before * partBytes, sizeBytes)
  const staged = new Set<number>()
  let withoutGap = before

  const stored = await sending(parcel, context, startByte, async (body, abortSignal) => {
    await sendInParts(body, { sizeBytes: sizeBytes - startByte, partBytes }, async (bytes, nth) => {
      const number = before + nth
      await stageBlock(client, blockId(parcel, number), bytes, abortSignal)
      staged.add(number)
      while (staged.has(withoutGap + 1)) withoutGap += 1
      context.save({ path, sha256, staged: withoutGap } satisfies z.output<typeof savedBlocks>)
    })
    const blocks = Array.from({ length: Math.ceil(sizeBytes / partBytes) }, (_, index) => blockId(parcel, index + 1))
    return client.commitBlockList(blocks, { ...properties, abortSignal })
  })
  return { stored, bytesSent: sizeBytes - startByte }
}

export const stageBlock = (client: BlockBlobClient, id: string, bytes: Buffer, abortSignal: AbortSignal) =>
  client.stageBlock(id, bytes, bytes.length, { abortSignal })

/** The same for the same bytes, so that two attempts that overlap commit the same blob. */
const blockId = ({ sha256 }: Parcel, number: number) =>
  Buffer.from(`${sha256.slice(0, 32)}-${String(number).padStart(5, '0')}`).toString('base64')
