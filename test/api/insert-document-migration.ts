import { newId } from '../../src/base/ids.ts'
import type { Database } from '../../src/db/database.ts'

/** Inserts a migration of ten rows, of which four have a verdict. @returns its id */
export const insertDocumentMigration = async (
  db: Database,
  workspaceId: string,
  repositoryId: string,
  status: 'running' | 'paused' = 'running',
): Promise<string> => {
  const id = newId()
  const lists = JSON.stringify([{ name: 'TOA01.csv', sha256: 'ab'.repeat(32), rows: 10, otherRows: 0 }])
  const { repo_id: repoId }: { repo_id: string } = await db('repositories').where({ id: repositoryId }).first('repo_id')
  await db('document_migrations').insert({
    id,
    workspace_id: workspaceId,
    repository_id: repositoryId,
    repo_id: repoId,
    upstream_url: 'https://archive.example/archive',
    upstream_cont_rep: 'Z1',
    mode: 'copy',
    status,
    lists,
    rows: 10,
    copied: 4,
  })
  return id
}
