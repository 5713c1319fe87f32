import { setTimeout as delay } from 'node:timers/promises'
import { Context } from '@temporalio/activity'
import type { Client, WorkflowHandle } from '@temporalio/client'
import { WorkflowIdReusePolicy } from '@temporalio/common'
import type { AttemptOutcome } from '../../src/domain/delivery-run.ts'
import { deliveryWorkflowId } from '../../workflows/ids.ts'
import {
  type BatchSubject,
  checkAgainSignal,
  type DocumentInput,
  type SideWorkOutcome,
  type NoticeOutcome,
  releaseSignal,
  retrySignal,
  wakeSignal,
} from '../../workflows/messages.ts'
import {
  batchOptions,
  bulkRetryOptions,
  documentMigrationOptions,
  deliveryOptions,
  noticeOptions,
  sideWorkOptions,
  type SideWorkKind,
} from '../../workflows/options.ts'

/** The parameters of `act`: access to the workflows of a story. */
interface StoryContext {
  client: Client
  input: DocumentInput
  document: WorkflowHandle
  taskQueue: string
  /** Resolves when the first attempt starts. */
  attempted: Promise<void>
  /** Waits until the delivery to this destination has this status. @returns its workflow */
  until(destinationId: string, status: string): Promise<WorkflowHandle>
}

/** A path through the workflows of a document and its deliveries. */
export interface Story {
  /** Name of the file that holds the histories, without the extension. */
  name: string
  destinations?: string[]
  input?: Partial<DocumentInput>
  /** `false` if the search attributes are not registered. */
  registered?: boolean
  /** Returns the outcome of the nth attempt at a destination. */
  answer(attempt: number, destinationId: string): AttemptOutcome | Promise<AttemptOutcome>
  /** Signals, cancels or starts workflows while the story runs. */
  act?(context: StoryContext): Promise<void>
}

/** A path through a workflow that does not belong to a single document. */
export interface StandaloneStory {
  name: string
  type:
    | 'releaseDeliveries'
    | 'cancelDeliveries'
    | 'attemptDeliveries'
    | 'bulkRetry'
    | 'documentMigration'
    | 'maintenance'
    | 'notice'
    | 'enrichment'
    | 'eventSubscription'
    | 'lateData'
  options: { workflowId: string; args: unknown[] }
  /** Number of calls in which its activities find work, before they find none. Default 2. */
  rounds?: number
  /** Returns the outcome of the nth attempt to send a notice. */
  sent?(attempt: number): NoticeOutcome
  /** Returns the outcome of the nth run of side work. By default, nothing is left. */
  ran?(run: number): Promise<SideWorkOutcome>
  act?(workflow: WorkflowHandle): Promise<void>
}

const workspace = 'acme/invoices'
const held: BatchSubject = { action: 'release', by: 'connection', workspace, id: 'invoices', name: 'invoices' }
const waitingFor: BatchSubject = { action: 'attempt', by: 'destination', workspace, id: 'archive', name: 'archive' }
const deleted: BatchSubject = { action: 'cancel', by: 'destination', workspace, id: 'archive', name: 'archive' }

const noticeOf = (noticeId: string) => noticeOptions({ noticeId, workspace, attemptTimeoutMs: 60_000 }, { registered: true })
const noticeRetrying = (delayMs: number): NoticeOutcome => ({
  status: 'retrying',
  delayMs,
  errorCode: 'http_503',
  error: 'the target answered 503',
})

const sideWorkOf = (kind: SideWorkKind, queueId: string) =>
  sideWorkOptions(kind, { queueId, workspaceId: 'invoices', workspace, name: 'Data warehouse' }, { registered: true })

const migrationOf = (documentMigrationId: string) => documentMigrationOptions({ documentMigrationId, workspace }, { registered: true })

const bulkRetryOf = (bulkRetryId: string) => bulkRetryOptions({ bulkRetryId, workspace }, { registered: true })

export const standaloneStories: StandaloneStory[] = [
  { name: 'held-deliveries-released', type: 'releaseDeliveries', options: batchOptions(held) },
  // A run has a hundred batches.
  {
    name: 'held-deliveries-released-in-several-runs',
    type: 'releaseDeliveries',
    options: batchOptions({ ...held, id: 'orders' }),
    rounds: 101,
  },
  {
    name: 'held-deliveries-released-and-looked-for-again',
    type: 'releaseDeliveries',
    options: batchOptions({ ...held, id: 'claims' }),
    rounds: 20,
    act: async (workflow) => {
      for (let signals = 0; signals < 10; signals += 1) await workflow.signal(checkAgainSignal)
    },
  },
  { name: 'open-deliveries-cancelled', type: 'cancelDeliveries', options: batchOptions(deleted) },
  { name: 'waiting-deliveries-attempted', type: 'attemptDeliveries', options: batchOptions(waitingFor) },
  {
    name: 'bulk-retry',
    type: 'bulkRetry',
    options: bulkRetryOf('many'),
  },
  {
    name: 'bulk-retry-cancelled',
    type: 'bulkRetry',
    options: bulkRetryOf('endless'),
    rounds: Infinity,
    act: async (workflow) => {
      await delay(300)
      await workflow.cancel()
    },
  },
  { name: 'document-migration', type: 'documentMigration', options: migrationOf('first') },
  // Long enough for the server to suggest a new run.
  { name: 'document-migration-of-several-runs', type: 'documentMigration', options: migrationOf('long'), rounds: 12 },
  // Long enough for the server to suggest a new run.
  { name: 'bulk-retry-of-several-runs', type: 'bulkRetry', options: bulkRetryOf('long'), rounds: 12 },
  {
    name: 'notice-delivered-after-two-attempts',
    type: 'notice',
    options: noticeOf('first'),
    sent: (attempt) => (attempt > 2 ? { status: 'delivered' } : noticeRetrying(50)),
  },
  {
    name: 'notice-failed',
    type: 'notice',
    options: noticeOf('second'),
    sent: () => ({ status: 'failed', errorCode: 'http_404', error: 'the target answered 404' }),
  },
  { name: 'notice-of-a-deleted-notification', type: 'notice', options: noticeOf('third'), sent: () => ({ status: 'cancelled' }) },
  {
    name: 'notice-cancelled',
    type: 'notice',
    options: noticeOf('fourth'),
    sent: () => noticeRetrying(60_000),
    act: async (workflow) => {
      await delay(1_000)
      await workflow.cancel()
    },
  },
  { name: 'events-sent', type: 'eventSubscription', options: sideWorkOf('events', 'first') },
  {
    name: 'events-sent-in-part',
    type: 'eventSubscription',
    options: sideWorkOf('events', 'second'),
    ran: async () => ({ status: 'more' }),
  },
  { name: 'documents-enriched', type: 'enrichment', options: sideWorkOf('enrichment', 'first') },
  {
    name: 'documents-not-enriched',
    type: 'enrichment',
    options: sideWorkOf('enrichment', 'second'),
    ran: async () => ({ status: 'retrying', error: 'invoice: the system did not answer in time' }),
  },
  { name: 'late-data-brought', type: 'lateData', options: sideWorkOf('late_data', 'first') },
  {
    name: 'late-data-found-during-a-run',
    type: 'lateData',
    options: sideWorkOf('late_data', 'second'),
    ran: async () => {
      await delay(500)
      return { status: 'idle' }
    },
    act: async (workflow) => {
      await delay(200)
      await workflow.signal(checkAgainSignal)
    },
  },
  {
    name: 'maintenance-job',
    type: 'maintenance',
    options: { workflowId: 'relay-sweep-outbox', args: [{ job: 'sweep-outbox', everyMs: 1_000, forMs: 2_500 }] },
  },
]

const delivered: AttemptOutcome = { status: 'delivered' }
const waiting: AttemptOutcome = { status: 'waiting', askAgainMs: 20 }
const behindCircuit: AttemptOutcome = { status: 'waiting', askAgainMs: 20, circuit: 'open' }
const inLine: AttemptOutcome = { status: 'waiting' }
const asleep: AttemptOutcome = { status: 'waiting', circuit: 'open' }
const unavailable = (failures: number): AttemptOutcome => ({ status: 'retrying', delayMs: 50, failures, error: 'the target answered 503' })
const heldByConnection: AttemptOutcome = { status: 'held' }
const released = Promise.withResolvers<void>()
const woken = Promise.withResolvers<void>()
const refused: AttemptOutcome = {
  status: 'failed',
  error: 'the target answered 401: it rejects the credentials of the destination',
  remedy: 'Save valid credentials for destination archive, then retry the document.',
}

const retryTwice = async ({ until, input }: StoryContext) => {
  const delivery = await until('archive', 'failed')
  await delivery.signal(retrySignal, { requestId: 'first', policy: input.policy })
  await delivery.signal(retrySignal, { requestId: 'first', policy: input.policy })
}

/** Waits until the workflows have closed, and sends what a retry sends. */
const retryClosed = async ({ client, input, document, taskQueue }: StoryContext) => {
  await document.result().catch(() => {})
  const { destinations, ...shared } = input
  const again = await client.workflow.signalWithStart('delivery', {
    ...deliveryOptions({ ...shared, destination: destinations[0]! }, { registered: true }),
    taskQueue,
    workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
    signal: retrySignal,
    signalArgs: [{ requestId: 'second', policy: input.policy }],
  })
  await again.result()
}

/** Sends what the activation of a connection sends for a delivery that it held. */
const release = (client: Client, { destinations, ...terms }: DocumentInput, taskQueue: string) =>
  client.workflow.signalWithStart('delivery', {
    ...deliveryOptions({ ...terms, destination: destinations[0]! }, { registered: true }),
    taskQueue,
    workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
    signal: releaseSignal,
    signalArgs: [terms.policy],
  })

const shortWindow = { retryWindowMs: 300 }

/** All paths. replay.system.test.ts replays the recorded history of each, because a change of the workflows must not break running workflows. */
export const stories: Story[] = [
  { name: 'delivered-to-one-destination', answer: () => delivered },
  { name: 'delivered-to-three-destinations', destinations: ['archive', 'mail', 'portal'], answer: () => delivered },
  { name: 'delivered-without-search-attributes', registered: false, answer: () => delivered },
  {
    name: 'retried-without-search-attributes',
    registered: false,
    answer: (attempt) => (attempt > 1 ? delivered : unavailable(1)),
  },
  { name: 'delivered-again-after-an-append', input: { revision: 2 }, answer: () => delivered },
  { name: 'retries-then-delivered', answer: (attempt) => (attempt > 3 ? delivered : unavailable(attempt)) },
  {
    name: 'one-of-three-retries-then-delivered',
    destinations: ['archive', 'mail', 'portal'],
    answer: (attempt, id) => (id === 'mail' && attempt < 3 ? unavailable(attempt) : delivered),
  },
  { name: 'failed-then-retried', answer: (attempt) => (attempt > 1 ? delivered : refused), act: retryTwice },
  {
    name: 'one-of-three-failed-then-retried',
    destinations: ['archive', 'mail', 'portal'],
    answer: (attempt, id) => (id === 'archive' && attempt === 1 ? refused : delivered),
    act: retryTwice,
  },
  {
    name: 'failed-after-several-attempts-then-retried',
    answer: (attempt) => [unavailable(1), unavailable(2), refused, unavailable(1)][attempt - 1] ?? delivered,
    act: retryTwice,
  },
  { name: 'window-closed', input: shortWindow, answer: () => refused },
  {
    name: 'retried-after-the-window-closed',
    input: shortWindow,
    answer: (attempt) => (attempt > 1 ? delivered : refused),
    act: retryClosed,
  },
  {
    name: 'failed-as-one-of-many-then-retried',
    destinations: ['archive', 'mail'],
    answer: (attempt, id) => (id === 'archive' && attempt === 1 ? { ...refused, keepsOpen: false } : delivered),
    act: retryClosed,
  },
  {
    name: 'delivery-cancelled',
    destinations: ['archive', 'mail'],
    answer: (attempt, id) => (id === 'archive' ? { ...unavailable(attempt), delayMs: 60_000 } : delivered),
    act: async ({ until }) => {
      const delivery = await until('archive', 'retrying')
      await delivery.cancel()
    },
  },
  {
    name: 'document-cancelled',
    answer: (attempt) => ({ ...unavailable(attempt), delayMs: 60_000 }),
    act: async ({ until, document }) => {
      await until('archive', 'retrying')
      await document.cancel()
    },
  },
  {
    name: 'cancelled-while-waiting-for-a-retry',
    answer: () => refused,
    act: async ({ until }) => {
      const delivery = await until('archive', 'failed')
      await delivery.cancel()
    },
  },
  {
    name: 'delivery-cancelled-in-an-attempt',
    answer: async () => {
      const heartbeats = setInterval(() => Context.current().heartbeat(), 50)
      return Context.current().cancelled.finally(() => clearInterval(heartbeats))
    },
    act: async ({ attempted, until }) => {
      await attempted
      const delivery = await until('archive', 'pending')
      await delivery.cancel()
    },
  },
  {
    name: 'delivery-terminated',
    destinations: ['archive', 'mail'],
    answer: (attempt, id) => (id === 'archive' ? { ...unavailable(attempt), delayMs: 60_000 } : delivered),
    act: async ({ until }) => {
      const delivery = await until('archive', 'retrying')
      await delivery.terminate('no longer needed')
    },
  },
  {
    name: 'document-terminated',
    answer: (attempt) => ({ ...unavailable(attempt), delayMs: 60_000 }),
    act: async ({ until, document }) => {
      const delivery = await until('archive', 'retrying')
      await document.terminate('no longer needed')
      await delivery.result().catch(() => {})
    },
  },
  {
    name: 'retried-during-a-round',
    answer: (attempt) => [{ ...unavailable(1), delayMs: 1_000 }, refused][attempt - 1] ?? delivered,
    act: async ({ until, input }) => {
      const delivery = await until('archive', 'retrying')
      await delivery.signal(retrySignal, { requestId: 'early', policy: input.policy })
    },
  },
  {
    name: 'retried-by-an-empty-signal',
    answer: (attempt) => (attempt > 1 ? delivered : refused),
    act: async ({ until }) => {
      const delivery = await until('archive', 'failed')
      await delivery.signal(retrySignal)
    },
  },
  { name: 'destination-deleted', answer: () => ({ status: 'cancelled' }) },
  { name: 'waiting-for-a-slot-then-delivered', answer: (attempt) => (attempt > 2 ? delivered : waiting) },
  {
    name: 'retrying-and-waiting-for-a-slot',
    answer: (attempt) => [waiting, unavailable(1), waiting, unavailable(2), delivered][attempt - 1] ?? delivered,
  },
  {
    name: 'waiting-for-a-circuit-then-delivered',
    answer: (attempt) => [behindCircuit, { ...behindCircuit, circuit: 'half_open' as const }][attempt - 1] ?? delivered,
  },
  {
    name: 'woken-in-line-for-a-slot',
    answer: (attempt) => (attempt > 2 ? delivered : inLine),
    act: async ({ attempted, until }) => {
      await attempted
      for (let calls = 0; calls < 2; calls += 1) {
        await delay(1_000)
        await (await until('archive', 'pending')).signal(wakeSignal)
      }
    },
  },
  {
    name: 'woken-in-line-over-several-runs',
    answer: (attempt) => (attempt > 12 ? delivered : inLine),
    act: async ({ client, input, document }) => {
      const ended = document.result().then(() => true)
      const delivery = client.workflow.getHandle(deliveryWorkflowId(input, 'archive'))
      while (!(await Promise.race([ended, delay(100, false)]))) await delivery.signal(wakeSignal).catch(() => {})
    },
  },
  {
    name: 'retried-in-line-for-a-slot',
    answer: (attempt) => [refused, inLine][attempt - 1] ?? delivered,
    act: async (context) => {
      await retryTwice(context)
      await delay(1_000)
      await (await context.until('archive', 'retrying')).signal(wakeSignal)
    },
  },
  {
    // The next attempt is due after the end of the activity, which Temporal ends at once then.
    name: 'woken-after-the-activity-has-ended-early',
    answer: (attempt) => (attempt > 1 ? delivered : { ...unavailable(1), delayMs: 36_000_000 }),
    act: async ({ until }) => {
      const delivery = await until('archive', 'retrying')
      await delay(1_000)
      await delivery.signal(wakeSignal)
    },
  },
  {
    name: 'woken-behind-a-circuit',
    answer: (attempt) => (attempt > 1 ? delivered : asleep),
    act: async ({ attempted, until }) => {
      await attempted
      await delay(1_000)
      await (await until('archive', 'pending')).signal(wakeSignal)
    },
  },
  {
    name: 'woken-during-the-attempt-that-has-to-wait',
    answer: async (attempt) => {
      if (attempt > 1) return delivered
      await woken.promise
      return asleep
    },
    act: async ({ attempted, until }) => {
      await attempted
      await (await until('archive', 'pending')).signal(wakeSignal)
      woken.resolve()
    },
  },
  {
    name: 'woken-during-a-back-off',
    answer: (attempt) => (attempt > 1 ? delivered : { ...unavailable(1), delayMs: 2_000 }),
    act: async ({ until }) => {
      const delivery = await until('archive', 'retrying')
      await delivery.signal(wakeSignal)
    },
  },
  {
    name: 'held-while-retrying-then-released',
    destinations: ['archive', 'mail'],
    answer: (attempt, id) => (id === 'mail' ? delivered : ([unavailable(1), heldByConnection][attempt - 1] ?? delivered)),
    act: async ({ client, input, document, taskQueue }) => {
      // A held delivery has no workflow: its document closes without it.
      await document.result()
      await (await release(client, input, taskQueue)).result()
    },
  },
  {
    name: 'released-during-the-attempt-that-is-held',
    // The activity returns after the connection has been activated again, so the release finds the workflow open.
    answer: async (attempt) => {
      if (attempt > 1) return delivered
      await released.promise
      return heldByConnection
    },
    act: async ({ client, input, attempted, taskQueue }) => {
      await attempted
      await release(client, input, taskQueue)
      released.resolve()
    },
  },
  { name: 'held-at-the-first-attempt', answer: () => heldByConnection },
  { name: 'waiting-for-a-slot-over-several-runs', answer: (attempt) => (attempt > 12 ? delivered : waiting) },
]

export const deliveriesOf = (input: DocumentInput) => input.destinations.map(({ id }) => deliveryWorkflowId(input, id))
