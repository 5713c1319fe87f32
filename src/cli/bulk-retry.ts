import { setTimeout as sleep } from 'node:timers/promises'
import { countOf } from '../base/count-of.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { systemActor } from '../db/audit.ts'
import type { Database } from '../db/database.ts'
import type { OutboxMessage } from '../db/outbox.ts'
import { createBulkRetries, type BulkAction, type BulkOutcome, type BulkRetry, type BulkRetryFilter } from '../delivery/bulk-retry.ts'
import { snakeCased } from '../domain/casing.ts'
import { withLauncher } from './with-launcher.ts'

/** Poll interval of a running bulk retry. */
const lookMs = 1_000
/** How long the command waits for the deliveries after the last document. A target that is down can take hours. */
const outcomeMs = 10_000

const present = ({ id, action, status, matchedDocuments, retriedDocuments, skippedDocuments, ...outcome }: BulkRetry & BulkOutcome) => {
  const { retriedDeliveries, deliveredDeliveries, failedDeliveries, openDeliveries } = outcome
  const deliveries = { retriedDeliveries, deliveredDeliveries, failedDeliveries, openDeliveries }
  return snakeCased({ id, action, status, matchedDocuments, retriedDocuments, skippedDocuments, ...deliveries })
}

export type EndedBulkRetry = ReturnType<typeof present>

/** Waits until a bulk retry has ended, and for a moment until its deliveries have. */
const follow = async (look: () => Promise<EndedBulkRetry>, onProgress: (line: string) => void): Promise<EndedBulkRetry> => {
  let shown = -1
  let endedAt: number | undefined
  for (;;) {
    const seen = await look()
    if (seen.retried_documents !== shown) onProgress(`${seen.retried_documents} of ${seen.matched_documents} documents`)
    shown = seen.retried_documents
    if (seen.status !== 'running') {
      endedAt ??= Date.now()
      if (seen.open_deliveries === 0 || Date.now() - endedAt >= outcomeMs) return seen
    }
    await sleep(lookMs)
  }
}

interface Wanted {
  workspace: { id: string; userSlug: string; workspaceSlug: string }
  action: BulkAction
  filter: BulkRetryFilter
  /** Is told how far the bulk retry is. */
  onProgress(line: string): void
}

/** Starts the workflow of a bulk retry. */
export type BeginBulkRetry = (message: OutboxMessage) => Promise<void>

/** Starts a bulk retry, which a worker makes, and waits for it. */
export const makeBulkRetry = async (
  db: Database,
  begin: BeginBulkRetry,
  { workspace, action, filter, onProgress }: Wanted,
): Promise<EndedBulkRetry> => {
  const bulkRetries = createBulkRetries(db)
  const { bulkRetry, message } = await bulkRetries.start(workspace, action, filter, systemActor)
  await begin(message)
  return follow(async () => present(await bulkRetries.find(workspace.id, bulkRetry.id)), onProgress)
}

/** Runs a command that may start a bulk retry. */
export const withBulkRetries = <Result>(
  config: Config,
  log: Log,
  verb: string,
  run: (db: Database, begin: BeginBulkRetry) => Promise<Result>,
): Promise<Result> => withLauncher(config, log, verb, (db, launcher) => run(db, (message) => launcher.sendAll([message])))

/**
 * Says to people what became of a bulk retry.
 * @param verb what was done with the documents: `replayed`
 * @param left why documents were skipped
 */
export const describeBulkRetry = (result: EndedBulkRetry | { matched_documents: number }, verb: string, left: string): string[] => {
  const documents = (count: number) => countOf(count, 'document', 'documents')
  if (!('status' in result)) return [`${documents(result.matched_documents)} would be ${verb}.`]
  const { retried_documents: taken, matched_documents: matched, skipped_documents: skipped, retried_deliveries: deliveries } = result
  const { delivered_deliveries: arrived, failed_deliveries: failed, open_deliveries: open } = result
  return [
    `${taken} of ${documents(matched)} ${verb}${result.status === 'cancelled' ? ', then the bulk retry was cancelled' : ''}.`,
    ...(skipped === 0 ? [] : [`${documents(skipped)} left: ${left}`]),
    ...(deliveries === 0
      ? []
      : [`Of ${countOf(deliveries, 'delivery', 'deliveries')}, ${arrived} arrived, ${failed} failed and ${open} are open.`]),
  ]
}
