// Schemas of what administrators write: in requests of the management API, and in the file of `relay apply`.
import { z } from 'zod'
import { isPlainText } from '../base/text.ts'
import { connectorTypes } from '../connectors/index.ts'
import { homeAfterDaysBounds, quietSecondsBounds, silenceHoursBounds } from '../domain/bounds.ts'
import { codePages } from '../domain/code-pages.ts'
import { eventIdPattern, eventNames } from '../domain/events.ts'
import { incidentEventNames, incidentEvents } from '../domain/notices.ts'
import { upstreamFields } from '../domain/upstream.ts'
import { keyLevels } from '../security/levels.ts'

const nameMaxCharacters = 200
const repoIdMaxCharacters = 64
const idsMax = 1_000

export const name = z
  .string()
  .max(nameMaxCharacters)
  .regex(/\S/, { error: 'must not be empty', abort: true })
  .refine(isPlainText, 'must not contain line breaks, control characters, or characters that nobody sees')
  .describe('The display name.')

/** The status of repositories and certificates, and of connections in the responses of other resources. */
export const activity = z.enum(['active', 'inactive']).meta({ id: 'ActivityStatus' })

export const connectorTypeName = z.enum(connectorTypes).meta({ id: 'ConnectorType' })

/** A JSON object whose keys are not renamed, because another schema or system defines them. */
export const openObject = z.record(z.string(), z.unknown())

// Repositories

export const parameterOrder = z.enum(['fixed', 'any']).meta({ id: 'SignedParameterOrder' })
export const repositoryStatus = activity.describe('An inactive repository refuses all requests of the source system.')

const privateKeyMaxCharacters = 16_384

export const upstream = upstreamFields
  .extend({
    private_key: z
      .string()
      .max(privateKeyMaxCharacters)
      .optional()
      .describe(
        'The private key of the certificate, in PEM without a passphrase. Never returned. If omitted, the stored one is kept; it is required ' +
          'if `url`, `certificate`, `ca_certificate` or the address in `proxy_url` changes.',
      )
      .meta({ writeOnly: true }),
  })
  .meta({ id: 'UpstreamInput' })
  .nullable()
  .describe(
    'The content server that the source system used before. Documents that the relay does not have are fetched from there when they are ' +
      'first asked for, and kept. Null if there is none. Replaced as a whole.',
  )

const repositoryFields = {
  repo_id: z
    .string()
    .max(repoIdMaxCharacters)
    .regex(/^[\x21-\x7e]+$/, 'must consist of printable ASCII characters without spaces')
    .describe('The repository identifier in the source system (`contRep`).'),
  name,
  status: repositoryStatus,
  signature_verification: z
    .boolean()
    .describe('If true, requests of the source system without a valid signature are refused.')
    .default(false),
  signed_parameter_order: parameterOrder
    .describe(
      'The order of the signed parameters in a signed URL. `fixed`: contRep, docId, compId, docProt, scanPerformed, accessMode, authId, ' +
        'expiration, as far as a command has them; all known clients use it. `any`: for a client that uses another order; a signed URL is ' +
        'then easier to misuse.',
    )
    .default('fixed'),
  accepts_mcreate: z
    .boolean()
    .describe(
      'Whether `mCreate`, which creates several documents with one request, is accepted. A signature covers the id of the first document ' +
        'only, so a signed `mCreate` creates any others. Few source systems use it.',
    )
    .default(true),
  code_page: z
    .enum(codePages)
    .meta({ id: 'CodePage' })
    .describe(
      'The encoding of names that are not UTF-8: names of components, and the business object in headers. Systems without Unicode send such names.',
    )
    .default('windows-1252'),
  home_destination_id: z
    .string()
    .nullable()
    .describe(
      'The id of the destination that keeps the contents of delivered documents in place of the relay, of a type that can be read: not `email` or ' +
        '`webhook`. What the source system reads is fetched from there. Null if the relay keeps them.',
    )
    .default(null),
  home_after_days: z
    .int()
    .min(homeAfterDaysBounds.min)
    .max(homeAfterDaysBounds.max)
    .describe('How many days after its delivery to the home a content is removed from the relay.')
    .default(30),
  upstream: upstream.default(null),
}

/** A new repository is active. */
export const newRepository = z.strictObject(repositoryFields).omit({ status: true })

export const changedRepository = z.strictObject(repositoryFields).omit({ repo_id: true })

/** A repository as it is stored: without the secrets of its upstream. */
export const repositoryValues = z.strictObject({ ...repositoryFields, upstream: upstreamFields.nullable() })

// Connections

const ids = z.array(z.string()).min(1).max(idsMax)
/** The components of the API description that have the schema of the settings. */
export const settingsNames = { id: 'ConnectionSettings', requestId: 'ConnectionSettingsInput' }

// An open object here, so that invalid settings get 422 and not 400.
const connectionSettings = openObject
  .meta(settingsNames)
  .describe(
    'The settings of the connection: `on_resume`, `path_template` (`/docs/path-templates` of the relay explains its placeholders), `properties`, `filter`.',
  )

export const newConnection = z.strictObject({
  name,
  repository_ids: ids.describe('The ids of all repositories from which the connection forwards documents.'),
  destination_ids: ids.describe('The ids of all destinations to which the connection forwards documents.'),
  is_active: z.boolean().describe('An inactive connection holds the documents that arrive.').default(true),
  settings: connectionSettings.default({}),
})

export const previewedConnection = z.strictObject({
  repository_ids: ids.describe('The ids of the repositories from which the connection would forward documents.'),
  settings: connectionSettings.default({}),
})

// Notifications

const eventList = incidentEventNames.map((event) => `\`${event}\`: ${incidentEvents[event]}.`).join(' ')

const notificationEvents = z
  .array(z.enum(incidentEventNames).meta({ id: 'IncidentEvent' }))
  .min(1)
  .max(incidentEventNames.length)
  .describe(`The incidents that are announced, each at its beginning and at its end. ${eventList}`)

export const newNotification = z.strictObject({
  name,
  events: notificationEvents,
  destination_id: z.string().describe('The id of the destination that the notices are sent to, of the type `email` or `webhook`.'),
  quiet_seconds: z
    .int()
    .min(quietSecondsBounds.min)
    .max(quietSecondsBounds.max)
    .describe(
      'Time after a notice in which no other incident of the same subject is announced. One that is still open then is announced then.',
    )
    .default(900),
  silence_hours: z
    .int()
    .min(silenceHoursBounds.min)
    .max(silenceHoursBounds.max)
    .describe(
      'Hours without a request to a repository after which `source.silent` is announced. Choose more than a usual night or weekend.',
    )
    .default(72),
  is_active: z.boolean().describe('An inactive notification announces nothing.').default(true),
})

// Event subscriptions

export const eventName = z.enum(eventNames).meta({ id: 'EventName' })

const eventCursor = z
  .string()
  .regex(eventIdPattern, 'must be the id of an event, or next_cursor of a list of events')
  .meta({ examples: ['660b0a182de650000000a91c4000000002f17'] })

/** The values of a subscription that people set. */
export const eventSubscriptionValues = z.strictObject({
  name,
  events: z.array(eventName).min(1).max(eventNames.length).describe('The types of events that are sent.'),
  destination_id: z.string().describe('The id of the destination that the events are sent to, of the type `webhook`.'),
  is_active: z.boolean().describe('An inactive subscription sends nothing, and keeps its cursor.').default(true),
})

export const newEventSubscription = eventSubscriptionValues.extend({
  after: eventCursor.optional().describe('The event after which it begins. By default, what happens from now on is sent.'),
})

export const eventReplay = z.strictObject({
  after: eventCursor.optional().describe('The event after which to send again. By default from the oldest event that is kept.'),
})

// API keys

export const keyLevel = z.enum(keyLevels).meta({ id: 'KeyLevel' })

export const newKeyFields = z.strictObject({ name, level: keyLevel.describe('The level of the key.') })
