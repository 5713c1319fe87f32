import type { DocumentKey } from '../../workflows/ids.ts'
import type { BulkRetryInput } from '../../workflows/messages.ts'
import type { DeliveryTermsConfig } from '../archive/delivery-input.ts'
import { countOf } from '../base/count-of.ts'
import type { Config } from '../config/config.ts'
import { systemActor } from '../db/audit.ts'
import type { Database, Transaction } from '../db/database.ts'
import { noteDone } from '../db/duties.ts'
import { createOnItsOwn } from '../db/on-its-own.ts'
import { addMessages, type OutboxMessage, type StartBulkRetry } from '../db/outbox.ts'
import type { BulkRetries } from './bulk-retry.ts'
import { findOverdue, noteChecked, overdueAfterMs, pageSize, type Overdue } from './overdue.ts'
import { nextStuckRun, suspicionOf, type RunProgress } from './stuck-run.ts'
import { beginAgain } from './to-begin.ts'
import { transition, type DeliveryRef } from './transition.ts'
import { wakeDeliveries } from './wake.ts'

// The database is the record of what is open, and Temporal does the work. Temporal may lose its state or be restored from an older backup:
// the reconciler finds open deliveries on which no workflow works, which the dispatcher then begins again, and such bulk retries. A server that is
// slow looks like one that has lost something: what only waits for the server is at work, a workflow that sleeps is called, and only one whose
// tasks fail is terminated: by its run, and after two checks in a row have found it at the same place.

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
  /** The workflow of the delivery sleeps until it is called. */
  | { state: 'asleep' }
  /** The workers cannot continue the workflow. */
  | ({ state: 'stuck' } & RunProgress)
  /** The workflow was ended in Temporal. */
  | { state: 'terminated' | 'cancelled'; runId: string; closedAt: Date }

/** Temporal, as the reconciler uses it. @throws if Temporal does not answer */
export interface DeliveryWorkflows {
  findDeliveryWorkflow(document: DocumentKey, revision: number, destinationId: string): Promise<WorkflowState>
  findBulkRetryWorkflow(bulkRetry: BulkRetryInput): Promise<WorkflowState>
  /** Ends a run that is stuck, if it is still open. */
  terminateDelivery(document: DocumentKey, destinationId: string, runId: string): Promise<void>
  terminateBulkRetry(bulkRetry: BulkRetryInput, runId: string): Promise<void>
}

/** Result of a run of the reconciler, or of a dry run. */
export interface Reconciled {
  /** Overdue deliveries about which Temporal was asked. */
  checked: number
  /** Deliveries whose workflow was missing, was stuck and is replaced, or slept and was called. */
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

/** `suspect`: notes what the next check has to find again. `replace`: terminates the run, and has another one started. */
type Action = 'none' | 'pause' | 'suspect' | 'wake' | 'start' | 'replace' | 'retry' | keyof typeof endedBy

/** What ends a delivery, by the action that records it. */
const endedBy = {
  terminated: 'workflow_terminated',
  cancelled: 'workflow_cancelled',
  erased: 'document_erased',
  removed: 'content_removed',
} as const

export type ReconcileConfig = Pick<Config, 'RECONCILE_INTERVAL_MS'> & DeliveryTermsConfig

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
export const decide = (
  delivery: Pick<Overdue, 'statusSince' | 'isContentKept' | 'isErased' | 'stuckRun'>,
  found: WorkflowState,
): Action => {
  if (found.state === 'working') return 'none'
  if (found.state === 'paused') return 'pause'
  if (!delivery.isContentKept) return delivery.isErased ? 'erased' : 'removed'
  if (found.state === 'waiting') return 'retry'
  if (found.state === 'asleep') return 'wake'
  if (found.state === 'stuck') return delivery.stuckRun === suspicionOf(found) ? 'replace' : 'suspect'
  // A workflow that was ended before the delivery got its status belongs to the past: a later one has been lost. So has the successor of one that
  // the reconciler has terminated.
  if (found.state === 'missing' || found.closedAt < delivery.statusSince || found.runId === delivery.stuckRun) return 'start'
  return found.state
}

/** Returns what a check notes in `stuck_run`. */
const noteOf = (action: Action | BulkRetryAction, found: WorkflowState): string | null => {
  if (found.state !== 'stuck') return null
  if (action === 'suspect') return suspicionOf(found)
  return action === 'replace' ? found.runId : null
}

interface Decided {
  delivery: Overdue
  found: WorkflowState
  action: Action
}

interface RunningBulkRetry extends BulkRetryInput {
  stuckRun: string | null
  /** True if `stuckRun` was noted so long ago that it may be found again. */
  isDue: boolean | null
}

type BulkRetryAction = Extract<Action, 'none' | 'suspect' | 'start' | 'replace'> | 'cancel'

const decideBulkRetry = ({ stuckRun, isDue }: Pick<RunningBulkRetry, 'stuckRun' | 'isDue'>, found: WorkflowState): BulkRetryAction => {
  if (found.state === 'missing') return 'start'
  if (found.state === 'stuck' && stuckRun !== suspicionOf(found)) return 'suspect'
  if (found.state === 'stuck' && isDue) return 'replace'
  if (found.state === 'terminated' && found.runId === stuckRun) return 'start'
  return found.state === 'terminated' || found.state === 'cancelled' ? 'cancel' : 'none'
}

/**
 * Notes the check of a bulk retry, and adds messages, unless the bulk retry has ended or another run of the reconciler has noted something since.
 * @returns false if so
 */
const noteBulkRetry = async (
  trx: Transaction,
  { input, stuckRun, next }: { input: BulkRetryInput; stuckRun: string | null; next: string | null },
  messages: OutboxMessage[],
): Promise<boolean> => {
  const { rows } = await trx.raw<{ rows: unknown[] }>(
    `
    update bulk_retries
    set checked_at = clock_timestamp(), stuck_run = ${nextStuckRun(':next::text')}
    where id = :bulkRetryId
      and status = 'running'
      and stuck_run is not distinct from :stuckRun::text
    returning id
    `,
    { bulkRetryId: input.bulkRetryId, stuckRun, next },
  )
  if (rows.length === 0) return false
  await addMessages(trx, messages)
  return true
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
  { ageMs = overdueAfterMs(config), maxInOrder = maxChecksInOrder, onItsOwn = createOnItsOwn().onItsOwn } = {},
) => {
  /** Asks about several at a time, each on its own. @returns the answers, without those that were passed over */
  const inGroups = async <T, R extends object>(
    items: T[],
    subjectOf: (item: T) => Record<string, string>,
    ask: (item: T) => Promise<R>,
  ): Promise<R[]> => {
    const results: R[] = []
    for (let next = 0; next < items.length; next += maxConcurrent) {
      const group = items.slice(next, next + maxConcurrent)
      const answers = await Promise.all(group.map((item) => onItsOwn('reconcile', subjectOf(item), () => ask(item))))
      results.push(...answers.filter((answer) => answer !== undefined))
    }
    return results
  }

  const subjectOf = ({ documentId, destinationId }: DeliveryRef) => ({ document_id: documentId, destination_id: destinationId })

  /** Applies the decisions about one page together or, if that fails, each on its own. */
  const applyAll = async (decided: Decided[]): Promise<Decided[]> => {
    try {
      return await apply(decided)
    } catch (thrown) {
      if (decided.length === 0) throw thrown
      const applied: Decided[] = []
      for (const each of decided) {
        applied.push(...((await onItsOwn('reconcile', subjectOf(each.delivery), () => apply([each]))) ?? []))
      }
      return applied
    }
  }

  /**
   * Notes the decisions about one page of deliveries, and then does in Temporal what they demand.
   * @returns the decisions that were noted. The others are void: their deliveries have changed since they were found
   */
  const apply = async (decided: Decided[]): Promise<Decided[]> => {
    const { noted, messages } = await note(decided)
    const replaced = noted.filter(({ action }) => action === 'replace')
    await inGroups(
      replaced,
      ({ delivery }) => subjectOf(delivery),
      async ({ delivery: { document, destinationId }, found }) => {
        if (found.state === 'stuck') await workflows.terminateDelivery(document, destinationId, found.runId)
        return {}
      },
    )
    await sendAll(messages)
    return noted
  }

  const note = (decided: Decided[]): Promise<{ noted: Decided[]; messages: OutboxMessage[] }> =>
    db.transaction(async (trx) => {
      const keyOf = ({ documentId, destinationId }: DeliveryRef) => `${documentId}/${destinationId}`
      const decisionOf = new Map(decided.map((each) => [keyOf(each.delivery), each]))
      const checked = await noteChecked(
        trx,
        decided.map(({ delivery, found, action }) => ({ ...delivery, isPaused: action === 'pause', stuckRun: noteOf(action, found) })),
      )
      const noted = checked.map((delivery) => decisionOf.get(keyOf(delivery))!)
      const withAction = (action: Action): DeliveryRef[] => noted.filter((each) => each.action === action).map(({ delivery }) => delivery)
      for (const action of ['terminated', 'cancelled', 'erased', 'removed'] as const) {
        const operation = action === 'erased' || action === 'removed' ? 'cancel' : 'endWorkflow'
        for (const delivery of withAction(action)) await transition(trx, operation, delivery, endedBy[action])
      }
      await beginAgain(trx, withAction('start'), 'delivery')
      await beginAgain(trx, withAction('replace'), 'delivery', terminationMs)
      await beginAgain(trx, withAction('retry'), 'retry')
      return { noted, messages: await wakeDeliveries(trx, withAction('wake'), config) }
    })

  const reconcileDeliveries = async (result: Reconciled, { dryRun, signal }: RunOptions): Promise<void> => {
    let after: Overdue | undefined
    let inOrder = 0
    for (;;) {
      signal?.throwIfAborted()
      const page = await findOverdue(db, ageMs, after)
      const decided = await inGroups(page, subjectOf, async (delivery) => {
        const { document, revision, destinationId } = delivery
        const found = await workflows.findDeliveryWorkflow(document, revision, destinationId)
        return { delivery, found, action: decide(delivery, found) }
      })
      const actions = (dryRun ? decided : await applyAll(decided)).map(({ action }) => action)
      const count = (action: Action) => actions.filter((each) => each === action).length
      result.checked += page.length
      result.started += count('start') + count('replace') + count('wake')
      result.retried += count('retry')
      result.failed += count('terminated') + count('cancelled')
      result.cancelled += count('erased') + count('removed')
      inOrder += page.length - actions.filter((each) => !['none', 'pause', 'suspect'].includes(each)).length
      if (page.length < pageSize) return
      if (inOrder >= maxInOrder) {
        result.complete = false
        return
      }
      after = page.at(-1)
    }
  }

  const reconcileBulkRetries = async (result: Reconciled, { dryRun, signal }: RunOptions): Promise<void> => {
    const { rows } = await db.raw<{ rows: RunningBulkRetry[] }>(
      `
      select
        bulk_retries.id as "bulkRetryId", user_slug || '/' || workspace_slug as workspace, stuck_run as "stuckRun",
        checked_at <= now() - :ageMs::float8 * interval '1 millisecond' as "isDue"
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
    const subjectOfRetry = ({ bulkRetryId }: BulkRetryInput) => ({ bulk_retry_id: bulkRetryId })
    const decided = await inGroups(rows, subjectOfRetry, async ({ stuckRun, isDue, ...input }) => {
      const found = await workflows.findBulkRetryWorkflow(input)
      return { input, stuckRun, found, action: decideBulkRetry({ stuckRun, isDue }, found) }
    })
    const applyOne = async ({ input, stuckRun, found, action }: (typeof decided)[number]): Promise<void> => {
      // Nothing is written about one that is in order.
      if (action === 'none' && (stuckRun === null || found.state === 'stuck')) return
      const message: StartBulkRetry = { kind: 'startBulkRetry', input }
      const starts = action === 'start' || action === 'replace'
      const next = noteOf(action, found)
      const isNoted = dryRun || (await db.transaction((trx) => noteBulkRetry(trx, { input, stuckRun, next }, starts ? [message] : [])))
      if (!isNoted) return
      if (starts) result.bulkRetriesStarted += 1
      if (action === 'cancel') result.bulkRetriesCancelled += 1
      if (dryRun) return
      if (action === 'replace' && found.state === 'stuck') await workflows.terminateBulkRetry(input, found.runId)
      if (starts) await sendAll([message])
      if (action === 'cancel') await bulkRetries.cancel(input.bulkRetryId, systemActor)
    }
    for (const each of decided) {
      signal?.throwIfAborted()
      await onItsOwn('reconcile', subjectOfRetry(each.input), () => applyOne(each))
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
