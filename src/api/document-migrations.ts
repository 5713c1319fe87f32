import { actorOf } from '../db/audit.ts'
import { resourceId } from '../http/filters.ts'
import { migrationFields, type DocumentMigrations } from '../migration/migrations.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { pageOfMany, pageQuery, toPage } from './pagination.ts'
import { idParams, one, resource, resourceOf } from './schemas.ts'

const documentMigration = resource('DocumentMigration', 'document_migration', migrationFields)
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
