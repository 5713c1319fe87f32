import { createHash } from 'node:crypto'
import { createCloudApi, giveUp, isMissing, type CloudApi, type Uploaded } from './cloud-api.ts'
import { objectOf } from './cloud-call.ts'
import type { AttemptContext, Connector, Parcel, Target } from './connector.ts'
import type { EntraPrincipal, EntraTokens } from './entra-token.ts'
import { createExpiring } from './expiring.ts'
import { graphRefusal } from './graph-refusal.ts'
import { findLibrary, type Library } from './graph-library.ts'
import { beginSession, uploadInFragments } from './graph-upload.ts'
import { sendPieces } from './pieces.ts'
import { reporting } from './reporting.ts'
import { requirePathFits, sharePointSegments, urlPath } from './teamsite-path.ts'
import {
  microsoftClouds,
  teamsiteConfig,
  teamsiteCredentials,
  type CloudName,
  type MicrosoftCloud,
  type TeamsiteConfig,
  type TeamsiteCredentials,
} from './teamsite-target.ts'

type TeamsiteTarget = Target<TeamsiteConfig, TeamsiteCredentials>

// what one request without a session may carry by every page of the documentation
const singleMaxBytes = 4 * 1024 * 1024
const librariesAtMost = 1_000
const libraryKeptMs = 10 * 60_000

/**
 * Puts the document into a library of a SharePoint site. A repetition writes the same file again.
 * @param clouds where the services are, replaced by tests only
 */
export const createTeamsite = (
  tokens: EntraTokens,
  clouds: Record<CloudName, MicrosoftCloud> = microsoftClouds,
): Connector<TeamsiteConfig, TeamsiteCredentials> => {
  const libraries = createExpiring<Library>(librariesAtMost)

  const within = <Result>(target: TeamsiteTarget, attempt: AttemptContext, act: (graph: CloudApi) => Promise<Result>) => {
    const context = { ...attempt, caCertificate: target.config.ca_certificate }
    const principal = principalOf(target, clouds)
    const secrets = [principal.clientSecret]
    const graph = createCloudApi({
      root: `${clouds[target.config.cloud].graphRoot}/v1.0`,
      takeToken: async () => (await tokens.take(principal, context)).token,
      forgetToken: () => tokens.forget(principal),
      refusalOf: graphRefusal,
      secrets,
      context,
    })
    return reporting(attempt, secrets, () => act(graph))
  }

  return {
    kind: 'teamsite',
    config: teamsiteConfig,
    credentials: teamsiteCredentials,

    deliver: (parcel, target, context) =>
      within(target, context, async (graph) => {
        const { config } = target
        const segments = inFolder(config, sharePointSegments(parcel.path))
        const key = placeOf(target)
        const known = libraries.find(key)
        const library = known ?? (await findLibrary(graph, config))
        requirePathFits(library.webUrl, segments)
        try {
          const { answer, bytesSent } = await upload(graph, fileOf(library, segments), parcel, context)
          // only one just looked up: with each delivery it would be kept for ever, and its address grow old
          if (!known) libraries.keep(key, library, Date.now() + libraryKeptMs)
          const { id, eTag } = objectOf(answer.text)
          return {
            path: `${library.webUrl}/${urlPath(segments)}`,
            bytesSent,
            answer: {
              status: answer.status,
              item_id: typeof id === 'string' ? id : undefined,
              etag: typeof eTag === 'string' ? eTag : undefined,
              request_id: String(answer.headers['request-id'] ?? '') || undefined,
            },
          }
        } catch (thrown) {
          // it may have been deleted and made anew: the next attempt looks it up
          if (isMissing(thrown)) libraries.forget(key)
          throw thrown
        }
      }),

    probe: (target, context) =>
      within(target, context, async (graph) => {
        // what is to be tried are the credentials, not a token they once gave
        tokens.forget(principalOf(target, clouds))
        const library = await findLibrary(graph, target.config)
        const { uploadUrl } = await beginSession(graph, fileOf(library, inFolder(target.config, ['.relay-probe'])))
        await giveUp(graph, uploadUrl)
      }),
  }
}

const principalOf = ({ config, credentials }: TeamsiteTarget, clouds: Record<CloudName, MicrosoftCloud>): EntraPrincipal => {
  const { authorityHost, scope } = clouds[config.cloud]
  return {
    tenantId: credentials.tenant_id,
    clientId: credentials.client_id,
    clientSecret: credentials.client_secret,
    authorityHost,
    scope,
  }
}

/** Under whose eyes a library was found, too: another application may not see it. */
const placeOf = ({ config, credentials }: TeamsiteTarget) =>
  createHash('sha256')
    .update(JSON.stringify([config.cloud, config.site_url, config.document_library, credentials]))
    .digest('base64')

const inFolder = ({ folder }: TeamsiteConfig, segments: string[]) => (folder ? [...folder.split('/'), ...segments] : segments)

const fileOf = ({ driveId }: Library, segments: string[]) => `/drives/${encodeURIComponent(driveId)}/root:/${urlPath(segments)}`

const upload = async (graph: CloudApi, file: string, parcel: Parcel, context: AttemptContext): Promise<Uploaded> => {
  if (parcel.sizeBytes > singleMaxBytes) return uploadInFragments(graph, file, parcel, context)
  const { signal, onProgress } = context
  const answer = await sendPieces(parcel, { pieceBytes: singleMaxBytes, signal, onProgress }, async ({ end, body }) => ({
    done: await graph.call(`${file}:/content?@microsoft.graph.conflictBehavior=replace`, {
      method: 'PUT',
      headers: { 'content-type': 'application/octet-stream', 'content-length': String(end) },
      body,
    }),
  }))
  return { answer, bytesSent: parcel.sizeBytes }
}
