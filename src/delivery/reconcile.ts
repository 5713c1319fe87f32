import type { DocumentKey } from '../../workflows/ids.ts'
import type { BulkRetryInput } from '../../workflows/messages.ts'
import { countOf } from '../base/count-of.ts'
import type { Config } from '../config/config.ts'
import { systemActor } from '../db/audit.ts'
import type { Database } from '../db/database.ts'
import { noteDone } from '../db/duties.ts'
import { addMessages, type OutboxMessage, type StartBulkRetry } from '../db/outbox.ts'
import type { BulkRetries } from './bulk-retry.ts'
import { findOverdue, noteChecked, overdueAfterMs, pageSize, type Overdue } from './overdue.ts'
import { beginAgain } from './to-begin.ts'
import { transition, type DeliveryRef } from './transition.ts'

// The database is the record of what is open, and Temporal does the work. Temporal may lose its state or be restored from an older backup:
// the reconciler finds open deliveries on which no workflow works, which the dispatcher then begins again, and such bulk retries.

/** State of the workflow of open work, as Temporal knows it. */
export type WorkflowState =
  /** A workflow works on it, or will do so without help. */
  | { state: 'working' }
  /** The workflow of the delivery waits for a manual retry. */
  | { state: 'waiting' }
  /** An operator has paused it in Temporal. */
  | { state: 'paused' }
  /** No workflow is open, and none will be started. */
  | { state: 'missing' }
  /** The workers cannot continue the workflow. */
  | { state: 'stuck' }
  /** An operator has ended the workflow. */
  | { state: 'terminated' | 'cancelled'; closedAt: Date }

/** Temporal, as the reconciler uses it. @throws if Temporal does not answer */
export interface DeliveryWorkflows {
  findDeliveryWorkflow(document: DocumentKey, revision: number, destinationId: string): Promise<WorkflowState>
  findBulkRetryWorkflow(bulkRetry: BulkRetryInput): Promise<WorkflowState>
  /** Ends a workflow that is stuck, if it is still open. */
  terminateDelivery(document: DocumentKey, destinationId: string): Promise<void>
  terminateBulkRetry(bulkRetry: BulkRetryInput): Promise<void>
}

/** Result of a run of the reconciler, or of a dry run. */
export interface Reconciled {
  /** Overdue deliveries about which Temporal was asked. */
  checked: number
  /** Deliveries whose workflow was missing or stuck. */
  started: number
  /** Deliveries whose workflow waited for a manual retry that had been requested already. */
  retried: number
  /** Deliveries recorded as failed, because an operator has cancelled or terminated their workflow. */
  failed: number
  /** Deliveries recorded as cancelled, because their content is gone. */
  cancelled: number
  bulkRetriesStarted: number
  bulkRetriesCancelled: number
  /** False if the run ended at a limit. The next run continues. */
  complete: boolean
}

type Action = 'none' | 'pause' | 'start' | 'replace' | 'retry' | keyof typeof endedBy

/** What ends a delivery, by the action that records it. */
const endedBy = { terminated: 'workflow_terminated', cancelled: 'workflow_cancelled', erased: 'document_erased' } as const

export type ReconcileConfig = Pick<Config, 'RECONCILE_INTERVAL_MS'>

/** The duty of the reconciler, as the table `duties` names it. */
export const reconcileDuty = 'reconcile'

// Questions that Temporal is asked at a time.
const maxConcurrent = 20
// A workflow that is stuck is terminated before the dispatcher starts it again.
const terminationMs = 5_000

const bulkRetriesMax = 1_000
// Number of overdue deliveries in order after which a run ends; the next run continues. A run does not end while it finds deliveries that
// Temporal has lost.
const maxChecksInOrder = 2_000

/** Decides what a delivery needs that the database has as `pending` or `retrying`. */
export const decide = (delivery: Pick<Overdue, 'statusSince' | 'isContentKept'>, found: WorkflowState): Action => {
  if (found.state === 'working') return 'none'
  if (found.state === 'paused') return 'pause'
  if (!delivery.isContentKept) return 'erased'
  if (found.state === 'waiting') return 'retry'
  if (found.state === 'stuck') return 'replace'
  // A workflow that was ended before the delivery got its status belongs to the past: a later one has been lost.
  if (found.state === 'missing' || found.closedAt < delivery.statusSince) return 'start'
  return found.state
}

interface RunOptions {
  /** Only report what a run would do. */
  dryRun?: boolean
  signal?: AbortSignal
}

/** @param sendAll sends messages and waits for them. Messages that cannot be sent are left to the sweep */
export const createReconcile = (
  db: Database,
  workflows: DeliveryWorkflows,
  bulkRetries: Pick<BulkRetries, 'cancel'>,
  sendAll: (messages: OutboxMessage[]) => Promise<void>,
  config: ReconcileConfig,
  { ageMs = overdueAfterMs(config), maxInOrder = maxChecksInOrder } = {},
) => {
  const inGroups = async <T, R>(items: T[], ask: (item: T) => Promise<R>): Promise<R[]> => {
    const results: R[] = []
    for (let next = 0; next < items.length; next += maxConcurrent) {
      results.push(...(await Promise.all(items.slice(next, next + maxConcurrent).map(ask))))
    }
    return results
  }

  /** Applies the decisions about one page of deliveries. @returns the actions that were taken */
  const apply = (decided: { delivery: Overdue; action: Action }[]): Promise<Action[]> =>
    db.transaction(async (trx) => {
      const keyOf = ({ documentId, destinationId }: DeliveryRef) => `${documentId}/${destinationId}`
      const actionOf = new Map(decided.map(({ delivery, action }) => [keyOf(delivery), action]))
      const checked = await noteChecked(
        trx,
        decided.map(({ delivery, action }) => ({ ...delivery, isPaused: action === 'pause' })),
      )
      const withAction = (action: Action) => checked.filter((delivery) => actionOf.get(keyOf(delivery)) === action)
      for (const action of ['terminated', 'cancelled', 'erased'] as const) {
        const operation = action === 'erased' ? 'cancel' : 'endWorkflow'
        for (const delivery of withAction(action)) await transition(trx, operation, delivery, endedBy[action])
      }
      await beginAgain(trx, withAction('start'), 'delivery')
      await beginAgain(trx, withAction('replace'), 'delivery', terminationMs)
      await beginAgain(trx, withAction('retry'), 'retry')
      return checked.map((delivery) => actionOf.get(keyOf(delivery))!)
    })

  const reconcileDeliveries = async (result: Reconciled, { dryRun, signal }: RunOptions): Promise<void> => {
    let after: Overdue | undefined
    let inOrder = 0
    for (;;) {
      signal?.throwIfAborted()
      const page = await findOverdue(db, ageMs, after)
      const decided = await inGroups(page, async (delivery) => {
        const { document, revision, destinationId } = delivery
        return { delivery, action: decide(delivery, await workflows.findDeliveryWorkflow(document, revision, destinationId)) }
      })
      const actions = dryRun ? decided.map(({ action }) => action) : await apply(decided)
      if (!dryRun) {
        const stuck = decided.filter(({ action }) => action === 'replace')
        await inGroups(stuck, ({ delivery }) => workflows.terminateDelivery(delivery.document, delivery.destinationId))
      }
      const count = (action: Action) => actions.filter((each) => each === action).length
      result.checked += page.length
      result.started += count('start') + count('replace')
      result.retried += count('retry')
      result.failed += count('terminated') + count('cancelled')
      result.cancelled += count('erased')
      inOrder += page.length - actions.filter((each) => each !== 'none' && each !== 'pause').length
      if (page.length < pageSize) return
      if (inOrder >= maxInOrder) {
        result.complete = false
        return
      }
      after = page.at(-1)
    }
  }

  const reconcileBulkRetries = async (result: Reconciled, { dryRun, signal }: RunOptions): Promise<void> => {
    const { rows } = await db.raw<{ rows: BulkRetryInput[] }>(
      `
      select bulk_retries.id as "bulkRetryId", user_slug || '/' || workspace_slug as workspace
      from bulk_retries
      join workspaces on workspaces.id = workspace_id
      where bulk_retries.status = 'running'
        and bulk_retries.created_at <= now() - :ageMs::float8 * interval '1 millisecond'
        and not exists (
          select
          from outbox
          where key = 'bulk-retry/' || bulk_retries.id
        )
      order by bulk_retries.id
      limit :limit
      `,
      { ageMs, limit: bulkRetriesMax },
    )
    const found = await inGroups(rows, async (input) => ({ input, state: (await workflows.findBulkRetryWorkflow(input)).state }))
    for (const { input, state } of found) {
      signal?.throwIfAborted()
      if (state === 'missing' || state === 'stuck') {
        result.bulkRetriesStarted += 1
        const message: StartBulkRetry = { kind: 'startBulkRetry', input }
        if (dryRun) continue
        await db.transaction((trx) => addMessages(trx, [message]))
        if (state === 'stuck') await workflows.terminateBulkRetry(input)
        await sendAll([message])
      } else if (state === 'terminated' || state === 'cancelled') {
        result.bulkRetriesCancelled += 1
        if (!dryRun) await bulkRetries.cancel(input.bulkRetryId, systemActor)
      }
    }
  }

  /**
   * Asks Temporal about overdue deliveries and running bulk retries, and has those begun again on which no workflow works. Safe to run
   * twice at the same time: a delivery that has changed since it was found is left alone.
   */
  return async (options: RunOptions = {}): Promise<Reconciled> => {
    const result: Reconciled = {
      checked: 0,
      started: 0,
      retried: 0,
      failed: 0,
      cancelled: 0,
      bulkRetriesStarted: 0,
      bulkRetriesCancelled: 0,
      complete: true,
    }
    await reconcileDeliveries(result, options)
    await reconcileBulkRetries(result, options)
    if (!options.dryRun) await noteDone(db, reconcileDuty)
    return result
  }
}

export type Reconcile = ReturnType<typeof createReconcile>

/** Describes the result of a run for operators. */
export const describeReconciled = (result: Reconciled): string => {
  const bulkRetries = (count: number) => countOf(count, 'bulk retry', 'bulk retries')
  const changes: [count: number, text: string][] = [
    [result.started, `${result.started} started`],
    [result.retried, `${result.retried} retried`],
    [result.failed, `${result.failed} failed`],
    [result.cancelled, `${result.cancelled} cancelled`],
    [result.bulkRetriesStarted, `${bulkRetries(result.bulkRetriesStarted)} started`],
    [result.bulkRetriesCancelled, `${bulkRetries(result.bulkRetriesCancelled)} cancelled`],
  ]
  const listed = changes.flatMap(([count, text]) => (count > 0 ? [text] : []))
  const all = [`${countOf(result.checked, 'delivery', 'deliveries')} checked`, ...listed]
  return `${all.join(', ')}${result.complete ? '' : '; the next run continues'}`
}
