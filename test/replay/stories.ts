import { setTimeout as delay } from 'node:timers/promises'
import { Context } from '@temporalio/activity'
import type { Client, WorkflowHandle } from '@temporalio/client'
import { WorkflowIdReusePolicy } from '@temporalio/common'
import {
  batchOptions,
  bulkRetryOptions,
  deliveryOptions,
  deliveryWorkflowId,
  signals,
  type AttemptOutcome,
  type BatchSubject,
  type DocumentInput,
} from '../../workflows/messages.ts'

/** What a story has to do with its workflows, beside what their activities answer. */
interface Stage {
  client: Client
  input: DocumentInput
  document: WorkflowHandle
  taskQueue: string
  /** Resolves as the first attempt begins. */
  attempted: Promise<void>
  /** The delivery to this destination, once its state is this one. */
  until(destinationId: string, status: string): Promise<WorkflowHandle>
}

/** One path through the workflows. */
export interface Story {
  /** The name of its file, without the extension. */
  name: string
  destinations?: string[]
  input?: Partial<DocumentInput>
  /** What the nth attempt at a destination comes to. */
  answer(attempt: number, destinationId: string): AttemptOutcome | Promise<AttemptOutcome>
  act?(stage: Stage): Promise<void>
}

/** One that has nothing to do with a single document. */
export interface Solo {
  name: string
  type: 'release' | 'cancel' | 'bulkRetry' | 'chore'
  options: { workflowId: string; args: unknown[] }
  /** How often its activities have something to do, before they have nothing: twice, unless told otherwise. */
  rounds?: number
  act?(workflow: WorkflowHandle): Promise<void>
}

const held: BatchSubject = { action: 'release', by: 'connection', id: 'invoices', name: 'invoices' }
const deleted: BatchSubject = { action: 'cancel', by: 'destination', id: 'archive', name: 'archive' }

const bulkRetryOf = (bulkRetryId: string) => bulkRetryOptions({ bulkRetryId, workspace: 'acme/invoices', searchAttributes: true })

export const solos: Solo[] = [
  { name: 'held-deliveries-released', type: 'release', options: batchOptions(held) },
  { name: 'open-deliveries-cancelled', type: 'cancel', options: batchOptions(deleted) },
  {
    name: 'many-retried',
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
  // the server suggests a new run to one that is long
  { name: 'bulk-retry-of-several-runs', type: 'bulkRetry', options: bulkRetryOf('long'), rounds: 12 },
  { name: 'chore', type: 'chore', options: { workflowId: 'chore/sweep', args: [{ name: 'sweep-outbox', everyMs: 1_000, forMs: 2_500 }] } },
]

const delivered: AttemptOutcome = { status: 'delivered' }
const waiting: AttemptOutcome = { status: 'waiting', inMs: 20 }
const down = (failures: number): AttemptOutcome => ({ status: 'retrying', inMs: 50, failures, error: 'the target answered 503' })
const refused: AttemptOutcome = {
  status: 'failed',
  error: 'the target answered 401: it does not take the credentials of the destination',
  code: 'credentials_refused',
}

const askAgain = async ({ until, input }: Stage) => {
  const delivery = await until('archive', 'failed')
  await delivery.signal(signals.retry, { requestId: 'first', policy: input.policy })
  await delivery.signal(signals.retry, { requestId: 'first', policy: input.policy })
}

const shortWindow = { retryWindowMs: 300 }

/** Every path. The history of each is recorded, and replayed by the test: a change of the workflows must not break what is under way. */
export const stories: Story[] = [
  { name: 'straight-to-one', answer: () => delivered },
  { name: 'straight-to-three', destinations: ['archive', 'mail', 'portal'], answer: () => delivered },
  { name: 'straight-without-search-attributes', input: { searchAttributes: false }, answer: () => delivered },
  {
    name: 'retried-without-search-attributes',
    input: { searchAttributes: false },
    answer: (attempt) => (attempt > 1 ? delivered : down(1)),
  },
  { name: 'relayed-again', input: { revision: 2 }, answer: () => delivered },
  { name: 'retries-then-delivered', answer: (attempt) => (attempt > 3 ? delivered : down(attempt)) },
  {
    name: 'one-of-three-retries',
    destinations: ['archive', 'mail', 'portal'],
    answer: (attempt, id) => (id === 'mail' && attempt < 3 ? down(attempt) : delivered),
  },
  { name: 'failed-then-retried', answer: (attempt) => (attempt > 1 ? delivered : refused), act: askAgain },
  {
    name: 'one-of-three-failed-then-retried',
    destinations: ['archive', 'mail', 'portal'],
    answer: (attempt, id) => (id === 'archive' && attempt === 1 ? refused : delivered),
    act: askAgain,
  },
  { name: 'window-closed', input: shortWindow, answer: () => refused },
  {
    name: 'retried-after-the-window-closed',
    input: shortWindow,
    answer: (attempt) => (attempt > 1 ? delivered : refused),
    act: async ({ client, input, document, taskQueue }) => {
      await document.result().catch(() => {})
      const { destinations, ...shared } = input
      const again = await client.workflow.signalWithStart('delivery', {
        ...deliveryOptions({ ...shared, destination: destinations[0]! }),
        taskQueue,
        workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
        signal: signals.retry,
        signalArgs: [{ requestId: 'second', policy: input.policy }],
      })
      await again.result()
    },
  },
  {
    name: 'delivery-cancelled',
    destinations: ['archive', 'mail'],
    answer: (attempt, id) => (id === 'archive' ? { ...down(attempt), inMs: 60_000 } : delivered),
    act: async ({ until }) => {
      const delivery = await until('archive', 'retrying')
      await delivery.cancel()
    },
  },
  {
    name: 'document-cancelled',
    answer: (attempt) => ({ ...down(attempt), inMs: 60_000 }),
    act: async ({ until, document }) => {
      await until('archive', 'retrying')
      await document.cancel()
    },
  },
  {
    name: 'cancelled-while-it-waits-for-a-hand',
    answer: () => refused,
    act: async ({ until }) => {
      const delivery = await until('archive', 'failed')
      await delivery.cancel()
    },
  },
  {
    name: 'delivery-cancelled-in-an-attempt',
    answer: async () => {
      const beats = setInterval(() => Context.current().heartbeat(), 50)
      return Context.current().cancelled.finally(() => clearInterval(beats))
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
    answer: (attempt, id) => (id === 'archive' ? { ...down(attempt), inMs: 60_000 } : delivered),
    act: async ({ until }) => {
      const delivery = await until('archive', 'retrying')
      await delivery.terminate('not wanted any more')
    },
  },
  {
    name: 'retried-in-mid-round',
    answer: (attempt) => [{ ...down(1), inMs: 1_000 }, refused][attempt - 1] ?? delivered,
    act: async ({ until, input }) => {
      const delivery = await until('archive', 'retrying')
      await delivery.signal(signals.retry, { requestId: 'early', policy: input.policy })
    },
  },
  {
    name: 'retried-by-an-empty-signal',
    answer: (attempt) => (attempt > 1 ? delivered : refused),
    act: async ({ until }) => {
      const delivery = await until('archive', 'failed')
      await delivery.signal(signals.retry)
    },
  },
  { name: 'destination-deleted', answer: () => ({ status: 'cancelled' }) },
  { name: 'busy-then-delivered', answer: (attempt) => (attempt > 2 ? delivered : waiting) },
  {
    name: 'retrying-and-busy',
    answer: (attempt) => [waiting, down(1), waiting, down(2), delivered][attempt - 1] ?? delivered,
  },
  { name: 'busy-for-long', answer: (attempt) => (attempt > 12 ? delivered : waiting) },
]

export const deliveriesOf = ({ documentId, destinations }: DocumentInput) =>
  destinations.map(({ id }) => deliveryWorkflowId(documentId, id))
