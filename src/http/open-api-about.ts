import type { OpenApi } from './open-api.ts'

const description = `Takes documents from an enterprise source system and delivers each of them to every wired destination.

**Workspaces.** Everything lies in a workspace, \`{userSlug}/{workspaceSlug}\`, which is part of every address.

**Keys.** Every request carries \`Authorization: Bearer <API key>\`. A key is of one workspace and one level: a \`viewer\` reads everything
but keys; a \`member\` also creates and changes destinations, repositories and connections, tests destinations and retries documents; an
\`admin\` may do all. The level an operation needs is its \`x-required-level\`, the audit event that its success is, its \`x-audit-event\`.

**Conventions.** Ids are opaque strings, times ISO 8601 in UTC. Lists come in pages of \`per_page\` rows, 25 unless told otherwise and 100 at
most. Unknown query parameters and body attributes are refused. New attributes may appear in answers: ignore those you do not know.

**Refusals** have one envelope, \`{ "error": { "code", "message", "request_id", "details" } }\`; programs decide by \`code\`. Every answer
carries the id of its request in \`x-relay-request-id\`. An unknown address is 404, and a method that an address does not have 405.

**Other surfaces** are not described here: the receiver (\`/receiver/{userSlug}/{workspaceSlug}\`) speaks the content-server protocol with the
source system, the bridge (\`POST /bridge/{userSlug}/{workspaceSlug}/rfc/{FUNCTION}\`) calls functions of it for a key of level \`member\`, and
\`/healthz\`, \`/readyz\` and \`/metrics\` answer load balancers and Prometheus without a key.`

/** What the API's document says before the first operation. */
export const aboutTheApi: Pick<OpenApi, 'info' | 'servers' | 'security'> = {
  info: {
    title: 'Document Relay',
    // the version of package.json; a test holds the two together
    version: '0.1.0',
    description,
    license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
  },
  servers: [
    {
      url: '/api/{userSlug}/{workspaceSlug}',
      description: 'A workspace of this installation',
      variables: {
        userSlug: { default: 'acme', description: 'The owner of the workspace' },
        workspaceSlug: { default: 'invoices', description: 'The workspace' },
      },
    },
  ],
  security: [{ apiKey: [] }],
}
