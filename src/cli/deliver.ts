import { UserError } from '../base/errors.ts'
import { isId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import { createBulkRetries, type BulkRetryFilter } from '../delivery/bulk-retry.ts'
import { dateFrom, dateTo } from '../domain/date-range.ts'
import { findWorkspace } from '../workspace/administration.ts'
import type { Workspace } from '../workspace/workspaces.ts'
import { describeBulkRetry, makeBulkRetry, withBulkRetries, type BeginBulkRetry, type EndedBulkRetry } from './bulk-retry.ts'
import { findDestination } from './find-destination.ts'

/** What `relay deliver` is told. */
export interface DeliverOptions {
  /** `{userSlug}/{workspaceSlug}` */
  workspace: string
  /** Name or id. */
  destination: string
  /** Ids. All documents that the options select, if it is empty. */
  documents: string[]
  again?: boolean | undefined
  repo?: string | undefined
  /** Dates or times, for the receipt. */
  from?: string | undefined
  to?: string | undefined
  /** Dates or times, for the delivery. */
  deliveredFrom?: string | undefined
  deliveredTo?: string | undefined
  dryRun?: boolean | undefined
  /** Is told how far the bulk retry is. */
  onProgress(line: string): void
}

const dateOf = (option: string, schema: typeof dateFrom, text: string | undefined): Date | undefined => {
  const { success, data } = schema.safeParse(text)
  if (success) return data
  throw new UserError(`--${option} must be a date or a time, such as 2026-03-03 or 2026-03-03T10:00:00Z.`)
}

const filterOf = async (db: Database, workspace: Workspace, options: DeliverOptions): Promise<BulkRetryFilter> => {
  const { destination, documents, again, repo, from, to, deliveredFrom, deliveredTo } = options
  if (!again && (deliveredFrom ?? deliveredTo) !== undefined) throw new UserError('--delivered-from and --delivered-to need --again.')
  const stranger = documents.find((id) => !isId(id))
  if (stranger !== undefined) throw new UserError(`${stranger} is no id of a document. relay find lists documents with their ids.`)
  return {
    destinationId: (await findDestination(db, destination, workspace)).id,
    ...(again && { again }),
    ...(documents.length > 0 && { documentIds: documents }),
    repoId: repo,
    dateFrom: dateOf('from', dateFrom, from),
    dateTo: dateOf('to', dateTo, to),
    deliveredFrom: dateOf('delivered-from', dateFrom, deliveredFrom),
    deliveredTo: dateOf('delivered-to', dateTo, deliveredTo),
  }
}

/**
 * Delivers documents to a destination that was connected later, or again. A worker does it, and this waits for it.
 * @returns only the number of documents if it is a dry run
 * @throws `UserError` if there is no such workspace or destination, or no such document
 */
export const deliverDocuments = async (
  db: Database,
  begin: BeginBulkRetry,
  options: DeliverOptions,
): Promise<EndedBulkRetry | { matched_documents: number }> => {
  const workspace = await findWorkspace(db, options.workspace)
  const filter = await filterOf(db, workspace, options)
  const { matchedDocuments } = await createBulkRetries(db).count(workspace.id, 'deliver', filter)
  if (matchedDocuments === 0) {
    throw new UserError(
      options.again
        ? 'No document that matches has been delivered there.'
        : 'No document that matches was never planned for this destination. Add --again to deliver those that it has.',
    )
  }
  if (options.dryRun) return { matched_documents: matchedDocuments }
  return makeBulkRetry(db, begin, { workspace, action: 'deliver', filter, onProgress: options.onProgress })
}

/** `relay deliver`. */
export const deliver = (config: Config, log: Log, options: DeliverOptions) =>
  withBulkRetries(config, log, 'deliver', (db, begin) => deliverDocuments(db, begin, options))

/** Returns lines for people. */
export const describeDelivered = (result: EndedBulkRetry | { matched_documents: number }): string[] =>
  describeBulkRetry(
    result,
    'status' in result ? 'planned' : 'delivered',
    'the filter of the connection, a change or a deletion excludes them now.',
  )
