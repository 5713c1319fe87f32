import { z } from 'zod'
import { giveUp, takeUploadUrl, type CloudApi } from './cloud-api.ts'

const savedUpload = z.object({
  /** Which folder, and in whose name. */
  place: z.string(),
  /** Known before the first byte is sent, so that a file that was made in the last moment is found by it. */
  fileId: z.string(),
  /** The document may have been appended to since. */
  sha256: z.string(),
  uploadUrl: z.string().optional(),
})

export type SavedUpload = z.output<typeof savedUpload>

/** What the run before this one has saved, if it is of the same place. */
export const uploadLeft = (saved: unknown, place: string): SavedUpload | undefined => {
  const { data } = savedUpload.safeParse(saved)
  return data?.place === place ? data : undefined
}

/** The session that was left for this content of this file; one for another is given up. */
export const sessionLeft = async (
  drive: CloudApi,
  left: SavedUpload | undefined,
  wanted: Pick<SavedUpload, 'fileId' | 'sha256'>,
): Promise<string | undefined> => {
  if (left?.uploadUrl === undefined) return undefined
  const uploadUrl = takeUploadUrl(drive, left.uploadUrl)
  if (left.fileId === wanted.fileId && left.sha256 === wanted.sha256) return uploadUrl
  await giveUp(drive, uploadUrl)
  return undefined
}
