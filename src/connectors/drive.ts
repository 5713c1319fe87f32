import { createHash } from 'node:crypto'
import { createCloudApi, giveUp, isMissing, type CloudApi } from './cloud-api.ts'
import { objectOf, type CloudAnswer } from './cloud-call.ts'
import { DeliveryError, type AttemptContext, type Connector, type Parcel, type Receipt, type Target } from './connector.ts'
import { fileFor, findFolder, newFileId, type Folder } from './drive-files.ts'
import { driveRefusal } from './drive-refusal.ts'
import { sessionLeft, uploadLeft, type SavedUpload } from './drive-resume.ts'
import { driveConfig, driveCredentials, type DriveConfig, type DriveCredentials } from './drive-target.ts'
import { beginSession, fileNameOf, uploadInChunks, type Described } from './drive-upload.ts'
import { createExpiring } from './expiring.ts'
import { createGoogleTokens, driveScope, type GooglePrincipal } from './google-token.ts'
import { reporting } from './reporting.ts'

type DriveTarget = Target<DriveConfig, DriveCredentials>

const foldersAtMost = 1_000
const folderKeptMs = 10 * 60_000
const fileIdsAtMost = 10_000
const fileIdKeptMs = 24 * 3_600_000

/**
 * Puts the document into a folder of Google Drive. A repetition finds the file of the attempt before by the delivery's id, which
 * every file carries.
 * @param root where the service is, replaced by tests only
 */
export const createDrive = (root = 'https://www.googleapis.com'): Connector<DriveConfig, DriveCredentials> => {
  const tokens = createGoogleTokens()
  const folders = createExpiring<Folder>(foldersAtMost)
  // of files that may have been made without our learning it: a search finds them only after a while
  const fileIds = createExpiring<string>(fileIdsAtMost)

  const within = <Result>(target: DriveTarget, attempt: AttemptContext, act: (drive: CloudApi) => Promise<Result>) => {
    const { subject, ca_certificate: caCertificate } = target.config
    const principal = principalOf(target)
    const context = { ...attempt, caCertificate }
    const secrets = [principal.account.private_key]
    const drive = createCloudApi({
      root,
      takeToken: async () => (await tokens.take(principal, context)).token,
      forgetToken: () => tokens.forget(principal),
      refusalOf: (answer) => driveRefusal(answer, subject),
      secrets,
      context,
    })
    return reporting(attempt, secrets, () => act(drive))
  }

  return {
    kind: 'drive',
    config: driveConfig,
    credentials: driveCredentials,

    deliver: (parcel, target, context) =>
      within(target, context, async (drive) => {
        // a path that is refused is refused before anything is asked
        fileNameOf(parcel.path)
        const key = placeOf(target)
        const known = folders.find(key)
        const folder = known ?? (await findFolder(drive, target.config.folder_id))
        const fileKey = `${key} ${parcel.deliveryId}`
        try {
          const left = uploadLeft(context.saved, key)
          const file = await fileFor(drive, folder, parcel.deliveryId, left?.fileId ?? fileIds.find(fileKey))
          // only one just looked up: with each delivery it would be kept for ever, and nobody learn that it was put into the trash
          if (!known) folders.keep(key, folder, Date.now() + folderKeptMs)
          const { id, sha256: theirs } = file
          const { sha256 } = parcel
          if (theirs === sha256) return receiptOf(id, 0)

          fileIds.keep(fileKey, id, Date.now() + fileIdKeptMs)
          const keep = (uploadUrl?: string) => context.save({ place: key, fileId: id, sha256, uploadUrl } satisfies SavedUpload)
          const storedUrl = await sessionLeft(drive, left, { fileId: id, sha256 })
          keep(storedUrl)
          const { subject } = target.config
          const { answer, bytesSent } = await uploadInChunks(drive, { folder, file, storedUrl, keep }, parcel, { ...context, subject })
          requireSameContent(answer, parcel)
          return receiptOf(id, bytesSent, answer)
        } catch (thrown) {
          // it may have been deleted or shared anew: the next attempt looks it up
          if (isMissing(thrown)) folders.forget(key)
          throw thrown
        }
      }),

    probe: (target, context) =>
      within(target, context, async (drive) => {
        // what is to be tried are the credentials, not a token they once gave
        tokens.forget(principalOf(target))
        const folder = await findFolder(drive, target.config.folder_id)
        const id = await newFileId(drive)
        const { uploadUrl } = await beginSession(drive, folder, { id, exists: false }, probeParcel(id))
        await giveUp(drive, uploadUrl)
      }),
  }
}

const principalOf = ({ config, credentials }: DriveTarget): GooglePrincipal => ({
  account: credentials.service_account,
  subject: config.subject,
  scope: driveScope,
})

/** Under whose eyes a folder was found, too: another account may not see it. */
const placeOf = ({ config, credentials }: DriveTarget) =>
  createHash('sha256')
    .update(JSON.stringify([config.folder_id, config.subject, credentials.service_account.client_email]))
    .digest('base64')

/** Drive keeps what it is given as it is, so its own digest is proof; where it tells one. */
const requireSameContent = (answer: CloudAnswer, { sha256 }: Parcel) => {
  const { sha256Checksum: theirs } = objectOf(answer.text)
  if (typeof theirs === 'string' && theirs.toLowerCase() !== sha256) {
    throw new DeliveryError('content_altered', 'Drive has another content than was sent: the next attempt replaces it')
  }
}

const receiptOf = (id: string, bytesSent: number, answer?: CloudAnswer): Receipt => ({
  path: `https://drive.google.com/file/d/${id}/view`,
  bytesSent,
  answer: { status: answer?.status ?? 200, file_id: id },
})

/** Of a file that is begun and never sent. */
const probeParcel = (id: string): Described => ({
  deliveryId: id,
  documentId: id,
  path: '.relay-probe',
  contentType: 'application/octet-stream',
  sizeBytes: 1,
})
