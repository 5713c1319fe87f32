import { DeliveryError } from '../connector.ts'
import { isNotFound, parseObject, requireId, type CloudApi } from '../shared/cloud-api.ts'
import { during } from '../shared/operation.ts'

export interface Folder {
  id: string
  /** The shared drive that contains the folder. */
  driveId?: string | undefined
  /** How the account may remove files of the folder. Absent if it may not. */
  removal?: 'delete' | 'trash' | undefined
}

interface KnownFile {
  id: string
  /** Lower-case hex. Absent while Drive has not computed it yet. */
  sha256?: string | undefined
}

/**
 * The file that a delivery writes: one that an earlier attempt has created, or a new one under an id that is known
 * beforehand.
 */
export interface DriveFile extends KnownFile {
  exists: boolean
}

/** The property that identifies a delivery's file. Names are not unique in Drive. */
export const deliveryProperty = 'relay_delivery'

const folderType = 'application/vnd.google-apps.folder'

/** @throws DeliveryError `folder_missing`, `access_denied` */
export const findFolder = async (drive: CloudApi, folderId: string): Promise<Folder> => {
  const query = new URLSearchParams({
    supportsAllDrives: 'true',
    fields: 'id,mimeType,driveId,trashed,capabilities(canAddChildren,canDeleteChildren,canTrashChildren)',
  })
  const missing = (reason: string, cause?: DeliveryError) =>
    new DeliveryError('folder_missing', `the folder ${folderId} ${reason}; share it with the account, or correct folder_id`, {
      answer: cause?.answer,
    })
  const call = { operation: `look at the folder ${folderId}`, method: 'GET' } as const
  const response = await drive.request(`/drive/v3/files/${folderId}?${query.toString()}`, call).catch((thrown: unknown) => {
    throw isNotFound(thrown) ? missing('does not exist, or is not shared with the account', thrown) : thrown
  })
  const { id, mimeType, driveId, trashed, capabilities } = parseObject(response.text)
  if (typeof id !== 'string') throw new DeliveryError('answer_unreadable', 'Drive described the folder in an unknown form')
  if (mimeType !== folderType) throw missing('is not a folder')
  if (trashed === true) throw missing('is in the trash')
  const { canAddChildren, canDeleteChildren, canTrashChildren } = (capabilities ?? {}) as Record<string, unknown>
  if (canAddChildren !== true) {
    throw new DeliveryError(
      'access_denied',
      'the account may see the folder but not add files to it; make it a contributor (or an editor)',
      { permanent: true },
    )
  }
  // Outside of shared drives, who stores a file owns it.
  const removal = typeof driveId !== 'string' || canDeleteChildren === true ? 'delete' : canTrashChildren === true ? 'trash' : undefined
  return { id, driveId: typeof driveId === 'string' ? driveId : undefined, removal }
}

/** Searches the folder for the file that an earlier attempt of the delivery has created. */
const findDelivered = async (drive: CloudApi, folder: Folder, deliveryId: string): Promise<KnownFile | undefined> => {
  const query = new URLSearchParams({
    q: `'${folder.id}' in parents and appProperties has { key='${deliveryProperty}' and value='${quoted(deliveryId)}' } and trashed = false`,
    fields: 'files(id,sha256Checksum)',
    // If there should be two, every attempt uses the same one.
    orderBy: 'createdTime',
    pageSize: '1',
    supportsAllDrives: 'true',
    includeItemsFromAllDrives: 'true',
    ...(folder.driveId === undefined ? { corpora: 'user' } : { corpora: 'drive', driveId: folder.driveId }),
  })
  const operation = `search for the file of the delivery in the folder ${folder.id}`
  return during(operation, async () => {
    const { files } = parseObject((await drive.request(`/drive/v3/files?${query.toString()}`, { operation, method: 'GET' })).text)
    // An answer that does not come from Drive must not be taken for a search that has found nothing: a second file would be created.
    if (!Array.isArray(files)) throw new DeliveryError('answer_unreadable', 'Drive answered a search in an unknown form')
    return toKnownFile(files[0])
  })
}

const quoted = (text: string) => text.replace(/[\\']/g, '\\$&')

/**
 * Fetches a file by its id, which works before a search finds the file.
 * @returns `elsewhere` if the file was moved to the trash or to another folder
 */
export const fileById = async (drive: CloudApi, folder: Folder, id: string): Promise<KnownFile | 'absent' | 'elsewhere'> => {
  const query = new URLSearchParams({ supportsAllDrives: 'true', fields: 'id,sha256Checksum,trashed,parents' })
  try {
    const operation = `look at the file ${id}`
    const response = await drive.request(`/drive/v3/files/${id}?${query.toString()}`, { operation, method: 'GET' })
    await during(operation, async () => requireId(response, 'Drive'))
    const file = parseObject(response.text)
    const isInFolder = file.trashed !== true && Array.isArray(file.parents) && file.parents.includes(folder.id)
    return (isInFolder && toKnownFile(file)) || 'elsewhere'
  } catch (thrown) {
    if (isNotFound(thrown)) return 'absent'
    throw thrown
  }
}

/**
 * Determines the file of a delivery: the one that an earlier attempt has created, or a new one.
 * @param ids `started`: under which an earlier attempt may have created the file; `stored`: under which one has
 */
export const fileFor = async (
  drive: CloudApi,
  folder: Folder,
  deliveryId: string,
  { started, stored }: { started: string | undefined; stored: string | undefined },
): Promise<DriveFile> => {
  const found = started === undefined ? 'absent' : await fileById(drive, folder, started)
  if (typeof found === 'object') return { ...found, exists: true }
  const completed = stored === undefined || stored === started ? 'absent' : await fileById(drive, folder, stored)
  if (typeof completed === 'object') return { ...completed, exists: true }
  const delivered = await findDelivered(drive, folder, deliveryId)
  if (delivered) return { ...delivered, exists: true }
  // An id can be used once: not again if its file was moved elsewhere or, completed, has been deleted.
  const isUsable = found === 'absent' && started !== stored
  return { id: (isUsable && started) || (await newFileId(drive)), exists: false }
}

/** Removes a file that a test has stored. @throws DeliveryError if it remains */
export const removeFile = async (drive: CloudApi, id: string, removal: 'delete' | 'trash'): Promise<void> => {
  const address = `/drive/v3/files/${id}?supportsAllDrives=true`
  const operation = `removal of the file ${id}`
  if (removal === 'delete') {
    const { status } = await drive.request(address, { operation, method: 'DELETE' })
    if (status !== 204) throw new DeliveryError('answer_unreadable', `Drive answered ${status} to its removal`)
    return
  }
  const call = {
    operation,
    method: 'PATCH',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ trashed: true }),
  } as const
  requireId(await drive.request(address, call), 'Drive')
}

/** Requests an id for a new file. The id is known before the first byte is sent and is valid for one file only. */
const newFileId = async (drive: CloudApi): Promise<string> => {
  const call = { operation: 'request of an id for a new file', method: 'GET' } as const
  const response = await drive.request('/drive/v3/files/generateIds?count=1&space=drive&type=files', call)
  const { ids } = parseObject(response.text)
  const id: unknown = Array.isArray(ids) ? ids[0] : undefined
  if (typeof id !== 'string') throw new DeliveryError('answer_unreadable', 'Drive issued no id for a new file')
  return id
}

const toKnownFile = (file: unknown): KnownFile | undefined => {
  const { id, sha256Checksum: sha256 } = (file ?? {}) as { id?: unknown; sha256Checksum?: unknown }
  return typeof id === 'string' ? { id, sha256: typeof sha256 === 'string' ? sha256 : undefined } : undefined
}
