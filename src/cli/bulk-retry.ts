import { setTimeout as sleep } from 'node:timers/promises'
import { countOf } from '../base/count-of.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { systemActor } from '../db/audit.ts'
import type { Database } from '../db/database.ts'
import { createOutbox, type OutboxMessage } from '../db/outbox.ts'
import { withDatabase } from '../db/with-database.ts'
import { createBulkRetries, type BulkAction, type BulkOutcome, type BulkRetry, type BulkRetryFilter } from '../delivery/bulk-retry.ts'
import { openTemporal } from '../temporal/client.ts'
import { createLauncher } from '../temporal/launcher.ts'

/** Poll interval of a running bulk retry. */
const lookMs = 1_000
/** How long the command waits for the deliveries after the last document. A target that is down can take hours. */
const outcomeMs = 10_000

const present = ({
  id,
  action,
  status,
  matchedDocuments,
  retriedDocuments,
  skippedDocuments,
  retriedDeliveries,
  ...outcome
}: BulkRetry & BulkOutcome) => ({
  id,
  action,
  status,
  matched_documents: matchedDocuments,
  retried_documents: retriedDocuments,
  skipped_documents: skippedDocuments,
  retried_deliveries: retriedDeliveries,
  delivered_deliveries: outcome.deliveredDeliveries,
  failed_deliveries: outcome.failedDeliveries,
  open_deliveries: outcome.openDeliveries,
})

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
): Promise<Result> =>
  withDatabase(config, verb, async (db) => {
    const temporal = openTemporal(config)
    const launcher = createLauncher(temporal, createOutbox(db), log)
    try {
      return await run(db, (message) => launcher.sendAll([message]))
    } finally {
      await launcher.close()
      await temporal.close()
    }
  })

/** Says to people what became of the deliveries of a bulk retry. */
export const outcomeLinesOf = (result: EndedBulkRetry): string[] =>
  result.retried_deliveries === 0
    ? []
    : [
        `Of ${countOf(result.retried_deliveries, 'delivery', 'deliveries')}, ${result.delivered_deliveries} arrived, ${result.failed_deliveries} failed and ${result.open_deliveries} are open.`,
      ]
