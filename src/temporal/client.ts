import { Client, Connection, WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError } from '@temporalio/client'
import { WorkflowIdReusePolicy } from '@temporalio/common'
import {
  batchOptions,
  bulkRetryOptions,
  deliveryOptions,
  deliveryWorkflowId,
  documentOptions,
  documentWorkflowId,
  searchAttributes,
  signals,
  type RetryRequest,
} from '../../workflows/messages.ts'
import type { Config } from '../config.ts'
import type {
  BatchMessage,
  BulkRetryMessage,
  DeliveryMessage,
  DocumentMessage,
  OutboxMessage,
  RetryMessage,
  StopMessage,
} from '../db/outbox.ts'

type ClientConfig = Pick<Config, 'TEMPORAL_TASK_QUEUE' | 'TEMPORAL_START_TIMEOUT_MS'>

/** Connects when first asked, and again by itself after an outage: the API starts and receives while Temporal is away. */
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
  const { namespace } = client.options
  const within = <T>(work: () => Promise<T>) => connection.withDeadline(Date.now() + config.TEMPORAL_START_TIMEOUT_MS, work)

  const readRegistered = async (): Promise<boolean> => {
    const { customAttributes } = await within(() => connection.operatorService.listSearchAttributes({ namespace }))
    return Object.values(searchAttributes).every((key) => key.name in customAttributes)
  }
  // asked once and remembered; a refusal to tell (some clouds) counts as no, an outage is asked again
  let registered: Promise<boolean> | undefined
  const areRegistered = () => {
    registered ??= readRegistered().catch((thrown: unknown) => {
      if (isRefusal(thrown)) return false
      registered = undefined
      throw thrown
    })
    return registered
  }

  const { TEMPORAL_TASK_QUEUE: taskQueue } = config

  const once = async (start: () => Promise<unknown>): Promise<void> => {
    try {
      await within(start)
    } catch (thrown) {
      if (!(thrown instanceof WorkflowExecutionAlreadyStartedError)) throw thrown
    }
  }

  type StartOptions = ReturnType<typeof documentOptions> | ReturnType<typeof deliveryOptions> | ReturnType<typeof bulkRetryOptions>

  // the id is a business key: one that was started before stays as it is
  const startOnce = (type: string, options: StartOptions) =>
    once(() => client.workflow.start(type, { ...options, taskQueue, workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE }))

  const startDocument = async (message: DocumentMessage): Promise<void> => {
    const { kind: _, ...document } = message
    await startOnce('document', documentOptions({ ...document, searchAttributes: await areRegistered() }))
  }

  const startDelivery = async (message: DeliveryMessage): Promise<void> => {
    const { kind: _, ...delivery } = message
    await startOnce('delivery', deliveryOptions({ ...delivery, searchAttributes: await areRegistered() }))
  }

  const startBulkRetry = async ({ bulkRetryId, workspace }: BulkRetryMessage): Promise<void> => {
    await startOnce('bulkRetry', bulkRetryOptions({ bulkRetryId, workspace, searchAttributes: await areRegistered() }))
  }

  // an open delivery gets the signal, a closed one is started anew with it, unless it has delivered
  const retryDelivery = async (message: RetryMessage): Promise<void> => {
    const { kind: _, requestId, ...delivery } = message
    const input = { ...delivery, searchAttributes: await areRegistered() }
    await once(() =>
      client.workflow.signalWithStart('delivery', {
        ...deliveryOptions(input),
        taskQueue,
        workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
        signal: signals.retry,
        signalArgs: [{ requestId, policy: input.policy } satisfies RetryRequest],
      }),
    )
  }

  const stopDelivery = async ({ documentId, destinationId }: StopMessage): Promise<void> => {
    try {
      await within(() => client.workflow.getHandle(deliveryWorkflowId(documentId, destinationId)).cancel())
    } catch (thrown) {
      // it has closed, or was never started: its first attempt will find the delivery cancelled
      if (!(thrown instanceof WorkflowNotFoundError)) throw thrown
    }
  }

  const workOff = async ({ subject }: BatchMessage): Promise<void> => {
    await within(() => client.workflow.signalWithStart(subject.action, { ...batchOptions(subject), taskQueue }))
  }

  const send = (message: OutboxMessage): Promise<void> => {
    switch (message.kind) {
      case 'document':
        return startDocument(message)
      case 'delivery':
        return startDelivery(message)
      case 'retry':
        return retryDelivery(message)
      case 'stop':
        return stopDelivery(message)
      case 'bulk-retry':
        return startBulkRetry(message)
      default:
        return workOff(message)
    }
  }

  const statusOf = async (workflowId: string): Promise<string | undefined> => {
    try {
      const { status } = await within(() => client.workflow.getHandle(workflowId).describe())
      return status.name
    } catch (thrown) {
      if (thrown instanceof WorkflowNotFoundError) return undefined
      throw thrown
    }
  }

  return {
    client,
    /** Whether operators can filter by our search attributes on this server. */
    hasSearchAttributes: areRegistered,
    /** Does what a message says. A second time changes nothing. */
    send,
    /** Whether somebody will go on with a delivery that is not at its end by the database. */
    isUnderWay: async ({ documentId, revision, destinationId }: { documentId: string; revision: number; destinationId: string }) => {
      const own = await statusOf(deliveryWorkflowId(documentId, destinationId))
      // not begun yet, or delivered before an append: its document's workflow will start it
      if (own === undefined || own === 'COMPLETED') return (await statusOf(documentWorkflowId(documentId, revision))) === 'RUNNING'
      return own === 'RUNNING'
    },
    /** Answers within the start timeout, or throws. */
    ping: async (): Promise<void> => {
      await within(() => connection.workflowService.getSystemInfo({}))
    },
  }
}

export type Temporal = ReturnType<typeof createTemporal>
export type OpenTemporal = ReturnType<typeof openTemporal>

const isRefusal = (thrown: unknown) => {
  const code = (thrown as { code?: unknown }).code
  // gRPC: PERMISSION_DENIED, UNIMPLEMENTED
  return code === 7 || code === 12
}
