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
import type { RunProgress } from '../delivery/stuck-run.ts'

// Any other status, for example of a workflow that an operator has paused, is that of an open one.
const closedStatuses = new Set<WorkflowExecutionStatusName>(['COMPLETED', 'FAILED', 'TIMED_OUT', 'CANCELLED', 'TERMINATED'])

// Number of events among which a delivery that does nothing has started its timer; signals to it may follow.
const lastEvents = 20

const isOpen = ({ status }: WorkflowExecutionDescription) => !closedStatuses.has(status.name)

// A workflow task that fails is repeated with a growing delay, and one that was tried this often does not succeed by itself.
const stuckAttempts = 3

// Time that a server may take for what it owes a workflow: to schedule the first task of a child, or to deliver a signal.
const serverMs = 60_000

/** Reason of a termination by the relay, as the history of the workflow names it. */
export const terminationReason =
  'the relay ends this run, because its tasks failed and it made no progress between two checks, and starts another one'

type Call = <T>(call: () => Promise<T>) => Promise<T>

/** Returns how far a run of a workflow has come. */
export const progressOf = ({ runId, historyLength }: WorkflowExecutionDescription): RunProgress => ({ runId, historyLength })

/** Returns the last events of a workflow, the latest first. @param withTimeout calls the server, with a time limit */
const readLastEvents = async (
  { workflowId, runId }: Pick<WorkflowExecutionDescription, 'workflowId' | 'runId'>,
  { namespace, workflowService }: { namespace: string; workflowService: Connection['workflowService'] },
  withTimeout: Call,
) => {
  const request = { namespace, execution: { workflowId, runId }, maximumPageSize: lastEvents }
  const { history } = await withTimeout(() => workflowService.getWorkflowExecutionHistoryReverse(request))
  return history?.events ?? []
}

type Events = Awaited<ReturnType<typeof readLastEvents>>

/** Returns the last timer of a workflow, with its summary, if it runs. Many signals may have followed its start. */
const timerOf = (events: Events): { summary: unknown } | undefined => {
  const last = events.find(
    (event) => event.timerStartedEventAttributes ?? event.timerFiredEventAttributes ?? event.timerCanceledEventAttributes,
  )
  const summary = last?.userMetadata?.summary
  return last?.timerStartedEventAttributes ? { summary: summary && defaultPayloadConverter.fromPayload(summary) } : undefined
}

/**
 * Returns true if the server owes a workflow the next event. It owes none if nothing but notes has followed the last task: the workflow
 * sleeps until it is called. After anything else, the server is still to act: it has started a child and not scheduled its first task, or
 * delivers a signal to another workflow. A slow server takes seconds for that; one that takes much longer has lost it.
 */
const isServersTurn = (events: Events): boolean => {
  const last = events.find((event) => !(event.upsertWorkflowSearchAttributesEventAttributes ?? event.markerRecordedEventAttributes))
  if (last?.workflowTaskCompletedEventAttributes) return false
  const seconds = last?.eventTime?.seconds?.toNumber()
  return seconds === undefined || Date.now() - seconds * 1_000 < serverMs
}

/**
 * Creates the function that returns true if the workers cannot continue an open workflow. After Temporal was restored from an older backup, a
 * worker that still has a later state of the workflow in its cache may answer a task with commands that do not belong to the restored
 * history. Tries that were not answered in time do not count: a worker that is silent for half a minute misses three, and mends itself.
 */
export const createIsStuck =
  (namespace: string, { workflowService }: Pick<Connection, 'workflowService'>, withTimeout: Call) =>
  async (found: WorkflowExecutionDescription): Promise<boolean> => {
    if (!isOpen(found) || (found.raw.pendingWorkflowTask?.attempt ?? 0) < stuckAttempts) return false
    // The first failure is an event; further ones are counted only.
    const ended = (await readLastEvents(found, { namespace, workflowService }, withTimeout)).find(
      (event) =>
        event.workflowTaskFailedEventAttributes ?? event.workflowTaskTimedOutEventAttributes ?? event.workflowTaskCompletedEventAttributes,
    )
    return Boolean(ended?.workflowTaskFailedEventAttributes)
  }

/** Asks Temporal about the workflows of deliveries and bulk retries. @param withTimeout calls the server, with a time limit */
export const createDeliveryWorkflows = (
  { workflow, options: { namespace } }: Client,
  connection: Pick<Connection, 'workflowService'>,
  withTimeout: Call,
): DeliveryWorkflows & { isDeliveryRunning: IsDeliveryRunning } => {
  const isStuck = createIsStuck(namespace, connection, withTimeout)

  const describe = async (workflowId: string): Promise<WorkflowExecutionDescription | undefined> => {
    try {
      return await withTimeout(() => workflow.getHandle(workflowId).describe())
    } catch (thrown) {
      if (thrown instanceof WorkflowNotFoundError) return undefined
      throw thrown
    }
  }

  /**
   * Returns what an open workflow of an overdue delivery does. A query would cost a replay, and a worker may answer it from its memory of a
   * state that the server has lost.
   */
  const stateOfOpen = async (found: WorkflowExecutionDescription): Promise<WorkflowState> => {
    const { pendingActivities, pendingWorkflowTask } = found.raw
    if (found.status.name === 'PAUSED') return { state: 'paused' }
    if (await isStuck(found)) return { state: 'stuck', ...progressOf(found) }
    if (pendingActivities?.some(({ paused }) => paused)) return { state: 'paused' }
    if (pendingWorkflowTask || pendingActivities?.length) return { state: 'working' }
    const events = await readLastEvents(found, { namespace, workflowService: connection.workflowService }, withTimeout)
    const timer = timerOf(events)
    if (timer) return { state: timer.summary === manualRetryTimer ? 'waiting' : 'working' }
    // A delivery in line also sleeps, and is not overdue. This one waits for a call that Temporal has lost, or has not been sent.
    return { state: isServersTurn(events) ? 'working' : 'asleep' }
  }

  const stateOfClosed = ({ runId, status, closeTime }: WorkflowExecutionDescription): WorkflowState => {
    if (status.name === 'TERMINATED') return { state: 'terminated', runId, closedAt: closeTime! }
    if (status.name === 'CANCELLED') return { state: 'cancelled', runId, closedAt: closeTime! }
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
    if (parent && isOpen(parent) && !(await isStuck(parent)) && !(found?.closeTime && found.closeTime >= parent.startTime))
      return { state: 'working' }
    if (found) return stateOfClosed(found)
    // Ending the workflow of a document cancels its deliveries, also those that it has not started.
    const ended = parent ? stateOfClosed(parent) : undefined
    return ended && 'closedAt' in ended ? { ...ended, state: 'cancelled' } : { state: 'missing' }
  }

  const terminateRun = async (workflowId: string, runId: string): Promise<void> => {
    try {
      await withTimeout(() => workflow.getHandle(workflowId, runId).terminate(terminationReason))
    } catch (thrown) {
      if (!(thrown instanceof WorkflowNotFoundError)) throw thrown
    }
  }

  return {
    terminateDelivery: (document, destinationId, runId) => terminateRun(deliveryWorkflowId(document, destinationId), runId),
    terminateBulkRetry: (bulkRetry, runId) => terminateRun(bulkRetryWorkflowId(bulkRetry), runId),

    findDeliveryWorkflow: async (document, revision, destinationId) => {
      const found = await describe(deliveryWorkflowId(document, destinationId))
      return found && isOpen(found) ? stateOfOpen(found) : stateOfDelivery(found, document, revision)
    },
    findBulkRetryWorkflow: async (bulkRetry) => {
      const found = await describe(bulkRetryWorkflowId(bulkRetry))
      if (!found) return { state: 'missing' }
      if (await isStuck(found)) return { state: 'stuck', ...progressOf(found) }
      return isOpen(found) ? { state: 'working' } : stateOfClosed(found)
    },
    /** Returns true if a workflow works, or will work, on a delivery. */
    isDeliveryRunning: async (document, revision, destinationId) => {
      const found = await describe(deliveryWorkflowId(document, destinationId))
      return (await stateOfDelivery(found, document, revision)).state === 'working'
    },
  }
}
