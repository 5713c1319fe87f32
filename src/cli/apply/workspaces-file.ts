import { z } from 'zod'
import { workspaceNamePattern } from '../../base/workspace-name.ts'
import { reference } from '../../config/references.ts'
import { tiers } from '../../domain/bounds.ts'
import { connectionSettingsFields } from '../../domain/connection-settings.ts'
import { rfcPatchFields } from '../../domain/rfc-settings.ts'
import { settingsPatchFields } from '../../domain/settings.ts'
import { loginOf, upstreamFields, type StoredUpstream } from '../../domain/upstream.ts'
import { newEnrichment } from '../../enrichment/settings.ts'
import type { KeyDigest } from '../../security/api-keys.ts'
import {
  connectorTypeName,
  name,
  newConnection,
  eventSubscriptionValues,
  newKeyFields,
  newNotification,
  newRepository,
  openObject,
  repositoryStatus,
  upstream,
} from '../../workspace/inputs.ts'

export const references = z.record(z.string(), reference)

const email = z.email()
const member = z.strictObject({
  email: email.describe('The e-mail address, which identifies the member. Upper and lower case differ.'),
  name: name.optional().describe('The display name. If omitted, the e-mail address.'),
})
const apiKey = newKeyFields.extend({
  member: email.optional().describe('The e-mail address of the member to whom the key belongs. Audit log entries name this member.'),
  value: reference.optional().describe('The key, if it was generated outside of the relay. If omitted, the relay generates it.'),
})
const proxyUrl = upstreamFields.shape.proxy_url
const noProxyUrl = 'must be an http or https address of a proxy without user and password, or { env: NAME } or { file: PATH }'
const withoutLogin = z.string().refine((text) => proxyUrl.safeParse(text).success && loginOf(text) === 'none', noProxyUrl)
export const repository = newRepository.omit({ home_destination_id: true }).extend({
  home: z
    .string()
    .nullable()
    .default(null)
    .describe(
      'The name of the destination that keeps the contents of delivered documents in place of the relay. Null if the relay keeps them.',
    ),
  status: repositoryStatus.default('active'),
  upstream: upstreamFields
    .extend({
      proxy_url: z
        .union([withoutLogin, reference], { error: noProxyUrl })
        .nullable()
        .default(null)
        .describe(
          'The HTTP proxy through which the content server is asked, such as `http://outgoing.example:3128`, or a reference to its address ' +
            'with user and password. Null if there is none: the settings of the installation apply.',
        ),
      private_key: reference.optional().describe('A reference to the private key of the certificate, in PEM without a passphrase.'),
    })
    .nullable()
    .default(null)
    .describe(upstream.description!),
})
export const destinationInFile = z.strictObject({
  name,
  connector_type: connectorTypeName.describe('The connector type. It cannot be changed later.'),
  config: openObject.default({}).describe('The config of the connector, as a whole.'),
  credentials: references.default({}).describe('A reference for each value of the credentials.'),
})
export const connection = newConnection.omit({ repository_ids: true, destination_ids: true }).extend({
  repositories: newConnection.shape.repository_ids.describe(
    'The `repo_id` of each repository from which the connection forwards documents.',
  ),
  destinations: newConnection.shape.destination_ids.describe('The name of each destination to which the connection forwards documents.'),
  settings: connectionSettingsFields.prefault({}),
})
export const notification = newNotification.omit({ destination_id: true }).extend({
  destination: z.string().describe('The name of the destination that the notices are sent to, of the type `email` or `webhook`.'),
})
export const eventSubscription = eventSubscriptionValues.omit({ destination_id: true }).extend({
  destination: z.string().describe('The name of the destination that the events are sent to, of the type `webhook`.'),
})
export const enrichment = newEnrichment.omit({ repository_ids: true, credentials: true }).extend({
  repositories: z
    .array(z.string())
    .describe('The `repo_id` of each repository whose documents are enriched. Each may have several enrichments.'),
  credentials: references.default({}).meta({ masked: true }).describe('A reference for each value of the credentials of `http`.'),
})
const rfc = rfcPatchFields.extend({ credentials: z.strictObject({ user: reference, password: reference }).optional() })

const workspace = z.strictObject({
  slug: z
    .string()
    .regex(workspaceNamePattern, 'must be user/workspace, each part with 1 to 63 characters of a-z, 0-9 and "-"')
    .describe('`user/workspace`. A workspace that does not exist is created.'),
  tier: z.enum(tiers).optional().describe('The compliance tier keeps the audit log indefinitely. If omitted, the tier is not changed.'),
  settings: settingsPatchFields
    .extend({ rfc: rfc.nullable().optional() })
    .default({})
    .describe('The settings of the workspace. Omitted settings are not changed.'),
  members: z.array(member).default([]).describe('Persons whom API keys and audit log entries name.'),
  api_keys: z.array(apiKey).default([]).describe('API keys. Their values are never in the file.'),
  repositories: z.array(repository).default([]),
  destinations: z.array(destinationInFile).default([]),
  connections: z.array(connection).default([]),
  enrichments: z.array(enrichment).default([]),
  notifications: z.array(notification).default([]),
  event_subscriptions: z.array(eventSubscription).default([]),
})

/** Schema of the document that `relay apply` reads and `relay export` writes. */
export const workspacesFile = z.strictObject({ workspaces: z.array(workspace).min(1) })

type Parsed = z.output<typeof workspace>
export type WantedMember = z.output<typeof member>
export type WantedKey = Omit<z.output<typeof apiKey>, 'value'> & { value?: KeyDigest | undefined }
export type WantedRepository = Omit<z.output<typeof repository>, 'upstream'> & {
  upstream: (StoredUpstream & { private_key?: string | undefined }) | null
}
export type WantedDestination = Omit<z.output<typeof destinationInFile>, 'credentials'> & { credentials: Record<string, unknown> }
type WantedEnrichment = Omit<z.output<typeof enrichment>, 'credentials'> & { credentials: Record<string, unknown> }

/** A workspace of the file, with the values of its references. */
export interface WantedWorkspace extends Omit<Parsed, 'repositories' | 'destinations' | 'enrichments' | 'settings' | 'api_keys'> {
  settings: z.output<typeof settingsPatchFields>
  api_keys: WantedKey[]
  repositories: WantedRepository[]
  destinations: WantedDestination[]
  enrichments: WantedEnrichment[]
}
