import { createHash } from 'node:crypto'
import { newId } from '../../base/ids.ts'
import { withoutSecrets } from '../../base/secrets.ts'
import { plainValue } from '../../base/text.ts'
import { createTtlCache } from '../../base/ttl-cache.ts'
import { DeliveryError, type AttemptContext, type Connector, type Payload, type PropertyRules, type Target } from '../connector.ts'
import { certificateExpiresAt } from '../shared/client-certificate.ts'
import {
  createCloudApi,
  isNotFound,
  parseFile,
  parseObject,
  toTargetAnswer,
  type CloudApi,
  type CompletedUpload,
} from '../shared/cloud-api.ts'
import { foundInPlace, storeOrFind } from '../shared/earlier-copy.ts'
import { entraPrincipalOf, entraSecretsOf, type EntraPrincipal, type EntraTokens } from '../shared/entra-tokens.ts'
import { toDeliveryError, withDeliveryErrors } from '../shared/errors.ts'
import { during, withOperation } from '../shared/operation.ts'
import { folderPrefix, hostAndPath } from '../shared/place.ts'
import { probeContent, storedAndRemoved, type Content } from '../shared/probe-content.ts'
import { namesLike, requireSameLocation } from '../shared/properties.ts'
import { sendPartsInSequence } from '../shared/upload-parts.ts'
import { graphError } from './errors.ts'
import { findItem, placeOf, refusalOf, requireItem } from './items.ts'
import { findLibrary, requirePathFits, sharePointSegments, urlPath, type Library } from './library.ts'
import {
  microsoftClouds,
  teamsiteConfig,
  teamsiteCredentials,
  type CloudName,
  type MicrosoftCloud,
  type TeamsiteConfig,
  type TeamsiteCredentials,
  teamsiteExample,
} from './schema.ts'
import { uploadInParts } from './upload-session.ts'

type TeamsiteTarget = Target<TeamsiteConfig, TeamsiteCredentials>

// The size that one request may have without an upload session, on every page of Microsoft's documentation.
const singleRequestMaxBytes = 4 * 1024 * 1024
const maxLibraries = 1_000
const libraryLifetimeMs = 10 * 60_000

// A column has 255 characters unless it is one of several lines.
const columnProperties: PropertyRules = {
  nameIssue: namesLike(/^[A-Za-z_][A-Za-z0-9_]*$/, 128, 'must be the internal name of a column: letters, digits and _'),
  clean: (value) => plainValue(value, 255),
}

/**
 * Stores the document as a file in a library of a SharePoint site. A repetition writes the same file again.
 * @param clouds are the addresses of the services; only tests replace them
 */
export const createTeamsite = (
  tokens: EntraTokens,
  clouds: Record<CloudName, MicrosoftCloud> = microsoftClouds,
): Connector<TeamsiteConfig, TeamsiteCredentials> => {
  const libraries = createTtlCache<Library>({ maxEntries: maxLibraries })

  const withGraph = <Result>(target: TeamsiteTarget, attempt: AttemptContext, act: (graph: CloudApi) => Promise<Result>) => {
    const context = { ...attempt, caCertificate: target.config.ca_certificate }
    const principal = principalOf(target, clouds, context)
    const secrets = entraSecretsOf(target.credentials)
    const graph = createCloudApi({
      root: `${clouds[target.config.cloud].graphRoot}/v1.0`,
      getToken: async () => (await tokens.get(principal, context)).token,
      invalidateToken: (refused) => tokens.invalidate(principal, refused),
      toError: graphError,
      secrets,
      context,
    })
    return withDeliveryErrors(attempt, secrets, () => act(graph))
  }

  return {
    kind: 'teamsite',
    config: teamsiteConfig,
    credentials: teamsiteCredentials,
    boundKeys: ['site_url', 'cloud', 'ca_certificate'],
    credentialsExpireAt: certificateExpiresAt,
    example: teamsiteExample,

    deliver: (payload, target, context) =>
      withGraph(target, context, async (graph) => {
        const { config } = target
        const segments = inFolder(config, sharePointSegments(payload.path))
        const key = libraryKey(target)
        const known = libraries.get(key)
        const library = known ?? (await findLibrary(graph, { siteUrl: config.site_url, name: config.document_library }))
        requirePathFits(library.webUrl, segments)
        try {
          const address = fileAddress(library, segments)
          const { response, bytesSent, isFound } = await storeOrFind<CompletedUpload & { isFound?: true }>(
            () => upload(graph, address, payload, context),
            {
              attempt: payload.attempt,
              refusalOf,
              look: async () => {
                const found = await findItem(graph, address, payload, context)
                return found.state === 'ours' ? { ...found, stored: { response: found.stored, bytesSent: 0, isFound: true } } : found
              },
              toError: (thrown) => thrown as DeliveryError,
            },
          )
          // Cache only a library that was just looked up. If every delivery renewed the entry, its address would never
          // be refreshed.
          if (!known) libraries.set(key, library, Date.now() + libraryLifetimeMs)
          const { id, eTag } = parseObject(response.text)
          // The document is stored. That its columns cannot be set must not send it again.
          const propertiesError = await setColumns(graph, address, payload.properties).catch((thrown: unknown) => {
            context.signal.throwIfAborted()
            return withoutSecrets(withOperation(toDeliveryError(thrown, 'request_failed'), thrown).message, graph.secrets)
          })
          return {
            path: urlOf(library, segments),
            bytesSent,
            ...(typeof propertiesError === 'string' && { propertiesError }),
            answer: {
              status: response.status,
              item_id: typeof id === 'string' ? id : undefined,
              etag: typeof eTag === 'string' ? eTag : undefined,
              request_id: String(response.headers['request-id'] ?? '') || undefined,
              ...(isFound && { body: foundInPlace }),
            },
          }
        } catch (thrown) {
          // The library may have been deleted and created again. The next attempt looks it up.
          if (isNotFound(thrown)) libraries.delete(key)
          throw thrown
        }
      }),

    properties: columnProperties,
    // SharePoint changes Office files.
    updateRewrites: true,
    updateMetadata: (copy, target, context) =>
      withGraph(target, context, async (graph) => {
        const { config } = target
        const segments = inFolder(config, sharePointSegments(copy.path))
        const key = libraryKey(target)
        const library = libraries.get(key) ?? (await findLibrary(graph, { siteUrl: config.site_url, name: config.document_library }))
        requireSameLocation(copy, urlOf(library, segments))
        await setColumns(graph, fileAddress(library, segments), copy.properties)
      }),

    read: (copy, span, target, context, take) =>
      withGraph(target, context, async (graph) => {
        const { config } = target
        const find = () => findLibrary(graph, { siteUrl: config.site_url, name: config.document_library })
        const library = libraries.get(libraryKey(target)) ?? (await find())
        const file = fileAddress(library, inFolder(config, sharePointSegments(copy.path)))
        try {
          await graph.download(`${file}:/content`, { operation: `read of ${placeOf(file)}`, span }, take)
          return true
        } catch (thrown) {
          if (!isNotFound(thrown)) throw thrown
          // The library may have been deleted and created again.
          const { driveId } = await find()
          libraries.delete(libraryKey(target))
          if (driveId !== library.driveId) throw thrown
          return false
        }
      }),
    placeKeys: ['document_library', 'folder'],
    placeOf: ({ site_url, document_library, folder }) => ({
      container: `${hostAndPath(site_url)}/${document_library}`,
      prefix: folder && folderPrefix(folder),
    }),

    probe: (target, context) =>
      withGraph(target, context, async (graph) => {
        // Test the credentials instead of a token that was issued for them earlier.
        tokens.invalidate(principalOf(target, clouds, context))
        const { config } = target
        const library = await findLibrary(graph, { siteUrl: config.site_url, name: config.document_library })
        const segments = inFolder(config, [`.relay-probe-${newId()}`])
        requirePathFits(library.webUrl, segments)
        const remains = await storeAndRemove(graph, fileAddress(library, segments), context)
        const stored = `The relay signed in and stored a file in the library ${config.document_library}, in one request and in an upload session`
        if (remains === undefined) return `${stored}, and removed it. No file remains.`
        return `${stored}. ${urlOf(library, segments)} remains, because it could not be removed: ${withoutSecrets(remains, graph.secrets)}`
      }),
  }
}

const principalOf = (
  { config, credentials }: TeamsiteTarget,
  clouds: Record<CloudName, MicrosoftCloud>,
  context: Pick<AttemptContext, 'workspace'>,
): EntraPrincipal => {
  const principal = entraPrincipalOf(credentials, clouds[config.cloud], context)
  if (!principal) throw new DeliveryError('config_invalid', 'the credentials contain nothing that proves which application signs in')
  return principal
}

/**
 * Returns the cache key of a library. It includes the credentials, since another application might not see the library.
 */
const libraryKey = ({ config, credentials }: TeamsiteTarget) =>
  createHash('sha256')
    .update(JSON.stringify([config.cloud, config.site_url, config.document_library, credentials]))
    .digest('base64')

const inFolder = ({ folder }: TeamsiteConfig, segments: string[]) => (folder ? [...folder.split('/'), ...segments] : segments)

const urlOf = ({ webUrl }: Library, segments: string[]) => `${webUrl}/${urlPath(segments)}`

/** Sets columns of a file; columns set by other programs are kept. */
const setColumns = async (graph: CloudApi, file: string, columns: Payload['properties']): Promise<void> => {
  if (Object.keys(columns).length === 0) return
  const operation = `columns of ${placeOf(file)}`
  await during(operation, async () => {
    const response = await graph.request(`${file}:/listItem/fields`, {
      operation,
      method: 'PATCH',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(columns),
    })
    const told = parseFile(response.text)
    if (Object.keys(columns).some((name) => name in told)) return
    throw new DeliveryError('answer_unreadable', `SharePoint answered ${response.status} without the columns that it has set`, {
      answer: toTargetAnswer(response),
    })
  })
}

const fileAddress = ({ driveId }: Library, segments: string[]) => `/drives/${encodeURIComponent(driveId)}/root:/${urlPath(segments)}`

const upload = async (graph: CloudApi, file: string, payload: Content, context: AttemptContext): Promise<CompletedUpload> => {
  if (payload.sizeBytes > singleRequestMaxBytes) return uploadInParts(graph, file, payload, context)
  const { signal, onProgress } = context
  const operation = `upload of ${placeOf(file)}`
  return during(operation, async () => {
    const response = await sendPartsInSequence(
      payload,
      { partBytes: singleRequestMaxBytes, signal, onProgress },
      async ({ end, body }) => ({
        done: await graph.request(`${file}:/content?@microsoft.graph.conflictBehavior=replace`, {
          operation,
          method: 'PUT',
          headers: { 'content-type': 'application/octet-stream', 'content-length': String(end) },
          body,
        }),
      }),
    )
    requireItem(response, payload)
    return { response, bytesSent: payload.sizeBytes }
  })
}

/**
 * Stores a small file as deliveries do, in one request and in an upload session, whose host is another one, and removes it.
 * @returns why the file remains, undefined if it does not
 */
const storeAndRemove = async (graph: CloudApi, file: string, context: AttemptContext): Promise<string | undefined> => {
  const remove = async () => {
    const { status } = await graph.request(file, { operation: `removal of ${placeOf(file)}`, method: 'DELETE' })
    if (status !== 204) throw new DeliveryError('answer_unreadable', `SharePoint answered ${status} to its removal`)
  }
  const store = async () => {
    await upload(graph, file, probeContent(), context)
    await uploadInParts(graph, file, probeContent(), context)
  }
  return storedAndRemoved(store, remove, context.signal)
}
