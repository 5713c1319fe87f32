import { createHash } from 'node:crypto'
import { newId } from '../../base/ids.ts'
import { withoutSecrets } from '../../base/secrets.ts'
import { cutToBytes, plainValue } from '../../base/text.ts'
import { createTtlCache } from '../../base/ttl-cache.ts'
import {
  DeliveryError,
  type AttemptContext,
  type Connector,
  type DeliveryResult,
  type Payload,
  type PropertyRules,
  type Target,
} from '../connector.ts'
import { createTokenCache } from '../shared/access-tokens.ts'
import { createCloudApi, isNotFound, requireId, type CloudApi, type CloudResponse } from '../shared/cloud-api.ts'
import { toDeliveryError, withDeliveryErrors } from '../shared/errors.ts'
import { withOperation } from '../shared/operation.ts'
import { probeContent, storedAndRemoved } from '../shared/probe-content.ts'
import { createReadTokenFile } from '../shared/token-files.ts'
import { driveError } from './errors.ts'
import { googleHosts } from './external-account.ts'
import { fileFor, findFolder, removeFile, type DriveFile, type Folder } from './files.ts'
import { createGoogleTokens, driveScope, type GooglePrincipal } from './google-tokens.ts'
import { driveConfig, driveCredentials, type DriveConfig, type DriveCredentials, driveExample } from './schema.ts'
import {
  beginUpload,
  fileNameOf,
  parseSavedUpload,
  sessionToResume,
  uploadInParts,
  type FileProperties,
  type ResumableSession,
  type SavedUpload,
} from './upload-session.ts'

type DriveTarget = Target<DriveConfig, DriveCredentials>

const maxFolders = 1_000
const folderLifetimeMs = 10 * 60_000
const maxFileIds = 10_000
const fileIdLifetimeMs = 24 * 3_600_000

// Drive accepts 124 bytes for name and value together.
const propertyMaxBytes = 124
const propertyNameMaxBytes = 60

const fileProperties: PropertyRules = {
  nameIssue: (name) =>
    Buffer.byteLength(name) <= propertyNameMaxBytes ? undefined : `must not exceed ${propertyNameMaxBytes} bytes in UTF-8`,
  clean: (value, name) => cutToBytes(plainValue(value, propertyMaxBytes), propertyMaxBytes - Buffer.byteLength(name)).trim(),
}

/**
 * Stores the document as a file in a folder of Google Drive. A repetition finds the file of the previous attempt by the
 * delivery's id, which is a property of every file.
 * @param root is the address of the service, and `hosts` are those for tokens of other systems; only tests replace them
 */
export const createDrive = (
  root = 'https://www.googleapis.com',
  tokenCache = createTokenCache(),
  readTokenFile = createReadTokenFile([]),
  hosts = googleHosts,
): Connector<DriveConfig, DriveCredentials> => {
  const tokens = createGoogleTokens(tokenCache, { readTokenFile, hosts })
  const folders = createTtlCache<Folder>({ maxEntries: maxFolders })
  // Ids of files that may exist although their creation was never confirmed. A search finds such files only after a
  // while.
  const fileIds = createTtlCache<string>({ maxEntries: maxFileIds })

  const withDrive = <Result>(target: DriveTarget, attempt: AttemptContext, act: (drive: CloudApi) => Promise<Result>) => {
    const { subject, ca_certificate: caCertificate } = target.config
    const principal = principalOf(target, attempt)
    const context = { ...attempt, caCertificate }
    const secrets = secretsOf(principal)
    const drive = createCloudApi({
      root,
      getToken: async () => (await tokens.get(principal, context)).token,
      invalidateToken: (refused) => tokens.invalidate(principal, refused),
      toError: (response) => driveError(response, subject),
      secrets,
      context,
    })
    return withDeliveryErrors(attempt, secrets, () => act(drive))
  }

  return {
    kind: 'drive',
    config: driveConfig,
    credentials: driveCredentials,
    boundKeys: ['subject', 'ca_certificate'],
    example: driveExample,

    deliver: (payload, target, context) =>
      withDrive(target, context, async (drive) => {
        // Refuses an invalid path before the first request.
        const fileName = fileNameOf(payload.path, target.config.file_names)
        const key = folderKey(target)
        const known = folders.get(key)
        const folder = known ?? (await findFolder(drive, target.config.folder_id))
        const fileKey = `${key} ${payload.deliveryId}`
        try {
          const saved = parseSavedUpload(context.saved, key)
          const file = await fileFor(drive, folder, payload.deliveryId, {
            started: saved?.fileId ?? fileIds.get(fileKey),
            stored: storedId(payload),
          })
          // Cache only a folder that was just looked up. If every delivery renewed the entry, a folder moved to the
          // trash would go unnoticed.
          if (!known) folders.set(key, folder, Date.now() + folderLifetimeMs)
          const { sha256 } = payload
          if (file.sha256 === sha256) {
            // The document is stored. That its properties cannot be set, for example because the file is locked, must not fail it.
            const propertiesError = await setProperties(drive, file.id, payload.properties).catch((thrown: unknown) => {
              context.signal.throwIfAborted()
              return withoutSecrets(withOperation(toDeliveryError(thrown, 'request_failed'), thrown).message, drive.secrets)
            })
            return { ...resultOf(file.id, 0), ...(typeof propertiesError === 'string' && { propertiesError }) }
          }

          fileIds.set(fileKey, file.id, Date.now() + fileIdLifetimeMs)
          const save = (session: Partial<ResumableSession> = {}) =>
            context.save({ folderKey: key, fileId: file.id, sha256, faults: 0, ...session } satisfies SavedUpload)
          const resumed = await sessionToResume(drive, saved, { fileId: file.id, sha256 })
          save(resumed)
          const { subject } = target.config
          const { response, bytesSent } = await uploadInParts(
            drive,
            { folder, file, resumed, save },
            { ...payload, fileName },
            {
              ...context,
              subject,
            },
          )
          return resultOf(file.id, bytesSent, response)
        } catch (thrown) {
          // The folder may have been deleted or shared again. The next attempt looks it up.
          if (isNotFound(thrown)) folders.delete(key)
          throw thrown
        }
      }),

    properties: fileProperties,
    updateMetadata: (copy, target, context) =>
      withDrive(target, context, async (drive) => {
        const id = storedId(copy)
        if (id === undefined)
          throw new DeliveryError('copy_missing', `the document was stored as ${copy.location}, which is no file of Drive`)
        await setProperties(drive, id, copy.properties)
      }),

    read: (copy, span, target, context, take) =>
      withDrive(target, context, async (drive) => {
        const id = storedId(copy)
        if (id === undefined) return false
        try {
          const file = { operation: `read of the file ${id}`, span }
          await drive.download(`/drive/v3/files/${encodeURIComponent(id)}?alt=media&supportsAllDrives=true`, file, take)
          return true
        } catch (thrown) {
          if (!isNotFound(thrown)) throw thrown
          // Drive says so of every file of a folder that is no longer shared with the account.
          await findFolder(drive, target.config.folder_id)
          return false
        }
      }),
    placeKeys: ['folder_id'],
    placeOf: ({ folder_id }) => ({ container: folder_id, prefix: '' }),

    probe: (target, context) =>
      withDrive(target, context, async (drive) => {
        // Test the credentials instead of a token that was issued for them earlier.
        tokens.invalidate(principalOf(target, context))
        const folder = await findFolder(drive, target.config.folder_id)
        const { folder_id: folderId, subject } = target.config
        const probeId = `probe_${newId()}`
        const file = await fileFor(drive, folder, probeId, { started: undefined, stored: undefined })
        if (folder.removal === undefined) {
          await beginUpload(drive, folder, file.id, probeProperties(probeId), subject)
          return `The relay signed in, uploaded the beginning of a file to the folder ${folderId} and aborted the upload. No file was stored, because the account may not remove one: that a file can be completed was not tried.`
        }
        const remains = await storeAndRemove(drive, { folder, file, removal: folder.removal, probeId }, { ...context, subject })
        const stored = `The relay signed in and stored a file in the folder ${folderId}`
        if (remains !== undefined) {
          const { path } = resultOf(file.id, 0)
          return `${stored}. ${path} remains, because it could not be removed: ${withoutSecrets(remains, drive.secrets)}`
        }
        return `${stored}, and ${folder.removal === 'delete' ? 'removed it. No file remains.' : 'moved it to the trash.'}`
      }),
  }
}

/** Sets file properties; properties set by other apps are kept. */
const setProperties = async (drive: CloudApi, id: string, properties: Payload['properties']): Promise<void> => {
  if (Object.keys(properties).length === 0) return
  const response = await drive.request(`/drive/v3/files/${encodeURIComponent(id)}?supportsAllDrives=true&fields=id`, {
    operation: `properties of the file ${id}`,
    method: 'PATCH',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ properties }),
  })
  requireId(response, 'Drive')
}

const principalOf = ({ config, credentials }: DriveTarget, { workspace }: Pick<AttemptContext, 'workspace'>): GooglePrincipal => ({
  account: (credentials.service_account ?? credentials.external_account)!,
  subject: config.subject,
  scope: driveScope,
  workspace,
})

const secretsOf = ({ account }: GooglePrincipal): string[] =>
  account.type === 'service_account' ? [account.private_key] : Object.values(account.credential_source.headers ?? {})

const accountKeyOf = ({ service_account: service, external_account: external }: DriveCredentials) => service?.client_email ?? external

/** Returns the cache key of a folder. It includes the account, since another account might not see the folder. */
const folderKey = ({ config, credentials }: DriveTarget) =>
  createHash('sha256')
    .update(JSON.stringify([config.folder_id, config.subject, accountKeyOf(credentials)]))
    .digest('base64')

const filePrefix = 'https://drive.google.com/file/d/'

/** Returns the id of the file that an earlier attempt has completed, maybe in another worker. */
const storedId = ({ location }: Pick<Payload, 'location'>): string | undefined =>
  location?.startsWith(filePrefix) ? location.slice(filePrefix.length).split('/')[0] : undefined

const resultOf = (id: string, bytesSent: number, response?: CloudResponse): DeliveryResult => ({
  path: `${filePrefix}${id}/view`,
  bytesSent,
  answer: { status: response?.status ?? 200, file_id: id },
})

/**
 * Stores a small file as deliveries do, and removes it.
 * @returns why the file remains, undefined if it does not
 */
const storeAndRemove = async (
  drive: CloudApi,
  { folder, file, removal, probeId }: { folder: Folder; file: DriveFile; removal: 'delete' | 'trash'; probeId: string },
  context: Pick<AttemptContext, 'signal' | 'onProgress'> & { subject?: string | undefined },
): Promise<string | undefined> => {
  const store = () => {
    const payload = { ...probeProperties(probeId), ...probeContent() }
    return uploadInParts(drive, { folder, file, resumed: undefined, save: () => {} }, payload, context)
  }
  return storedAndRemoved(store, () => removeFile(drive, file.id, removal), context.signal)
}

const probeProperties = (id: string): FileProperties => ({
  deliveryId: id,
  documentId: id,
  path: `.relay-${id}`,
  fileName: `.relay-${id}`,
  contentType: 'application/octet-stream',
  sizeBytes: 0,
  properties: {},
})
