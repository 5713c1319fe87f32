import {
  Client,
  Connection,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  type WorkflowExecutionDescription,
  type WorkflowExecutionStatusName,
} from '@temporalio/client'
import { defaultPayloadConverter, WorkflowIdReusePolicy } from '@temporalio/common'
import type { bulkRetry } from '../../workflows/bulk-retry.ts'
import type { cancelDeliveries, releaseDeliveries } from '../../workflows/batches.ts'
import type { delivery } from '../../workflows/delivery.ts'
import type { document } from '../../workflows/document.ts'
import { bulkRetryWorkflowId, deliveryWorkflowId, documentWorkflowId, type DocumentKey } from '../../workflows/ids.ts'
import { checkAgainSignal, manualRetryTimer, releaseSignal, retrySignal, type RetryRequest } from '../../workflows/messages.ts'
import { batchOptions, bulkRetryOptions, deliveryOptions, documentOptions, searchAttributes } from '../../workflows/options.ts'
import type { Config } from '../config.ts'
import type { CancelDelivery, OutboxMessage, ProcessBatches, RetryDelivery, StartDelivery } from '../db/outbox.ts'
import type { RetryPolicy } from '../domain/retry.ts'
import type { DeliveryWorkflows, WorkflowState } from '../delivery/reconcile.ts'
import { isInvalid, isRefusal } from './errors.ts'
import { addMissing } from './search-attributes.ts'

// An operator, or a worker that has found a new namespace, may register the search attributes at any time.
const unregisteredMs = 60_000

// Any other status, for example of a workflow that an operator has paused, is that of an open one.
const closedStatuses = new Set<WorkflowExecutionStatusName>(['COMPLETED', 'FAILED', 'TIMED_OUT', 'CANCELLED', 'TERMINATED'])

// A delivery that does nothing has started its timer among the last few events; signals to it may follow.
const lastEvents = 20

type ClientConfig = Pick<Config, 'TEMPORAL_TASK_QUEUE' | 'TEMPORAL_START_TIMEOUT_MS'>

/** Opens a lazy connection, which connects at the first call and reconnects after an outage. The API starts without Temporal. */
export const openTemporal = (config: ClientConfig & Pick<Config, 'temporal'>) => {
  const { connectionOptions, namespace } = config.temporal
  const connection = Connection.lazy(connectionOptions)
  const client = new Client({ connection, namespace: namespace ?? 'default' })
  return { ...createTemporal(client, connection, config), connection, close: () => connection.close() }
}

const isOpen = ({ status }: WorkflowExecutionDescription) => !closedStatuses.has(status.name)

// A workflow task that fails is repeated with a growing delay, and one that has failed this often does not succeed by itself.
const stuckAttempts = 3

/**
 * Returns true if the workers cannot continue an open workflow. After Temporal was restored from an older backup, a worker that still has a
 * later state of the workflow in its cache may answer a task with commands that do not belong to the restored history.
 */
export const isStuck = (found: WorkflowExecutionDescription): boolean =>
  isOpen(found) && (found.raw.pendingWorkflowTask?.attempt ?? 0) >= stuckAttempts

export const createTemporal = (
  client: Client,
  connection: Pick<Connection, 'withDeadline' | 'operatorService' | 'workflowService'>,
  config: ClientConfig,
) => {
  const { workflow } = client
  const { namespace } = client.options
  const { TEMPORAL_TASK_QUEUE: taskQueue } = config
  const withTimeout = <T>(call: () => Promise<T>) => connection.withDeadline(Date.now() + config.TEMPORAL_START_TIMEOUT_MS, call)

  const readRegistered = async (): Promise<boolean> => {
    const { customAttributes } = await withTimeout(() => connection.operatorService.listSearchAttributes({ namespace }))
    return Object.values(searchAttributes).every((key) => key.name in customAttributes)
  }
  // A refusal (some clouds do not allow the call) counts as "not registered". After an outage, the next call asks again, and so does a call
  // that the server finds invalid: its namespace may have been created anew, without the search attributes.
  let registered: Promise<boolean> | undefined
  let askAgainAt = Number.POSITIVE_INFINITY
  const ask = async (): Promise<boolean> => {
    try {
      const answer = await readRegistered()
      if (!answer) askAgainAt = Date.now() + unregisteredMs
      return answer
    } catch (thrown) {
      if (isRefusal(thrown)) return false
      registered = undefined
      throw thrown
    }
  }
  /** Asks the server once, and again from time to time while the search attributes are missing. */
  const hasSearchAttributes = () => {
    if (!registered || Date.now() >= askAgainAt) {
      askAgainAt = Number.POSITIVE_INFINITY
      registered = ask()
    }
    return registered
  }

  /** Runs a call that starts a workflow. A workflow that exists already stays as it is, because its id is a business key. */
  const startOnce = async (start: () => Promise<unknown>): Promise<void> => {
    try {
      await withTimeout(start)
    } catch (thrown) {
      if (!(thrown instanceof WorkflowExecutionAlreadyStartedError)) throw thrown
    }
  }
  const once = { taskQueue, workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE }

  // A closed workflow of a delivery is started again, whether it has failed or was held. If it has delivered, it delivers nothing twice.
  const again = { taskQueue, workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE }

  /** Signals the workflow of a delivery if it is open, else starts it with the signal. */
  const retryDelivery = async ({ requestId, input }: RetryDelivery): Promise<void> => {
    const options = deliveryOptions(input, { registered: await hasSearchAttributes() })
    const request: RetryRequest = { requestId, policy: input.policy }
    await startOnce(() =>
      workflow.signalWithStart<typeof delivery, [unknown?]>('delivery', {
        ...options,
        ...again,
        signal: retrySignal,
        signalArgs: [request],
      }),
    )
  }

  /** Starts the workflow of a released delivery. One that is still open has just recorded that the delivery is held: it is signalled. */
  const startDelivery = async ({ input }: StartDelivery): Promise<void> => {
    const options = deliveryOptions(input, { registered: await hasSearchAttributes() })
    await startOnce(() =>
      workflow.signalWithStart<typeof delivery, [RetryPolicy]>('delivery', {
        ...options,
        ...again,
        signal: releaseSignal,
        signalArgs: [input.policy],
      }),
    )
  }

  const cancelDelivery = async ({ document: key, destinationId }: CancelDelivery): Promise<void> => {
    try {
      await withTimeout(() => workflow.getHandle(deliveryWorkflowId(key, destinationId)).cancel())
    } catch (thrown) {
      // The workflow has closed, or was never started. In the latter case, its first attempt finds the delivery cancelled.
      if (!(thrown instanceof WorkflowNotFoundError)) throw thrown
    }
  }

  const processBatches = async ({ subject }: ProcessBatches): Promise<void> => {
    const type = subject.action === 'release' ? 'releaseDeliveries' : 'cancelDeliveries'
    await withTimeout(() =>
      workflow.signalWithStart<typeof releaseDeliveries | typeof cancelDeliveries>(type, {
        ...batchOptions(subject),
        taskQueue,
        signal: checkAgainSignal,
        signalArgs: [],
      }),
    )
  }

  const sendOnce = async (message: OutboxMessage): Promise<void> => {
    switch (message.kind) {
      case 'startDocument': {
        const options = documentOptions(message.input, { registered: await hasSearchAttributes() })
        return startOnce(() => workflow.start<typeof document>('document', { ...options, ...once }))
      }
      case 'startDelivery':
        return startDelivery(message)
      case 'startBulkRetry': {
        const options = bulkRetryOptions(message.input, { registered: await hasSearchAttributes() })
        // One that has been completed already ends at once.
        return startOnce(() => workflow.start<typeof bulkRetry>('bulkRetry', { ...options, ...again }))
      }
      case 'retryDelivery':
        return retryDelivery(message)
      case 'cancelDelivery':
        return cancelDelivery(message)
      case 'processBatches':
        return processBatches(message)
    }
  }

  const send = async (message: OutboxMessage): Promise<void> => {
    try {
      await sendOnce(message)
    } catch (thrown) {
      if (!isInvalid(thrown)) throw thrown
      registered = undefined
      await sendOnce(message)
    }
  }

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

  const deliveryWorkflows: DeliveryWorkflows = {
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
  }

  return {
    client,
    /** Returns true if the search attributes of the relay are registered on this server. */
    hasSearchAttributes,
    /** Sends an outbox message. Sending it a second time has no further effect. */
    send,
    ...deliveryWorkflows,
    /** Returns true if a workflow works, or will work, on a delivery. */
    isDeliveryRunning: async (document: DocumentKey, revision: number, destinationId: string): Promise<boolean> => {
      const found = await describe(deliveryWorkflowId(document, destinationId))
      return (await stateOfDelivery(found, document, revision)).state === 'working'
    },
    /** Registers missing search attributes. @throws if the server refuses */
    registerSearchAttributes: async (): Promise<void> => {
      await withTimeout(() => addMissing(connection, namespace))
      registered = undefined
    },
    /** Calls the server. @throws if it does not answer within the start timeout */
    ping: async (): Promise<void> => {
      await withTimeout(() => connection.workflowService.getSystemInfo({}))
    },
  }
}

export type Temporal = ReturnType<typeof createTemporal>
