import { mediaTypeOf } from '../domain/content-type.ts'
import { orGiveUp, takeUploadUrl, type CloudApi, type Uploaded } from './cloud-api.ts'
import { targetAnswer, type CloudAnswer } from './cloud-call.ts'
import { DeliveryError, type AttemptContext, type Parcel } from './connector.ts'
import { deliveryProperty, type DriveFile, type Folder } from './drive-files.ts'
import { driveRefusal } from './drive-refusal.ts'
import { sendPieces } from './pieces.ts'
import { shortened, targetSegments } from './target-path.ts'

/** What Drive is told of a document before its bytes. */
export type Described = Pick<Parcel, 'deliveryId' | 'documentId' | 'path' | 'contentType' | 'sizeBytes'>

interface UploadSession {
  /** Whoever knows it may write this one file. */
  uploadUrl: string
  nextByte: number
  /** The session was completed by an earlier run, whose answer was lost. */
  completed?: CloudAnswer
}

// a multiple of 256 KiB, as Drive wants it, and large enough for the answers to cost little
const chunkBytes = 8 * 1024 * 1024

/**
 * Sends a document chunk by chunk, from where the session stands.
 * @param storedUrl of a session that an earlier run has left; they are good for a week, and one that is not known any more is begun anew
 * @param keep takes the session's address as soon as there is one
 */
export const uploadInChunks = async (
  drive: CloudApi,
  { folder, file, storedUrl, keep }: { folder: Folder; file: DriveFile; storedUrl: string | undefined; keep(uploadUrl: string): void },
  parcel: Parcel,
  { signal, onProgress, subject }: Pick<AttemptContext, 'signal' | 'onProgress'> & { subject?: string | undefined },
): Promise<Uploaded> => {
  const found = storedUrl === undefined ? undefined : await findSession(drive, storedUrl, parcel)
  if (found?.completed) return { answer: found.completed, bytesSent: 0 }
  const { uploadUrl, nextByte } = found ?? (await beginSession(drive, folder, file, parcel))
  keep(uploadUrl)
  const uploaded = await orGiveUp(drive, uploadUrl, signal, () =>
    sendPieces<CloudAnswer>(parcel, { startByte: nextByte, pieceBytes: chunkBytes, signal, onProgress }, async ({ start, end, body }) => {
      // there is no way to write the range of no bytes
      const range = end > start && { 'content-range': `bytes ${start}-${end - 1}/${parcel.sizeBytes}` }
      const answer = await drive.callSession(uploadUrl, {
        method: 'PUT',
        headers: { 'content-length': String(end - start), ...range },
        body,
      })
      if (answer.status === 308) return { nextByte: nextByteOf(answer) }
      if (answer.status >= 300) throw sessionRefusal(answer, subject)
      return { done: answer }
    }),
  )
  return { answer: uploaded, bytesSent: parcel.sizeBytes - nextByte }
}

/** Asks for a session that writes the file. */
export const beginSession = async (drive: CloudApi, folder: Folder, file: DriveFile, parcel: Described): Promise<UploadSession> => {
  const query = new URLSearchParams({ uploadType: 'resumable', supportsAllDrives: 'true', fields: 'id,sha256Checksum' })
  const answer = await drive.call(`/upload/drive/v3/files${file.exists ? `/${file.id}` : ''}?${query.toString()}`, {
    method: file.exists ? 'PATCH' : 'POST',
    headers: {
      'content-type': 'application/json; charset=UTF-8',
      'x-upload-content-type': mimeTypeOf(parcel),
      'x-upload-content-length': String(parcel.sizeBytes),
    },
    body: JSON.stringify({ ...metadataOf(parcel), ...(!file.exists && { id: file.id, parents: [folder.id] }) }),
  })
  return { uploadUrl: takeUploadUrl(drive, answer.headers.location), nextByte: 0 }
}

const findSession = async (drive: CloudApi, storedUrl: string, { sizeBytes }: Parcel): Promise<UploadSession | undefined> => {
  const uploadUrl = takeUploadUrl(drive, storedUrl)
  const answer = await drive.callSession(uploadUrl, {
    method: 'PUT',
    headers: { 'content-length': '0', 'content-range': `bytes */${sizeBytes}` },
  })
  if (answer.status === 200 || answer.status === 201) return { uploadUrl, nextByte: sizeBytes, completed: answer }
  return answer.status === 308 ? { uploadUrl, nextByte: nextByteOf(answer) } : undefined
}

/** No Range means that nothing was kept. */
const nextByteOf = ({ headers }: CloudAnswer) => {
  const last = /^bytes=0-(\d+)$/.exec(String(headers.range ?? ''))?.[1]
  return last === undefined ? 0 : Number(last) + 1
}

const sessionRefusal = (answer: CloudAnswer, subject: string | undefined) =>
  answer.status === 404 || answer.status === 410
    ? new DeliveryError('upload_expired', 'Drive ended the upload session before the document was whole: it begins anew', {
        answer: targetAnswer(answer),
      })
    : driveRefusal(answer, subject)

const octets = 'application/octet-stream'

/** Without parameters, which Drive has no place for. Google's own types would have the document converted. */
const mimeTypeOf = ({ contentType }: Described) => {
  const type = mediaTypeOf(contentType)
  return /^[\w.+-]+\/[\w.+-]+$/.test(type) && !type.startsWith('application/vnd.google-apps') ? type : octets
}

const metadataOf = (parcel: Described) => ({
  name: fileNameOf(parcel.path),
  description: parcel.path,
  mimeType: mimeTypeOf(parcel),
  appProperties: { [deliveryProperty]: parcel.deliveryId, relay_document: parcel.documentId },
})

/** The whole path in one name: its last part alone is often the same for every document, and folders would not be unique either. */
export const fileNameOf = (path: string) => shortened(targetSegments(path).join(' - '))
