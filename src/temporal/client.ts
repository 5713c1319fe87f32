import { Client, Connection, WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError } from '@temporalio/client'
import { WorkflowIdReusePolicy } from '@temporalio/common'
import type { bulkRetry } from '../../workflows/bulk-retry.ts'
import type { cancelDeliveries, releaseDeliveries } from '../../workflows/batches.ts'
import type { delivery } from '../../workflows/delivery.ts'
import type { document } from '../../workflows/document.ts'
import { deliveryWorkflowId, documentWorkflowId, type DocumentKey } from '../../workflows/ids.ts'
import { checkAgainSignal, releaseSignal, retrySignal, type RetryRequest } from '../../workflows/messages.ts'
import { batchOptions, bulkRetryOptions, deliveryOptions, documentOptions, searchAttributes } from '../../workflows/options.ts'
import type { Config } from '../config.ts'
import type { CancelDelivery, OutboxMessage, ProcessBatches, RetryDelivery, StartDelivery } from '../db/outbox.ts'
import type { RetryPolicy } from '../domain/retry.ts'
import { isRefusal } from './errors.ts'

type ClientConfig = Pick<Config, 'TEMPORAL_TASK_QUEUE' | 'TEMPORAL_START_TIMEOUT_MS'>

/** Opens a lazy connection, which connects at the first call and reconnects after an outage. The API starts without Temporal. */
export const openTemporal = (config: ClientConfig & Pick<Config, 'temporal'>) => {
  const { connectionOptions, namespace } = config.temporal
  const connection = Connection.lazy(connectionOptions)
  const client = new Client({ connection, namespace: namespace ?? 'default' })
  return { ...createTemporal(client, connection, config), connection, close: () => connection.close() }
}

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
  // Asked once. A refusal (some clouds do not allow the call) counts as "not registered". After an outage, the next call asks again.
  let registered: Promise<boolean> | undefined
  const hasSearchAttributes = () => {
    registered ??= readRegistered().catch((thrown: unknown) => {
      if (isRefusal(thrown)) return false
      registered = undefined
      throw thrown
    })
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

  const send = async (message: OutboxMessage): Promise<void> => {
    switch (message.kind) {
      case 'startDocument': {
        const options = documentOptions(message.input, { registered: await hasSearchAttributes() })
        return startOnce(() => workflow.start<typeof document>('document', { ...options, ...once }))
      }
      case 'startDelivery':
        return startDelivery(message)
      case 'startBulkRetry': {
        const options = bulkRetryOptions(message.input, { registered: await hasSearchAttributes() })
        return startOnce(() => workflow.start<typeof bulkRetry>('bulkRetry', { ...options, ...once }))
      }
      case 'retryDelivery':
        return retryDelivery(message)
      case 'cancelDelivery':
        return cancelDelivery(message)
      case 'processBatches':
        return processBatches(message)
    }
  }

  const statusOf = async (workflowId: string): Promise<string | undefined> => {
    try {
      const { status } = await withTimeout(() => workflow.getHandle(workflowId).describe())
      return status.name
    } catch (thrown) {
      if (thrown instanceof WorkflowNotFoundError) return undefined
      throw thrown
    }
  }

  return {
    client,
    /** Returns true if the search attributes of the relay are registered on this server. */
    hasSearchAttributes,
    /** Sends an outbox message. Sending it a second time has no further effect. */
    send,
    /** Returns true if a workflow works, or will work, on a delivery. */
    isDeliveryRunning: async (document: DocumentKey, revision: number, destinationId: string): Promise<boolean> => {
      const status = await statusOf(deliveryWorkflowId(document, destinationId))
      // Not started yet, or completed before the current revision: the workflow of the document will start the delivery.
      if (status === undefined || status === 'COMPLETED') return (await statusOf(documentWorkflowId(document, revision))) === 'RUNNING'
      return status === 'RUNNING'
    },
    /** Calls the server. @throws if it does not answer within the start timeout */
    ping: async (): Promise<void> => {
      await withTimeout(() => connection.workflowService.getSystemInfo({}))
    },
  }
}

export type Temporal = ReturnType<typeof createTemporal>
