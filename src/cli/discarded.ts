import { UserError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import { createBulkRetries } from '../delivery/bulk-retry.ts'
import { snakeCased } from '../domain/casing.ts'
import { createDiscarded } from '../observe/discarded.ts'
import { findWorkspace, workspaceNameOf } from '../workspace/administration.ts'
import { createWorkspaces } from '../workspace/workspaces.ts'
import { describeBulkRetry, makeBulkRetry, withBulkRetries, type BeginBulkRetry, type EndedBulkRetry } from './bulk-retry.ts'
import { cellOf, tableOf } from './output.ts'

/** Repositories of each workspace that `relay discarded list` lists. */
const listedMax = 100

/** `relay discarded list`: the repositories with discarded documents that need attention, of one workspace or of all. */
export const listDiscarded = async (db: Database, name: string | undefined) => {
  const workspaces = name === undefined ? await createWorkspaces(db).list() : [await findWorkspace(db, name)]
  const groups = []
  for (const workspace of workspaces) {
    const { items } = await createDiscarded(db).list(workspace.id, { page: 1, perPage: listedMax })
    const shown = items.map(({ repoId, isConnected, documents, newestAt }) => ({ repoId, isConnected, documents, newestAt }))
    groups.push(...shown.map((group) => ({ workspace: workspaceNameOf(workspace), ...group })))
  }
  return snakeCased(groups)
}

/** Returns a table for people. */
export const describeDiscarded = (groups: Awaited<ReturnType<typeof listDiscarded>>): string[] => {
  if (groups.length === 0) return ['No discarded document needs attention.']
  return tableOf(
    ['WORKSPACE', 'REPOSITORY', 'DOCUMENTS', 'NEWEST (UTC)', 'CONNECTED'],
    groups.map((group) => [
      group.workspace,
      group.repo_id,
      String(group.documents),
      cellOf(group.newest_at),
      group.is_connected ? 'yes' : 'no',
    ]),
  )
}

interface Treatment {
  action: 'replay' | 'acknowledge'
  workspace: string
  repoId: string
  dryRun?: boolean | undefined
  /** Is told how far the bulk retry is. */
  onProgress(line: string): void
}

/**
 * Replays the requests of the discarded documents of a repository, or acknowledges the documents. A worker does it, and this waits for it.
 * @param begin starts the workflow
 * @returns only the number of documents if it is a dry run
 * @throws `UserError` if there is no such workspace or no such document, or if a replay would be discarded again
 */
export const treatDiscarded = async (
  db: Database,
  begin: BeginBulkRetry,
  { action, workspace: name, repoId, dryRun = false, onProgress }: Treatment,
): Promise<EndedBulkRetry | { matched_documents: number }> => {
  const workspace = await findWorkspace(db, name)
  const { matchedDocuments } = await createBulkRetries(db).count(workspace.id, action, { repoId })
  if (matchedDocuments === 0) throw new UserError(`Repository ${repoId} of ${name} has no discarded document that needs attention.`)
  if (dryRun) return { matched_documents: matchedDocuments }
  if (action === 'replay' && !(await createDiscarded(db).isConnected(workspace.id, repoId))) {
    throw new UserError(`No connection leads from repository ${repoId} to a destination. Create a connection first.`)
  }
  return makeBulkRetry(db, begin, { workspace, action, filter: { repoId }, onProgress })
}

/** `relay discarded replay` and `relay discarded acknowledge`. */
export const treatDiscardedOf = (config: Config, log: Log, treatment: Treatment) =>
  withBulkRetries(config, log, 'discarded', (db, begin) => treatDiscarded(db, begin, treatment))

/** Returns lines for people. */
export const describeTreated = (action: 'replay' | 'acknowledge', result: EndedBulkRetry | { matched_documents: number }): string[] =>
  describeBulkRetry(
    result,
    action === 'replay' ? 'replayed' : 'acknowledged',
    'the replay was refused, or the request or its body is no longer stored. The source system has to send them again.',
  )
