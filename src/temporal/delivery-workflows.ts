import {
  WorkflowNotFoundError,
  type Client,
  type Connection,
  type WorkflowExecutionDescription,
  type WorkflowExecutionStatusName,
} from '@temporalio/client'
import { defaultPayloadConverter } from '@temporalio/common'
import { bulkRetryWorkflowId, deliveryWorkflowId, documentWorkflowId, type DocumentKey } from '../../workflows/ids.ts'
import { manualRetryTimer } from '../../workflows/messages.ts'
import type { DeliveryWorkflows, WorkflowState } from '../delivery/reconcile.ts'
import type { IsDeliveryRunning } from '../delivery/retry.ts'

// Any other status, for example of a workflow that an operator has paused, is that of an open one.
const closedStatuses = new Set<WorkflowExecutionStatusName>(['COMPLETED', 'FAILED', 'TIMED_OUT', 'CANCELLED', 'TERMINATED'])

// A delivery that does nothing has started its timer among the last few events; signals to it may follow.
const lastEvents = 20

const isOpen = ({ status }: WorkflowExecutionDescription) => !closedStatuses.has(status.name)

// A workflow task that fails is repeated with a growing delay, and one that has failed this often does not succeed by itself. A worker that is
// silent misses one try in ten seconds: with three, a silence of half a minute ended healthy deliveries.
const stuckAttempts = 6

/**
 * Returns true if the workers cannot continue an open workflow. After Temporal was restored from an older backup, a worker that still has a
 * later state of the workflow in its cache may answer a task with commands that do not belong to the restored history.
 */
export const isStuck = (found: WorkflowExecutionDescription): boolean =>
  isOpen(found) && (found.raw.pendingWorkflowTask?.attempt ?? 0) >= stuckAttempts

/** Asks Temporal about the workflows of deliveries and bulk retries. @param withTimeout calls the server, with a time limit */
export const createDeliveryWorkflows = (
  { workflow, options: { namespace } }: Client,
  connection: Pick<Connection, 'workflowService'>,
  withTimeout: <T>(call: () => Promise<T>) => Promise<T>,
): DeliveryWorkflows & { isDeliveryRunning: IsDeliveryRunning } => {
  const describe = async (workflowId: string): Promise<WorkflowExecutionDescription | undefined> => {
    try {
      return await withTimeout(() => workflow.getHandle(workflowId).describe())
    } catch (thrown) {
      if (thrown instanceof WorkflowNotFoundError) return undefined
      throw thrown
    }
  }

  /**
   * Returns true if an open workflow of a delivery waits for a manual retry, by the timer that it has started last. A query would cost a
   * replay, and a worker may answer it from its memory of a state that the server has lost.
   */
  const isWaiting = async ({ workflowId, runId, raw }: WorkflowExecutionDescription): Promise<boolean> => {
    if (raw.pendingWorkflowTask || (raw.pendingActivities ?? []).length > 0) return false
    const { history } = await withTimeout(() =>
      connection.workflowService.getWorkflowExecutionHistoryReverse({
        namespace,
        execution: { workflowId, runId },
        maximumPageSize: lastEvents,
      }),
    )
    const timer = history?.events?.find(({ timerStartedEventAttributes: started }) => started)
    const summary = timer?.userMetadata?.summary
    return summary ? defaultPayloadConverter.fromPayload(summary) === manualRetryTimer : false
  }

  const stateOfClosed = ({ status, closeTime }: WorkflowExecutionDescription): WorkflowState => {
    if (status.name === 'TERMINATED') return { state: 'terminated', closedAt: closeTime! }
    if (status.name === 'CANCELLED') return { state: 'cancelled', closedAt: closeTime! }
    return { state: 'missing' }
  }

  /** @param found the workflow of the delivery, if the server knows it */
  const stateOfDelivery = async (
    found: WorkflowExecutionDescription | undefined,
    document: DocumentKey,
    revision: number,
  ): Promise<WorkflowState> => {
    if (found && isOpen(found)) return { state: 'working' }
    const parent = await describe(documentWorkflowId(document, revision))
    // The workflow of the document starts each delivery once, so it does not start one again that has closed since.
    if (parent && isOpen(parent) && !isStuck(parent) && !(found?.closeTime && found.closeTime >= parent.startTime))
      return { state: 'working' }
    if (found) return stateOfClosed(found)
    // Ending the workflow of a document cancels its deliveries, also those that it has not started.
    const ended = parent ? stateOfClosed(parent) : undefined
    return ended && 'closedAt' in ended ? { ...ended, state: 'cancelled' } : { state: 'missing' }
  }

  const terminateStuck = async (workflowId: string): Promise<void> => {
    try {
      await withTimeout(() => workflow.getHandle(workflowId).terminate('stuck: the reconciler starts it again'))
    } catch (thrown) {
      if (!(thrown instanceof WorkflowNotFoundError)) throw thrown
    }
  }

  return {
    terminateDelivery: (document, destinationId) => terminateStuck(deliveryWorkflowId(document, destinationId)),
    terminateBulkRetry: (bulkRetry) => terminateStuck(bulkRetryWorkflowId(bulkRetry)),

    findDeliveryWorkflow: async (document, revision, destinationId) => {
      const found = await describe(deliveryWorkflowId(document, destinationId))
      if (found && isStuck(found)) return { state: 'stuck' }
      if (found && isOpen(found) && (await isWaiting(found))) return { state: 'waiting' }
      return stateOfDelivery(found, document, revision)
    },
    findBulkRetryWorkflow: async (bulkRetry) => {
      const found = await describe(bulkRetryWorkflowId(bulkRetry))
      if (!found) return { state: 'missing' }
      if (isStuck(found)) return { state: 'stuck' }
      return isOpen(found) ? { state: 'working' } : stateOfClosed(found)
    },
    /** Returns true if a workflow works, or will work, on a delivery. */
    isDeliveryRunning: async (document, revision, destinationId) => {
      const found = await describe(deliveryWorkflowId(document, destinationId))
      return (await stateOfDelivery(found, document, revision)).state === 'working'
    },
  }
}
