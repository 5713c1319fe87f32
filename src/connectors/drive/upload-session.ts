import { z } from 'zod'
import { mediaTypeOf } from '../../domain/content-type.ts'
import { DeliveryError, type AttemptContext, type Payload } from '../connector.ts'
import {
  abortSession,
  isGone,
  parseObject,
  requireId,
  requireUploadUrl,
  toTargetAnswer,
  uploadExpired,
  withUploadSession,
  type CloudApi,
  type CloudResponse,
  type CompletedUpload,
} from '../shared/cloud-api.ts'
import { during } from '../shared/operation.ts'
import { probeContent, type Content } from '../shared/probe-content.ts'
import { shortened, targetSegments, type FileNames } from '../shared/target-path.ts'
import { sendPartsInSequence } from '../shared/upload-parts.ts'
import { driveError } from './errors.ts'
import { deliveryProperty, fileById, type DriveFile, type Folder } from './files.ts'

/** The properties of a document that Drive gets before the content. */
export interface FileProperties extends Pick<Payload, 'deliveryId' | 'documentId' | 'path' | 'contentType' | 'sizeBytes' | 'properties'> {
  /** Name from `fileNameOf`. */
  fileName: string
}

interface UploadSession {
  /** Secret: its holder may write this one file. */
  uploadUrl: string
  nextByte: number
  /** The response to an earlier run that completed the session but was lost before it could record that. */
  completed?: CloudResponse
}

const savedUpload = z.object({
  /** Identifies the folder and the account, see `folderKey`. */
  folderKey: z.string(),
  /** Known before the first byte is sent, so that a file created just before its worker was lost is found again. */
  fileId: z.string(),
  /** The source system may have appended to the document since. */
  sha256: z.string(),
  uploadUrl: z.string().optional(),
  /** See `withUploadSession`. */
  faults: z.number().default(0),
})

/** The state that a run saves for the run that resumes its upload. */
export type SavedUpload = z.output<typeof savedUpload>

/** Parses the state that the previous run saved. @returns `undefined` if there is none for this folder and account */
export const parseSavedUpload = (saved: unknown, folderKey: string): SavedUpload | undefined => {
  const { data } = savedUpload.safeParse(saved)
  return data?.folderKey === folderKey ? data : undefined
}

/** A saved session that can be continued. */
export type ResumableSession = Required<Pick<SavedUpload, 'uploadUrl' | 'faults'>>

/** Returns the saved session if it is for this file and content. Aborts it otherwise. */
export const sessionToResume = async (
  drive: CloudApi,
  saved: SavedUpload | undefined,
  wanted: Pick<SavedUpload, 'fileId' | 'sha256'>,
): Promise<ResumableSession | undefined> => {
  if (saved?.uploadUrl === undefined) return undefined
  const uploadUrl = requireUploadUrl(drive, saved.uploadUrl)
  if (saved.fileId === wanted.fileId && saved.sha256 === wanted.sha256) return { uploadUrl, faults: saved.faults }
  await abortSession(drive, uploadUrl)
  return undefined
}

// A multiple of 256 KiB, as Drive requires, and large enough that the round trips cost little.
const partBytes = 8 * 1024 * 1024

/**
 * Sends a document in parts, from the byte at which Drive expects it.
 * @param resumed is the session of an earlier attempt. Sessions are valid for a week; an expired one is replaced by a new one.
 * @param save is called with the session before the first part is sent
 */
export const uploadInParts = async (
  drive: CloudApi,
  {
    folder,
    file,
    resumed,
    save,
  }: { folder: Folder; file: DriveFile; resumed: ResumableSession | undefined; save(session: ResumableSession): void },
  payload: FileProperties & Content,
  context: Pick<AttemptContext, 'signal' | 'onProgress' | 'isLast'> & { subject?: string | undefined },
): Promise<CompletedUpload> => {
  const { signal, onProgress, subject } = context
  const place = placeOf(payload, folder)
  const runOf = (uploadUrl: string, faults: number) => ({
    uploadUrl,
    context,
    faults,
    saveFaults: (known: number) => save({ uploadUrl, faults: known }),
  })
  const found =
    resumed &&
    (await withUploadSession(drive, runOf(resumed.uploadUrl, resumed.faults), () =>
      during(`look at the upload session of ${place}`, () => findSession(drive, resumed.uploadUrl, payload, subject)),
    ))
  if (found?.completed) {
    const { completed } = found
    await during(`upload of ${place}`, () => requireStored(drive, folder, file, payload, completed))
    return { response: found.completed, bytesSent: 0 }
  }
  const { uploadUrl, nextByte } = found ?? (await startSession(drive, folder, file, payload))
  const faults = (found && resumed?.faults) ?? 0
  save({ uploadUrl, faults })
  const sent = { startByte: nextByte, partBytes, signal, onProgress }
  const response = await withUploadSession(drive, runOf(uploadUrl, faults), async (onStored) => {
    const stored = await sendPartsInSequence<CloudResponse>(payload, sent, async ({ start, end, body }) => {
      // Content-Range has no form for an empty range.
      const range = end > start && { 'content-range': `bytes ${start}-${end - 1}/${payload.sizeBytes}` }
      return during(`upload of ${end > start ? `bytes ${start} to ${end - 1} of ` : ''}${place}`, async () => {
        const headers = { 'content-length': String(end - start), ...range }
        const answer = await drive.requestSession(uploadUrl, { method: 'PUT', headers, body })
        if (answer.status === 308) {
          const expected = nextByteOf(answer)
          if (expected > start) onStored()
          return { nextByte: expected }
        }
        if (answer.status >= 300) throw sessionError(answer, subject)
        return { done: answer }
      })
    })
    await during(`upload of ${place}`, () => requireStored(drive, folder, file, payload, stored))
    return stored
  })
  return { response, bytesSent: payload.sizeBytes - nextByte }
}

/**
 * Requires that Drive has stored the document: its answer names the file, and has the digest of the content. If the answer has no digest, the
 * file is looked at. Drive stores content unchanged.
 * @throws DeliveryError `answer_unreadable`, `content_altered`
 */
const requireStored = async (drive: CloudApi, folder: Folder, file: DriveFile, { sha256 }: Content, response: CloudResponse) => {
  const id = requireId(response, 'Drive')
  const { sha256Checksum: told } = parseObject(response.text)
  const answer = toTargetAnswer(response)
  const found = typeof told === 'string' ? { sha256: told } : await fileById(drive, folder, file.id)
  // Drive computes the digest of some files later.
  if (typeof found === 'object' && found.sha256 !== undefined && found.sha256.toLowerCase() !== sha256) {
    throw new DeliveryError('content_altered', 'Drive stored other content than was sent; the next attempt replaces it', { answer })
  }
  if (typeof found === 'object' && id === file.id) return
  throw new DeliveryError('answer_unreadable', `Drive answered ${response.status}, but the file ${file.id} is not in the folder`, {
    answer,
  })
}

// The smallest part that is not the last.
const probePartBytes = 256 * 1_024

/** Uploads the first half of a file and aborts the session: Drive takes the bytes, and stores no file. */
export const beginUpload = async (
  drive: CloudApi,
  folder: Folder,
  id: string,
  properties: FileProperties,
  subject?: string,
): Promise<void> => {
  const sizeBytes = 2 * probePartBytes
  const operation = `upload of bytes 0 to ${probePartBytes - 1} of ${placeOf(properties, folder)}`
  const { uploadUrl } = await startSession(drive, folder, { id, exists: false }, { ...properties, sizeBytes })
  try {
    const headers = { 'content-length': String(probePartBytes), 'content-range': `bytes 0-${probePartBytes - 1}/${sizeBytes}` }
    await during(operation, async () => {
      const answer = await drive.requestSession(uploadUrl, { method: 'PUT', headers, body: probeContent(probePartBytes).open() })
      if (answer.status === 308 && nextByteOf(answer) > 0) return
      if (answer.status >= 300 && answer.status !== 308) throw sessionError(answer, subject)
      throw new DeliveryError('answer_unreadable', `Drive answered ${answer.status} to a part without saying what it has`)
    })
  } finally {
    await abortSession(drive, uploadUrl)
  }
}

/** Starts a session that writes the file. */
const startSession = async (drive: CloudApi, folder: Folder, file: DriveFile, properties: FileProperties): Promise<UploadSession> => {
  const query = new URLSearchParams({ uploadType: 'resumable', supportsAllDrives: 'true', fields: 'id,sha256Checksum' })
  const response = await drive.request(`/upload/drive/v3/files${file.exists ? `/${file.id}` : ''}?${query.toString()}`, {
    operation: `creation of an upload session for ${placeOf(properties, folder)}`,
    method: file.exists ? 'PATCH' : 'POST',
    headers: {
      'content-type': 'application/json; charset=UTF-8',
      'x-upload-content-type': mimeTypeOf(properties),
      'x-upload-content-length': String(properties.sizeBytes),
    },
    body: JSON.stringify({ ...metadataOf(properties), ...(!file.exists && { id: file.id, parents: [folder.id] }) }),
  })
  return { uploadUrl: requireUploadUrl(drive, response.headers.location), nextByte: 0 }
}

/** Asks for the position of a session. @returns undefined if Drive does not know it */
const findSession = async (
  drive: CloudApi,
  uploadUrl: string,
  { sizeBytes }: Content,
  subject: string | undefined,
): Promise<UploadSession | undefined> => {
  const response = await drive.requestSession(uploadUrl, {
    method: 'PUT',
    headers: { 'content-length': '0', 'content-range': `bytes */${sizeBytes}` },
  })
  if (response.status === 200 || response.status === 201) return { uploadUrl, nextByte: sizeBytes, completed: response }
  if (response.status === 308) return { uploadUrl, nextByte: nextByteOf(response) }
  const error = driveError(response, subject)
  if (isGone(response) || error.permanent || response.status === 401) return undefined
  throw error
}

/** Returns the position of the next byte. Drive has stored nothing if its answer has no Range header. */
const nextByteOf = ({ headers }: CloudResponse) => {
  const last = /^bytes=0-(\d+)$/.exec(String(headers.range ?? ''))?.[1]
  return last === undefined ? 0 : Number(last) + 1
}

const sessionError = (response: CloudResponse, subject: string | undefined) =>
  isGone(response) ? uploadExpired('Drive', response) : driveError(response, subject)

const placeOf = ({ fileName }: Pick<FileProperties, 'fileName'>, { id }: Folder) => `${fileName} in the folder ${id}`

const octetStream = 'application/octet-stream'

/**
 * Returns the media type without parameters, for which Drive has no field. Drive would convert documents of Google's
 * own types.
 */
const mimeTypeOf = ({ contentType }: FileProperties) => {
  const type = mediaTypeOf(contentType)
  return /^[\w.+-]+\/[\w.+-]+$/.test(type) && !type.startsWith('application/vnd.google-apps') ? type : octetStream
}

const metadataOf = (properties: FileProperties) => ({
  name: properties.fileName,
  description: properties.path,
  mimeType: mimeTypeOf(properties),
  appProperties: { [deliveryProperty]: properties.deliveryId, relay_document: properties.documentId },
  ...(Object.keys(properties.properties).length > 0 && { properties: properties.properties }),
})

/**
 * Returns the whole path as one name: its last segment is often the same for every document, and folder names are not
 * unique either.
 * @param names `windows`: those that Drive for desktop keeps on Windows
 */
export const fileNameOf = (path: string, names: FileNames = 'any') => shortened(targetSegments(path, { names }).join(' - '))
