import { Client, Connection, WorkflowExecutionAlreadyStartedError } from '@temporalio/client'
import { WorkflowIdReusePolicy, WorkflowNotFoundError } from '@temporalio/common'
import {
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
import type { BulkRetryMessage, DocumentMessage, OutboxMessage, RetryMessage } from '../db/outbox.ts'

type ClientConfig = Pick<Config, 'TEMPORAL_TASK_QUEUE' | 'TEMPORAL_START_TIMEOUT_MS'>

/** Connects when first asked, and again by itself after an outage: the API starts and receives while Temporal is away. */
export const openTemporal = (config: ClientConfig & Pick<Config, 'temporal'>) => {
  const { connectionOptions, namespace } = config.temporal
  const connection = Connection.lazy(connectionOptions)
  const client = new Client({ connection, namespace: namespace ?? 'default' })
  return { ...createTemporal(client, connection, config), close: () => connection.close() }
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

  const once = async (start: () => Promise<unknown>): Promise<void> => {
    try {
      await within(start)
    } catch (thrown) {
      if (!(thrown instanceof WorkflowExecutionAlreadyStartedError)) throw thrown
    }
  }

  // the id is the document's: one that was started before stays as it is
  const startDocument = async (message: DocumentMessage): Promise<void> => {
    const { kind: _, ...document } = message
    const input = { ...document, searchAttributes: await areRegistered() }
    await once(() =>
      client.workflow.start('document', {
        ...documentOptions(input),
        taskQueue: config.TEMPORAL_TASK_QUEUE,
        workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE,
      }),
    )
  }

  // an open delivery gets the signal, a closed one is started anew with it, unless it has delivered
  const retryDelivery = async (message: RetryMessage): Promise<void> => {
    const { kind: _, requestId, ...delivery } = message
    const input = { ...delivery, searchAttributes: await areRegistered() }
    await once(() =>
      client.workflow.signalWithStart('delivery', {
        ...deliveryOptions(input),
        taskQueue: config.TEMPORAL_TASK_QUEUE,
        workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
        signal: signals.retry,
        signalArgs: [{ requestId, policy: input.policy } satisfies RetryRequest],
      }),
    )
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

  const startBulkRetry = async ({ bulkRetryId, workspace }: BulkRetryMessage): Promise<void> => {
    const input = { bulkRetryId, workspace, searchAttributes: await areRegistered() }
    await once(() =>
      client.workflow.start('bulkRetry', {
        ...bulkRetryOptions(input),
        taskQueue: config.TEMPORAL_TASK_QUEUE,
        workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE,
      }),
    )
  }

  const send = (message: OutboxMessage): Promise<void> => {
    if (message.kind === 'document') return startDocument(message)
    return message.kind === 'retry' ? retryDelivery(message) : startBulkRetry(message)
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

const isRefusal = (thrown: unknown) => {
  const code = (thrown as { code?: unknown }).code
  // gRPC: PERMISSION_DENIED, UNIMPLEMENTED
  return code === 7 || code === 12
}
