import { giveUp, takeUploadUrl, type CloudApi } from './cloud-api.ts'
import { targetAnswer, type CloudAnswer } from './cloud-call.ts'
import { DeliveryError, type AttemptContext, type Parcel } from './connector.ts'
import { deliveryProperty, type Folder } from './drive-files.ts'
import { driveRefusal } from './drive-refusal.ts'
import { sendPieces } from './pieces.ts'
import { shortened, targetSegments } from './target-path.ts'

/** What Drive is told of a document before its bytes. */
export type Described = Pick<Parcel, 'deliveryId' | 'documentId' | 'path' | 'contentType' | 'sizeBytes'>

/** Which file an upload writes: one that is made under an id given beforehand, or one that an earlier attempt has made. */
export interface DriveFile {
  id: string
  exists: boolean
}

export interface UploadSession {
  /** Whoever knows it may write this one file. */
  uploadUrl: string
  nextByte: number
  /** The session was completed by an earlier run, whose answer was lost. */
  completed?: CloudAnswer
}

// a multiple of 256 KiB, as Drive wants it, and large enough for the answers to cost little
const chunkBytes = 8 * 1024 * 1024

/**
 * Goes on with a session that an earlier run of the same delivery left, or begins one where there is none or it is not known any more.
 * Sessions are good for a week.
 */
export const beginOrResume = async (
  drive: CloudApi,
  folder: Folder,
  file: DriveFile,
  parcel: Described,
  storedUrl?: string,
): Promise<UploadSession> => {
  const left = storedUrl === undefined ? undefined : await resumed(drive, storedUrl, parcel.sizeBytes)
  if (left) return left
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

const resumed = async (drive: CloudApi, storedUrl: string, sizeBytes: number): Promise<UploadSession | undefined> => {
  const uploadUrl = takeUploadUrl(drive, storedUrl)
  const answer = await drive.callSession(uploadUrl, {
    method: 'PUT',
    headers: { 'content-length': '0', 'content-range': `bytes */${sizeBytes}` },
  })
  if (answer.status === 200 || answer.status === 201) return { uploadUrl, nextByte: sizeBytes, completed: answer }
  return answer.status === 308 ? { uploadUrl, nextByte: nextByteOf(answer) } : undefined
}

/** Sends what the session still lacks, chunk by chunk. A session that fails or is cancelled is given up. */
export const sendChunks = async (
  drive: CloudApi,
  { uploadUrl, nextByte, completed }: UploadSession,
  parcel: Parcel,
  { signal, onProgress, subject }: Pick<AttemptContext, 'signal' | 'onProgress'> & { subject?: string | undefined },
): Promise<CloudAnswer> => {
  if (completed) return completed
  try {
    return await sendPieces<CloudAnswer>(
      parcel,
      { startByte: nextByte, pieceBytes: chunkBytes, signal, onProgress },
      async ({ start, end, body }) => {
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
      },
    )
  } catch (thrown) {
    await giveUp(drive, uploadUrl)
    throw thrown
  }
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
  const [essence = ''] = contentType.split(';')
  const type = essence.trim().toLowerCase()
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
