import { countOf } from '../base/count-of.ts'
import { UserError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { remedyFor } from '../connectors/error-codes.ts'
import type { Database } from '../db/database.ts'
import { createBulkRetries } from '../delivery/bulk-retry.ts'
import { snakeCased } from '../domain/casing.ts'
import { noErrorCode } from '../domain/delivery-states.ts'
import { createFailures } from '../observe/failures.ts'
import { findWorkspace, workspaceNameOf } from '../workspace/administration.ts'
import { createWorkspaces } from '../workspace/workspaces.ts'
import { describeBulkRetry, makeBulkRetry, withBulkRetries, type BeginBulkRetry, type EndedBulkRetry } from './bulk-retry.ts'
import { findDestination } from './find-destination.ts'
import { cellOf } from './output.ts'

/** Groups of each workspace and status that `relay failures` lists. */
const listedMax = 100

/** What is retried by itself stands below what needs a person. */
const listedStatuses = ['failed', 'retrying'] as const

/** `relay failures`: the failed deliveries that need attention and those that are retried, by destination and error, of one workspace or of all. */
export const listFailures = async (db: Database, name: string | undefined) => {
  const workspaces = name === undefined ? await createWorkspaces(db).list() : [await findWorkspace(db, name)]
  const groups = []
  for (const workspace of workspaces) {
    for (const status of listedStatuses) {
      const { items } = await createFailures(db).list(workspace.id, { status, page: 1, perPage: listedMax })
      groups.push(
        ...items.map(({ destinationId, destinationName, errorCode, lastMessage, documents: deliveries, oldestAt, newestAt }) => ({
          workspace: workspaceNameOf(workspace),
          status,
          destinationId,
          destinationName,
          errorCode,
          lastMessage,
          deliveries,
          oldestAt,
          newestAt,
          remedy: remedyFor(errorCode, destinationName, status === 'failed' ? 'group' : 'retried'),
        })),
      )
    }
  }
  return snakeCased(groups)
}

/** Returns a word as a shell reads it. */
const shellWord = (text: string): string => (/^[\w./@-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`)

/** Returns lines for people: what has failed, why, what to do, and the command that retries it. */
export const describeFailures = (groups: Awaited<ReturnType<typeof listFailures>>): string[] => {
  if (groups.length === 0) return ['No failed delivery needs attention, and none is retried.']
  return groups.flatMap((group) => {
    const { status, workspace, destination_name: name, error_code: code } = group
    const deliveries = countOf(group.deliveries, 'delivery', 'deliveries')
    const error = code === null ? 'without an error code' : `with ${code}`
    const options = `--workspace ${workspace} --destination ${shellWord(name)} --error ${code ?? noErrorCode}`
    return [
      `${workspace}: ${deliveries} to ${name} ${status === 'failed' ? 'failed' : 'retried'} ${error}, the latest at ${cellOf(group.newest_at)} UTC`,
      ...(group.last_message === null ? [] : [`  ${group.last_message}`]),
      `  What to do: ${group.remedy}`,
      ...(status === 'failed' ? [`  relay retry ${options}`] : []),
    ]
  })
}

interface Wanted {
  workspace?: string | undefined
  /** Name or id. */
  destination: string
  /** Code of the last error, or `none`. */
  error?: string | undefined
  dryRun?: boolean | undefined
  /** Is told how far the bulk retry is. */
  onProgress(line: string): void
}

/**
 * Retries the failed deliveries to a destination. A worker does it, and this waits for it.
 * @param begin starts the workflow
 * @returns only the number of documents if it is a dry run
 * @throws `UserError` if there is no such workspace, destination or failed delivery
 */
export const retryDestination = async (
  db: Database,
  begin: BeginBulkRetry,
  { workspace: name, destination, error: errorCode, dryRun = false, onProgress }: Wanted,
): Promise<EndedBulkRetry | { matched_documents: number }> => {
  const found = await findDestination(db, destination, name === undefined ? undefined : await findWorkspace(db, name))
  const filter = { destinationId: found.id, errorCode }
  const { matchedDocuments } = await createBulkRetries(db).count(found.workspace.id, 'retry', filter)
  if (matchedDocuments === 0) {
    const error = errorCode === undefined ? '' : errorCode === noErrorCode ? ' without an error code' : ` with ${errorCode}`
    throw new UserError(`No delivery to ${found.name} that needs attention has failed${error}. relay failures lists what has.`)
  }
  if (dryRun) return { matched_documents: matchedDocuments }
  return makeBulkRetry(db, begin, { workspace: found.workspace, action: 'retry', filter, onProgress })
}

/** `relay retry --destination`. */
export const retryDestinationOf = (config: Config, log: Log, wanted: Wanted) =>
  withBulkRetries(config, log, 'retry', (db, begin) => retryDestination(db, begin, wanted))

/** Returns lines for people. */
export const describeRetried = (result: EndedBulkRetry | { matched_documents: number }): string[] =>
  describeBulkRetry(result, 'retried', 'somebody has retried, acknowledged or erased them meanwhile.')
