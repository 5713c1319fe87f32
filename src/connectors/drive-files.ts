import { isMissing, type CloudApi } from './cloud-api.ts'
import { objectOf } from './cloud-call.ts'
import { DeliveryError } from './connector.ts'

export interface Folder {
  id: string
  /** Of the shared drive it lies on. */
  driveId?: string | undefined
}

interface KnownFile {
  id: string
  /** Lower-case hex; Drive may not have worked it out yet. */
  sha256?: string | undefined
}

/** Which file an upload writes: one that is made under an id given beforehand, or one that an earlier attempt has made. */
export interface DriveFile extends KnownFile {
  exists: boolean
}

/** The property by which a delivery's file is found again: names are not unique in Drive. */
export const deliveryProperty = 'relay_delivery'

const folderType = 'application/vnd.google-apps.folder'

/** @throws DeliveryError `folder_missing`, `access_denied` */
export const findFolder = async (drive: CloudApi, folderId: string): Promise<Folder> => {
  const query = new URLSearchParams({
    supportsAllDrives: 'true',
    fields: 'id,mimeType,driveId,trashed,capabilities/canAddChildren',
  })
  const missing = (why: string, cause?: DeliveryError) =>
    new DeliveryError('folder_missing', `the folder ${folderId} ${why}: share it with the account, or correct folder_id`, {
      permanent: true,
      answer: cause?.answer,
    })
  const answer = await drive.call(`/drive/v3/files/${folderId}?${query.toString()}`, { method: 'GET' }).catch((thrown: unknown) => {
    throw isMissing(thrown) ? missing('is not there, or not shared with the account', thrown) : thrown
  })
  const { id, mimeType, driveId, trashed, capabilities } = objectOf(answer.text)
  if (typeof id !== 'string') throw new DeliveryError('answer_unreadable', 'Drive did not tell the folder in a form we know')
  if (mimeType !== folderType) throw missing('is no folder')
  if (trashed === true) throw missing('is in the trash')
  if ((capabilities as { canAddChildren?: unknown } | undefined)?.canAddChildren !== true) {
    throw new DeliveryError('access_denied', 'the account may see the folder, but not add to it: make it a contributor (or an editor)', {
      permanent: true,
    })
  }
  return { id, driveId: typeof driveId === 'string' ? driveId : undefined }
}

/** What an earlier attempt of the delivery has put into the folder. */
const findDelivered = async (drive: CloudApi, folder: Folder, deliveryId: string): Promise<KnownFile | undefined> => {
  const query = new URLSearchParams({
    q: `'${folder.id}' in parents and appProperties has { key='${deliveryProperty}' and value='${quoted(deliveryId)}' } and trashed = false`,
    fields: 'files(id,sha256Checksum)',
    // should there be two after all, every attempt takes the same one
    orderBy: 'createdTime',
    pageSize: '1',
    supportsAllDrives: 'true',
    includeItemsFromAllDrives: 'true',
    ...(folder.driveId === undefined ? { corpora: 'user' } : { corpora: 'drive', driveId: folder.driveId }),
  })
  const { files } = objectOf((await drive.call(`/drive/v3/files?${query.toString()}`, { method: 'GET' })).text)
  return Array.isArray(files) ? knownFile(files[0]) : undefined
}

const quoted = (text: string) => text.replace(/[\\']/g, '\\$&')

/** A file by its id, which is there sooner than a search finds it. `elsewhere`: put into the trash or another folder by somebody. */
const fileById = async (drive: CloudApi, folder: Folder, id: string): Promise<KnownFile | 'absent' | 'elsewhere'> => {
  const query = new URLSearchParams({ supportsAllDrives: 'true', fields: 'id,sha256Checksum,trashed,parents' })
  try {
    const file = objectOf((await drive.call(`/drive/v3/files/${id}?${query.toString()}`, { method: 'GET' })).text)
    const isHere = file.trashed !== true && Array.isArray(file.parents) && file.parents.includes(folder.id)
    return (isHere && knownFile(file)) || 'elsewhere'
  } catch (thrown) {
    if (isMissing(thrown)) return 'absent'
    throw thrown
  }
}

/**
 * The file of a delivery: the one an earlier attempt has made, or one that is to be made.
 * @param id under which an earlier attempt may have made it
 */
export const fileFor = async (drive: CloudApi, folder: Folder, deliveryId: string, id: string | undefined): Promise<DriveFile> => {
  const found = id === undefined ? 'absent' : await fileById(drive, folder, id)
  const known = typeof found === 'object' ? found : await findDelivered(drive, folder, deliveryId)
  if (known) return { ...known, exists: true }
  // the id of a file that was put elsewhere is used up
  return { id: (found === 'absent' && id) || (await newFileId(drive)), exists: false }
}

/** An id for a file that is to be made: known before the first byte is sent, and good for one file only. */
export const newFileId = async (drive: CloudApi): Promise<string> => {
  const answer = await drive.call('/drive/v3/files/generateIds?count=1&space=drive&type=files', { method: 'GET' })
  const { ids } = objectOf(answer.text)
  const id: unknown = Array.isArray(ids) ? ids[0] : undefined
  if (typeof id !== 'string') throw new DeliveryError('answer_unreadable', 'Drive gave no id for a new file')
  return id
}

const knownFile = (file: unknown): KnownFile | undefined => {
  const { id, sha256Checksum: sha256 } = (file ?? {}) as { id?: unknown; sha256Checksum?: unknown }
  return typeof id === 'string' ? { id, sha256: typeof sha256 === 'string' ? sha256 : undefined } : undefined
}
