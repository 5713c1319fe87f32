import { cancellationSignal, heartbeat, activityInfo, CancelledFailure } from '@temporalio/activity'
import type { Config } from '../src/config.ts'
import { DeliveryError, type Connector, type Parcel, type Receipt } from '../src/connectors/connector.ts'
import { parseTarget } from '../src/connectors/index.ts'
import type { ContentStore } from '../src/content/store.ts'
import type { Consignment, Deliveries } from '../src/db/deliveries.ts'
import type { ConnectorType } from '../src/domain/connector-type.ts'
import { nextTry } from '../src/domain/retry.ts'
import { messageOf } from '../src/errors.ts'
import type { OutboundGuard } from '../src/security/outbound.ts'
import type { Activities, AttemptInput, AttemptOutcome } from '../workflows/messages.ts'

export interface ActivityDeps {
  deliveries: Deliveries
  contents: Record<Consignment['content']['store'], ContentStore | undefined>
  findConnector(kind: ConnectorType): Connector | undefined
  openCredentials(consignment: Consignment): unknown
  outbound: OutboundGuard
  config: Pick<
    Config,
    | 'DELIVERY_RETRY_WINDOW_MS'
    | 'DELIVERY_ATTEMPT_TIMEOUT_MS'
    | 'DELIVERY_CONNECT_TIMEOUT_MS'
    | 'DELIVERY_IDLE_TIMEOUT_MS'
    | 'DELIVERY_HEARTBEAT_TIMEOUT_MS'
    | 'DELIVERY_ANSWER_MAX_BYTES'
  >
}

/** What a heartbeat carries: enough for the next run to tell that this one was cut off. */
interface Progress {
  startedAt: number
  bytesSent: number
}

// a heartbeat is a call to the server: an attempt that is over sooner than this sends none
const firstHeartbeatMs = 1_000
const heartbeatsPerTimeout = 3

/** Thin hands of the workflows. Each may run twice: a delivery that has ended is not attempted again. */
export const createActivities = (deps: ActivityDeps): Activities => ({
  attemptDelivery: async (input) => {
    const consignment = await deps.deliveries.load(input.documentId, input.destinationId)
    if (!consignment || consignment.status === 'cancelled') return { status: 'cancelled' }
    const takesAPlace = !deps.findConnector(consignment.destination.connector)?.isMessage
    if (consignment.status === 'delivered') {
      // recorded by a run before this one, which may have come no further
      if (consignment.superseded && takesAPlace)
        await deps.deliveries.resendNewer({ documentId: input.documentId, destinationId: input.destinationId }, deps.config)
      return { status: 'delivered' }
    }
    if (consignment.destination.deleted) {
      await deps.deliveries.cancel(input.documentId, input.destinationId)
      return { status: 'cancelled' }
    }
    if (consignment.status === 'failed') await deps.deliveries.reopen(input.documentId, input.destinationId)

    const progress: Progress = { startedAt: Date.now(), bytesSent: 0 }
    let { failures } = input
    const cutOff = activityInfo().heartbeatDetails as Progress | undefined
    if (cutOff) {
      failures += 1
      const outcome = await settle(deps, input, consignment, failures, cutOff, interrupted())
      if (outcome.status !== 'retrying') return outcome
      // in place of the other run's, or that one would be counted again
      heartbeat({ ...progress })
    }

    if (consignment.overtaken && takesAPlace) {
      return settle(deps, input, consignment, failures, progress, 'superseded')
    }
    const result = await tryToDeliver(deps, input, consignment, progress)
    return settle(deps, input, consignment, result instanceof DeliveryError ? failures + 1 : failures, progress, result)
  },

  recordCancellation: async ({ documentId, destinationId }) => {
    await deps.deliveries.cancel(documentId, destinationId)
  },

  recordTermination: async ({ documentId, destinationId, error }) => {
    await deps.deliveries.fail(documentId, destinationId, error)
  },
})

/** What came of it, as a value. @throws CancelledFailure where the workflow or the worker's shutdown ended it */
const tryToDeliver = async (
  deps: ActivityDeps,
  input: AttemptInput,
  consignment: Consignment,
  progress: Progress,
): Promise<Receipt | DeliveryError> => {
  const { config } = deps
  const timeUp = AbortSignal.timeout(input.attemptTimeoutMs)
  const beats = beatWhile(progress, config.DELIVERY_HEARTBEAT_TIMEOUT_MS / heartbeatsPerTimeout)
  try {
    const { connector, target } = readTarget(deps, consignment)
    return await connector.deliver(toParcel(deps, input, consignment), target, {
      signal: AbortSignal.any([cancellationSignal(), timeUp]),
      onProgress: (bytesSent) => {
        progress.bytesSent = bytesSent
      },
      outbound: deps.outbound,
      connectTimeoutMs: config.DELIVERY_CONNECT_TIMEOUT_MS,
      idleTimeoutMs: config.DELIVERY_IDLE_TIMEOUT_MS,
      answerMaxBytes: config.DELIVERY_ANSWER_MAX_BYTES,
    })
  } catch (thrown) {
    if (cancellationSignal().aborted) throw new CancelledFailure('the attempt was stopped')
    if (timeUp.aborted) return new DeliveryError('attempt_timeout', `the attempt took longer than ${input.attemptTimeoutMs} ms`)
    return thrown instanceof DeliveryError ? thrown : new DeliveryError('unexpected', messageOf(thrown), { cause: thrown })
  } finally {
    beats.stop()
  }
}

const readTarget = (deps: ActivityDeps, consignment: Consignment) => {
  const { connector: kind, config, id } = consignment.destination
  const connector = deps.findConnector(kind)
  if (!connector) throw new DeliveryError('connector_unknown', `this worker has no connector of type ${kind}`)
  const parsed = parseTarget(connector, { config, credentials: deps.openCredentials(consignment) })
  if ('faults' in parsed) {
    const faults = parsed.faults.map(({ path, message }) => `${path}: ${message}`).join('; ')
    throw new DeliveryError('config_invalid', `destination ${id} does not fit its connector, save it again: ${faults}`, { permanent: true })
  }
  return { connector, target: parsed.target }
}

const toParcel = (deps: ActivityDeps, input: AttemptInput, consignment: Consignment): Parcel => {
  const { content, docId, compId, repoId, contentType, receivedAt, path } = consignment
  const store = deps.contents[content.store]
  if (!store)
    throw new DeliveryError(
      'content_store_missing',
      `the content lies in the ${content.store} store, which this worker is not configured for`,
    )
  return {
    deliveryId: `${input.documentId}_${input.destinationId}`,
    documentId: input.documentId,
    repoId,
    docId,
    compId,
    path,
    contentType,
    sizeBytes: content.sizeBytes,
    sha256: content.sha256.toString('hex'),
    receivedAt,
    open: (start = 0) => store.read(content, { start }),
  }
}

const interrupted = () => new DeliveryError('interrupted', 'the worker was lost in mid-delivery')

/** Records the attempt and tells the workflow what is next. */
const settle = async (
  { deliveries, findConnector, config }: ActivityDeps,
  input: AttemptInput,
  { content, overwrites, destination }: Consignment,
  failures: number,
  progress: Progress,
  result: Receipt | DeliveryError | 'superseded',
): Promise<AttemptOutcome> => {
  const { documentId, destinationId } = input
  const record = {
    documentId,
    destinationId,
    contentId: content.id,
    overwrites,
    startedAt: new Date(progress.startedAt),
    durationMs: Date.now() - progress.startedAt,
  }
  if (result === 'superseded') {
    await deliveries.record({ ...record, status: 'delivered', outcome: 'superseded', bytesSent: 0 })
    return { status: 'delivered' }
  }
  if (!(result instanceof DeliveryError)) {
    const { path: location, answer, bytesSent } = result
    const { status, superseded } = await deliveries.record({
      ...record,
      status: 'delivered',
      outcome: 'delivered',
      location,
      bytesSent,
      ...(answer && { answer }),
    })
    if (superseded && !findConnector(destination.connector)?.isMessage) await deliveries.resendNewer({ documentId, destinationId }, config)
    if (status !== 'retrying') return { status: 'delivered' }
    return { status, inMs: repeatMs, failures, error: 'the document, or what lies at its path, was changed while it was sent' }
  }

  const next = nextTry(
    input.policy,
    { failures, remainingMs: input.remainingMs - record.durationMs, retryAfterMs: result.retryAfterMs },
    Math.random(),
  )
  const retrying = next.again && !result.permanent
  const message = clipped(result.message)
  const { status } = await deliveries.record({
    ...record,
    status: retrying ? 'retrying' : 'failed',
    outcome: result.code === 'interrupted' ? 'interrupted' : result.permanent ? 'permanent' : 'retryable',
    error: { code: result.code, message },
    ...(result.answer && { answer: result.answer }),
    bytesSent: progress.bytesSent,
  })
  if (status === 'cancelled' || status === 'delivered') return { status }
  return retrying && status === 'retrying'
    ? { status: 'retrying', inMs: next.inMs, failures, error: message }
    : { status: 'failed', error: result.permanent ? message : `${message} (gave up after ${failures} attempts)` }
}

// an append seldom comes alone
const repeatMs = 10_000

const messageMaxCharacters = 1_000
const clipped = (text: string) => (text.length > messageMaxCharacters ? `${text.slice(0, messageMaxCharacters)}...` : text)

const beatWhile = (progress: Progress, intervalMs: number) => {
  let beaten = false
  const beat = () => {
    beaten = true
    heartbeat({ ...progress })
  }
  let interval: NodeJS.Timeout | undefined
  const first = setTimeout(
    () => {
      beat()
      interval = setInterval(beat, intervalMs)
    },
    Math.min(firstHeartbeatMs, intervalMs),
  )
  return {
    stop: () => {
      clearTimeout(first)
      clearInterval(interval)
      // over, one way or the other: should recording it fail, the next run must not take it for cut off
      if (beaten) heartbeat()
    },
  }
}
