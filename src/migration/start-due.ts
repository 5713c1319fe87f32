import type { DocumentMigrationInput } from '../../workflows/messages.ts'
import type { Database } from '../db/database.ts'
import { createOnItsOwn } from '../db/on-its-own.ts'

/** Creates a function that starts the workflow of every running migration. A workflow that is open stays as it is. @returns their number */
export const createStartMigrations =
  (db: Database, start: (input: DocumentMigrationInput) => Promise<void>, onItsOwn = createOnItsOwn().onItsOwn) =>
  async (): Promise<number> => {
    const running: { id: string; userSlug: string; workspaceSlug: string }[] = await db('document_migrations')
      .join('workspaces', 'workspaces.id', 'workspace_id')
      .select({ id: 'document_migrations.id', userSlug: 'user_slug', workspaceSlug: 'workspace_slug' })
      .where({ 'document_migrations.status': 'running' })
      .orderBy('document_migrations.id')
    for (const { id, userSlug, workspaceSlug } of running) {
      await onItsOwn('migrations', { migration_id: id }, () =>
        start({ documentMigrationId: id, workspace: `${userSlug}/${workspaceSlug}` }),
      )
    }
    return running.length
  }
