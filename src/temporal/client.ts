import { Client, Connection, WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError } from '@temporalio/client'
import { WorkflowIdReusePolicy } from '@temporalio/common'
import type { NativeConnection } from '#temporal-worker'
import type { attemptDeliveries, cancelDeliveries, releaseDeliveries } from '../../workflows/batches.ts'
import type { bulkRetry } from '../../workflows/bulk-retry.ts'
import type { delivery } from '../../workflows/delivery.ts'
import type { documentMigration } from '../../workflows/document-migration.ts'
import type { document } from '../../workflows/document.ts'
import { deliveryWorkflowId } from '../../workflows/ids.ts'
import {
  checkAgainSignal,
  releaseSignal,
  retrySignal,
  wakeSignal,
  type DocumentMigrationInput,
  type RetryRequest,
  type SideWorkInput,
} from '../../workflows/messages.ts'
import type { notice } from '../../workflows/notice.ts'
import {
  batchOptions,
  bulkRetryOptions,
  deliveryOptions,
  documentMigrationOptions,
  documentOptions,
  noticeOptions,
  searchAttributes,
  sideWorkKinds,
  sideWorkOptions,
  type SideWorkKind,
} from '../../workflows/options.ts'
import type { enrichment, eventSubscription, lateData } from '../../workflows/side-work.ts'
import { unlessAborted } from '../base/unless-aborted.ts'
import type { Config } from '../config/config.ts'
import type { CancelDelivery, OutboxMessage, ProcessBatches, WakeDelivery } from '../db/outbox.ts'
import type { RetryDelivery, Start, StartDelivery } from '../db/starts.ts'
import type { RetryPolicy } from '../domain/retry.ts'
import { createDeliveryWorkflows } from './delivery-workflows.ts'
import { deadlineExceeded, isInvalid, isNotFound, isRefusal } from './errors.ts'
import { addMissing } from './search-attributes.ts'

// By default, a client of gRPC waits up to two minutes before it connects again after a long outage.
const maxReconnectMs = 5_000

// A connection that has gone silent is noticed after 20 seconds; by default after 45. The frontend refuses more than one ping in 10 seconds.
const keepAlive = { 'grpc.keepalive_time_ms': 15_000, 'grpc.keepalive_timeout_ms': 5_000 }

// PENDING_ACTIVITY_STATE_SCHEDULED: it waits for its time, or for a worker.
const scheduled = 1

// An operator, or a worker that has found a new namespace, may register the search attributes at any time.
const unregisteredMs = 60_000

type SideWorkflow = typeof enrichment | typeof eventSubscription | typeof lateData

type ClientConfig = Pick<Config, 'TEMPORAL_TASK_QUEUE' | 'TEMPORAL_START_TIMEOUT_MS'>

/** Opens a lazy connection, which connects at the first call and reconnects after an outage. The API starts without Temporal. */
export const openTemporal = (config: ClientConfig & Pick<Config, 'temporal'>) => {
  const { connectionOptions, namespace } = config.temporal
  const connection = Connection.lazy({
    ...connectionOptions,
    channelArgs: { 'grpc.max_reconnect_backoff_ms': maxReconnectMs, ...keepAlive },
  })
  const client = new Client({ connection, namespace: namespace ?? 'default' })
  return { ...createTemporal(client, connection, config), connection, close: () => connection.close() }
}

type Calls = Pick<Connection, 'withDeadline' | 'operatorService' | 'workflowService'>

// The native client ends a call that is silent this long after its deadline. It has no status of its own for that.
const silentMs = 1_000

/** Fails at the deadline, as the client of the API does: the native client repeats a call that is refused for ten seconds. */
const endAtDeadline =
  (withDeadline: Calls['withDeadline']): Calls['withDeadline'] =>
  async (deadline, call) => {
    const ended = new AbortController()
    const fail = () => ended.abort(Object.assign(new Error('Temporal has not answered in time'), { code: deadlineExceeded }))
    const timer = setTimeout(fail, Number(deadline) - Date.now())
    try {
      return await unlessAborted(() => withDeadline(Number(deadline) + silentMs, call), ended.signal)
    } finally {
      clearTimeout(timer)
    }
  }

/**
 * Calls Temporal over the connection of a worker, whose native client takes less processor time for a call than that of `openTemporal`.
 * Unlike that one, it connects before its first call, and the worker can have the first task of a workflow with the answer to its start. The
 * server does not ask whether the build of the worker is current then, so a worker that has a build id takes none so.
 */
export const temporalOver = (
  connection: NativeConnection,
  config: ClientConfig & Pick<Config, 'temporal' | 'TEMPORAL_WORKER_BUILD_ID'>,
): Temporal => {
  const client = new Client({ connection, namespace: config.temporal.namespace ?? 'default' })
  const { operatorService, workflowService } = connection
  const withDeadline = endAtDeadline(connection.withDeadline.bind(connection))
  const startsEagerly = config.TEMPORAL_WORKER_BUILD_ID === undefined
  return createTemporal(client, { operatorService, workflowService, withDeadline }, config, { startsEagerly })
}

export const createTemporal = (client: Client, connection: Calls, config: ClientConfig, { startsEagerly = false } = {}) => {
  const { workflow } = client
  const { namespace } = client.options
  const { TEMPORAL_TASK_QUEUE: taskQueue } = config
  const withTimeout = <T>(call: () => Promise<T>) => connection.withDeadline(Date.now() + config.TEMPORAL_START_TIMEOUT_MS, call)

  const readRegistered = async (): Promise<boolean> => {
    const { customAttributes } = await withTimeout(() => connection.operatorService.listSearchAttributes({ namespace }))
    return Object.values(searchAttributes).every((key) => key.name in customAttributes)
  }
  // A refusal (some clouds do not allow the call) counts as "not registered". After an outage, the next call asks again, and so does a call
  // that the server finds invalid: its namespace may have been created again, without the search attributes.
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
  const retryDelivery = async ({ requestId, input, urgency }: RetryDelivery): Promise<void> => {
    const options = deliveryOptions(input, { registered: await hasSearchAttributes(), urgency })
    const request: RetryRequest = { requestId, policy: input.policy }
    const signal = { signal: retrySignal, signalArgs: [request] as [unknown?] }
    await startOnce(() => workflow.signalWithStart<typeof delivery, [unknown?]>('delivery', { ...options, ...again, ...signal }))
  }

  /** Starts the workflow of a released delivery. A workflow that is still open has just recorded that the delivery is held: it is signalled. */
  const startDelivery = async ({ input, urgency }: StartDelivery): Promise<void> => {
    const options = deliveryOptions(input, { registered: await hasSearchAttributes(), urgency })
    const signal = { signal: releaseSignal, signalArgs: [input.policy] as [RetryPolicy] }
    await startOnce(() => workflow.signalWithStart<typeof delivery, [RetryPolicy]>('delivery', { ...options, ...again, ...signal }))
  }

  /** Calls a workflow, unless it has closed or was never started. In the latter case, its first attempt finds what has changed. */
  const callIfOpen = async (call: () => Promise<void>): Promise<void> => {
    try {
      await withTimeout(call)
    } catch (thrown) {
      if (!(thrown instanceof WorkflowNotFoundError)) throw thrown
    }
  }

  const cancelDelivery = ({ document: key, destinationId }: CancelDelivery) =>
    callIfOpen(async () => void (await workflow.getHandle(deliveryWorkflowId(key, destinationId)).cancel()))

  /**
   * Resets the activity of a delivery that waits for its next attempt, so that the server makes it now.
   * @returns false if the workflow has no such activity, or the server does not know the command
   */
  const endBackOff = async (workflowId: string): Promise<boolean> => {
    try {
      const { raw, runId } = await withTimeout(() => workflow.getHandle(workflowId).describe())
      const waiting = raw.pendingActivities?.find(({ state }) => Number(state) === scheduled)
      if (!waiting) return false
      await withTimeout(() =>
        connection.workflowService.resetActivity({
          namespace,
          execution: { workflowId, runId },
          id: waiting.activityId ?? '',
          identity: client.options.identity,
        }),
      )
      return true
    } catch (thrown) {
      // The run may have closed since it was described.
      if (thrown instanceof WorkflowNotFoundError || isNotFound(thrown) || isRefusal(thrown)) return false
      throw thrown
    }
  }

  /** Wakes a delivery. If its workflow has closed, the reconciler finds out why. */
  const wakeDelivery = async ({ input, endsBackOff }: WakeDelivery): Promise<void> => {
    if (endsBackOff && (await endBackOff(deliveryWorkflowId(input, input.destination.id)))) return
    const options = deliveryOptions(input, { registered: await hasSearchAttributes() })
    await startOnce(() =>
      workflow.signalWithStart<typeof delivery>('delivery', { ...options, ...once, signal: wakeSignal, signalArgs: [] }),
    )
  }

  const processBatches = async ({ subject }: ProcessBatches): Promise<void> => {
    const type = `${subject.action}Deliveries` as const
    await withTimeout(() =>
      workflow.signalWithStart<typeof releaseDeliveries | typeof cancelDeliveries | typeof attemptDeliveries>(type, {
        ...batchOptions(subject),
        taskQueue,
        signal: checkAgainSignal,
        signalArgs: [],
      }),
    )
  }

  const sendOnce = async (message: OutboxMessage | Start): Promise<void> => {
    switch (message.kind) {
      case 'startDocument': {
        const options = documentOptions(message.input, { registered: await hasSearchAttributes(), urgency: message.urgency })
        const requestEagerStart = startsEagerly && message.eager === true
        return startOnce(() => workflow.start<typeof document>('document', { ...options, ...once, requestEagerStart }))
      }
      case 'startDelivery':
        return startDelivery(message)
      case 'startBulkRetry': {
        const options = bulkRetryOptions(message.input, { registered: await hasSearchAttributes() })
        // A completed bulk retry ends immediately.
        return startOnce(() => workflow.start<typeof bulkRetry>('bulkRetry', { ...options, ...again }))
      }
      case 'startNotice': {
        const options = noticeOptions(message.input, { registered: await hasSearchAttributes() })
        // A notice that was already sent ends immediately.
        return startOnce(() => workflow.start<typeof notice>('notice', { ...options, ...again }))
      }
      case 'retryDelivery':
        return retryDelivery(message)
      case 'cancelDelivery':
        return cancelDelivery(message)
      case 'processBatches':
        return processBatches(message)
      case 'wakeDelivery':
        return wakeDelivery(message)
      default:
        // A later release has stored it, before this one took its place again.
        throw new TypeError(`this release does not know messages of the kind ${(message as { kind: string }).kind}`)
    }
  }

  const send = async (message: OutboxMessage | Start): Promise<void> => {
    try {
      await sendOnce(message)
    } catch (thrown) {
      if (!isInvalid(thrown)) throw thrown
      registered = undefined
      await sendOnce(message)
    }
  }

  /** Starts the workflow of a queue of side work. A workflow that is open looks once more before it ends. */
  const startSideWork = async (kind: SideWorkKind, input: SideWorkInput): Promise<void> => {
    const options = sideWorkOptions(kind, input, { registered: await hasSearchAttributes() })
    const { type } = sideWorkKinds[kind]
    await withTimeout(() =>
      workflow.signalWithStart<SideWorkflow>(type, { ...options, ...again, signal: checkAgainSignal, signalArgs: [] }),
    )
  }

  /** Starts the workflow of a migration, unless it is open. */
  const startDocumentMigration = async (input: DocumentMigrationInput): Promise<void> => {
    const options = documentMigrationOptions(input, { registered: await hasSearchAttributes() })
    await startOnce(() => workflow.start<typeof documentMigration>('documentMigration', { ...options, ...again }))
  }

  const workflows = createDeliveryWorkflows(client, connection, withTimeout)

  return {
    client,
    /** Returns true if the search attributes of the relay are registered on this server. */
    hasSearchAttributes,
    /** Sends a message. Sending it a second time has no further effect. */
    send,
    startSideWork,
    startDocumentMigration,
    ...workflows,
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
