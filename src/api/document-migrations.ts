import { z } from 'zod'
import { actorOf } from '../db/audit.ts'
import { migrationModes, migrationStatuses } from '../domain/document-migration.ts'
import type { DocumentMigrations } from '../migration/migrations.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { pageOfMany, pageQuery, toPage } from './pagination.ts'
import { idParams, one, resource, resourceId, resourceOf, timestamp } from './schemas.ts'

const list = z
  .object({
    name: z.string().describe('The name of the file.'),
    sha256: z.string().describe('Of the file.'),
    rows: z.int().describe('Rows of the repository.'),
    other_rows: z.int().describe('Rows of other repositories, which were left out.'),
  })
  .meta({ id: 'LinkList' })

const attributes = z.object({
  repository_id: z.string(),
  repo_id: z.string(),
  mode: z
    .enum(migrationModes)
    .meta({ id: 'DocumentMigrationMode' })
    .describe('`copy`: documents that are not here are fetched from the upstream. `check`: they are looked for only.'),
  status: z.enum(migrationStatuses).meta({ id: 'DocumentMigrationStatus' }),
  documents_per_minute: z.int().nullable().describe('Null if there is no limit.'),
  lists: z.array(list).describe('The exports of link tables.'),
  rows: z.int().describe('Rows of the repository in all lists.'),
  found: z.int().describe('Rows whose document the upstream has, of a migration that only checks.'),
  copied: z.int().describe('Rows whose document was fetched and kept.'),
  equal: z.int().describe('Rows whose document is here as the upstream has it.'),
  missing: z.int().describe('Rows whose document neither has.'),
  different: z.int().describe('Rows whose document the source system has changed here, so that it was not fetched again.'),
  damaged: z.int().describe('Rows whose document the upstream has and does not deliver whole.'),
  failed: z.int().describe('Rows whose document the relay does not accept, such as one that is too large.'),
  copied_bytes: z.int(),
  waiting_reason: z.string().nullable().describe('Why it does not advance, such as an upstream that does not answer.'),
  created_at: timestamp,
  ended_at: timestamp.nullable(),
})
const documentMigration = resource('DocumentMigration', 'document_migration', attributes)
const present = resourceOf('document_migration')

const changes = {
  pause: {
    summary: 'Pause a migration',
    description: 'Stops the migration before its next documents.',
    conflict: 'The migration does not run.',
  },
  resume: {
    summary: 'Resume a migration',
    description: 'Continues a paused migration, within 15 seconds.',
    conflict: 'The migration is not paused.',
  },
  cancel: {
    summary: 'Cancel a migration',
    description: 'Ends the migration before its next documents. What it has copied stays.',
    conflict: 'The migration has already ended.',
  },
} as const
const pastTense = { pause: 'paused', resume: 'resumed', cancel: 'cancelled' } as const

export const documentMigrationEndpoints = ({
  documentMigrations,
}: {
  documentMigrations: Pick<DocumentMigrations, 'find' | 'list' | 'pause' | 'resume' | 'cancel'>
}): Endpoint[] => [
  endpoint({
    method: 'GET',
    path: '/document-migrations',
    level: 'viewer',
    summary: 'List migrations of documents',
    description:
      'Returns the migrations from the upstreams of repositories with their progress, newest first. `relay migrate-documents` starts them, because it reads the lists.',
    query: pageQuery.extend({ repository_id: resourceId.optional().describe('Only migrations into this repository.') }),
    response: pageOfMany(documentMigration),
    handle: async ({ query }, { workspaceId }) => toPage(await documentMigrations.list(workspaceId, query), query, present),
  }),

  endpoint({
    method: 'GET',
    path: '/document-migrations/:id',
    level: 'viewer',
    summary: 'Retrieve a migration of documents',
    description: 'Shows the progress of a migration, and how many rows of its lists have each verdict.',
    params: idParams,
    response: one(documentMigration),
    handle: async ({ params }, { workspaceId }) => ({ data: present(await documentMigrations.find(workspaceId, params.id)) }),
  }),

  ...(['pause', 'resume', 'cancel'] as const).map((verb) =>
    endpoint({
      method: 'POST',
      path: `/document-migrations/:id/${verb}`,
      level: 'admin',
      audit: `document_migration.${pastTense[verb]}`,
      ...changes[verb],
      params: idParams,
      response: one(documentMigration),
      handle: async ({ params: { id } }, { workspaceId, actor }) => ({
        data: present(await documentMigrations[verb]({ workspaceId, id, actor: actorOf(actor) })),
      }),
    }),
  ),
]
