import { version } from '../../base/version.ts'

const description = `Document Relay receives documents from an enterprise source system and delivers each document to
every connected destination.

**Workspaces.** Every resource belongs to a workspace, \`{userSlug}/{workspaceSlug}\`. Both segments are part of every
path.

**API keys.** Send \`Authorization: Bearer <API key>\` with every request. A key belongs to one workspace and has one
level. A \`viewer\` key reads everything except API keys. A \`member\` key also creates and changes destinations,
repositories, connections and notifications, tests destinations and retries documents. An \`admin\` key can do everything.
\`x-required-level\` is the level that an operation requires. \`x-audit-event\` lists the audit events that a successful
call can record.

**Conventions.** Ids are opaque strings. Timestamps are ISO 8601 in UTC. Lists are paginated: \`per_page\` is 25 by
default and at most 100. Unknown query parameters and unknown body attributes are rejected. Responses may gain
attributes and values at any time; ignore attributes that you do not know, and expect texts other than those in
\`x-extensible-enum\`.

**Errors.** Every error has the form \`{ "error": { "code", "message", "request_id", "doc_url", "details" } }\`. Programs
should decide by \`code\`; \`doc_url\` says what to do about it. Every response carries its request id in the header
\`x-relay-request-id\`, and the version of the relay in \`x-relay-version\`. The answer to an unknown path is 404, and to a
method that a path does not support 405.

**Other interfaces** are not part of this reference. The receiver (\`/receiver/{userSlug}/{workspaceSlug}\`) implements
the content server protocol for the source system. The bridge
(\`POST /bridge/{userSlug}/{workspaceSlug}/rfc/{FUNCTION}\`) calls a function of the source system and requires a key of
level \`member\`. \`/healthz\` serves load balancers and requires no key.`

/** What the operations of a tag are about. A test refuses a tag without a description. */
export const tagDescriptions: Record<string, string> = {
  destinations: 'Targets to which documents are delivered.',
  repositories: 'Sources of documents, with the certificates that verify their signatures.',
  connections: 'Which repositories lead to which destinations, with filters and paths.',
  'connector-types': 'What each type of destination needs, and what it can do.',
  enrichments: 'Business data that is fetched for documents.',
  documents: 'Documents, their content, their deliveries and their business objects.',
  notifications: 'Incidents that are announced to operators.',
  events: 'What happens to documents, in order and without a gap.',
  'event-subscriptions': 'Webhooks to which events are sent.',
  failures: 'Failed deliveries, grouped by destination and error.',
  discarded: 'Documents that were discarded for lack of a connection.',
  'legal-holds': 'Documents that nothing removes.',
  'bulk-retries': 'Retries of many documents, in the background.',
  'document-migrations': 'Documents of an old content server that are copied by lists of the source system.',
  'api-keys': 'Keys for this API.',
  settings: 'Settings of the workspace.',
  requests: 'Captured requests of the source system.',
  'audit-logs': 'Who changed what.',
  manifests: 'What was received on a day and where it is: a signed file for each day.',
  stats: 'Counts and durations.',
  relay: 'Whether deliveries are made at present.',
}

/** The path of a workspace. */
export const workspacePath = '/api/{userSlug}/{workspaceSlug}'

/** The parts of the OpenAPI document that do not depend on the endpoints. */
export const apiInfo = {
  info: {
    title: 'Document Relay',
    version,
    description,
    contact: { name: 'The operator of the relay' },
    license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
  },
  servers: [
    {
      // `/openapi.json` of an installation has its own address.
      url: `https://relay.example${workspacePath}`,
      description: 'A workspace of an installation',
      variables: {
        userSlug: { default: 'acme', description: 'The owner of the workspace' },
        workspaceSlug: { default: 'invoices', description: 'The workspace' },
      },
    },
  ],
  security: [{ bearer: [] as string[] }],
}
