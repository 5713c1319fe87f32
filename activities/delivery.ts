import { cancellationSignal, activityInfo, CancelledFailure } from '@temporalio/activity'
import type { Config } from '../src/config.ts'
import { DeliveryError, type Connector, type Parcel, type Receipt } from '../src/connectors/connector.ts'
import { parseTarget } from '../src/connectors/index.ts'
import { limitsOf } from '../src/connectors/limits.ts'
import type { ContentStore } from '../src/content/store.ts'
import type { Consignment, Deliveries } from '../src/db/deliveries.ts'
import type { ConnectorType } from '../src/domain/connector-type.ts'
import { nextTry } from '../src/domain/retry.ts'
import { messageOf } from '../src/errors.ts'
import type { OutboundGuard } from '../src/security/outbound.ts'
import type { KeyRing } from '../src/security/seal.ts'
import type { Activities, AttemptInput, AttemptOutcome } from '../workflows/messages.ts'
import { createPlaces, type DestinationLimits } from './places.ts'
import { tellProgress, toldBefore, type Progress } from './progress.ts'
import { sealedUploads, stopped } from './uploads.ts'

export interface ActivityDeps {
  deliveries: Deliveries
  contents: Record<Consignment['content']['store'], ContentStore | undefined>
  findConnector(kind: ConnectorType): Connector | undefined
  openCredentials(consignment: Consignment): unknown
  /** Where the bytes can be fetched without a key; undefined where nobody knows how we are reached. */
  downloadUrl(workspaceId: string, documentId: string): string | undefined
  keyRing: KeyRing
  outbound: OutboundGuard
  config: Pick<
    Config,
    | 'DELIVERY_RETRY_WINDOW_MS'
    | 'DELIVERY_ATTEMPT_TIMEOUT_MS'
    | 'DELIVERY_CONNECT_TIMEOUT_MS'
    | 'DELIVERY_IDLE_TIMEOUT_MS'
    | 'DELIVERY_HEARTBEAT_TIMEOUT_MS'
    | 'DELIVERY_ANSWER_MAX_BYTES'
    | 'DELIVERY_MAX_CONCURRENT_PER_DESTINATION'
    | 'DELIVERY_MAX_PER_MINUTE_PER_DESTINATION'
    | 'DELIVERY_BUSY_MAX_WAIT_MS'
    | 'TEMPORAL_MAX_CONCURRENT_ATTEMPTS'
  >
}

/** Thin hands of the workflows. Each may run twice: a delivery that has ended is not attempted again. */
export const createActivities = (deps: ActivityDeps): Activities => {
  const { config } = deps
  const limits = {
    maxConcurrent: config.DELIVERY_MAX_CONCURRENT_PER_DESTINATION,
    maxPerMinute: config.DELIVERY_MAX_PER_MINUTE_PER_DESTINATION,
  }
  const places = createPlaces(
    { slots: config.TEMPORAL_MAX_CONCURRENT_ATTEMPTS, limits, maxWaitMs: config.DELIVERY_BUSY_MAX_WAIT_MS },
    Date.now,
    Math.random,
  )

  return {
    attemptDelivery: async (input) => {
      const before = toldBefore(activityInfo().heartbeatDetails)
      const place = places.enter(input.destinationId, { waited: (input.waits ?? 0) > 0, resumes: before !== undefined })
      if ('waitMs' in place) return { status: 'waiting', inMs: place.waitMs }
      try {
        const consignment = await deps.deliveries.load(input.documentId, input.destinationId)
        if (!consignment || consignment.status === 'cancelled') return { status: 'cancelled' }
        if (consignment.status === 'delivered') {
          // recorded by a run before this one, which may have come no further
          if (consignment.superseded && takesAPlace(deps, consignment)) await deps.deliveries.resendNewer(input, deps.config)
          return { status: 'delivered' }
        }
        if (consignment.destination.deleted) {
          await deps.deliveries.cancel(input.documentId, input.destinationId)
          return { status: 'cancelled' }
        }
        const waitMs = place.confirm(limitsAt(consignment, limits))
        if (waitMs !== undefined) return { status: 'waiting', inMs: waitMs }
        if (consignment.status === 'failed') await deps.deliveries.reopen(input.documentId, input.destinationId)
        return await attempt(deps, input, consignment, before)
      } finally {
        place.leave()
      }
    },

    recordCancellation: async ({ documentId, destinationId }) => {
      await deps.deliveries.cancel(documentId, destinationId)
    },

    recordTermination: async ({ documentId, destinationId, error }) => {
      await deps.deliveries.fail(documentId, destinationId, error)
    },
  }
}

/** Whether what is delivered there lies at its path, where another document of that name would take its place. */
const takesAPlace = ({ findConnector }: ActivityDeps, { destination }: Consignment) => !findConnector(destination.connector)?.isMessage

const limitsAt = ({ destination }: Consignment, limits: DestinationLimits): DestinationLimits => {
  const own = limitsOf(destination.config)
  return {
    maxConcurrent: own.max_concurrent_deliveries ?? limits.maxConcurrent,
    maxPerMinute: own.max_deliveries_per_minute ?? limits.maxPerMinute,
  }
}

const attempt = async (
  deps: ActivityDeps,
  input: AttemptInput,
  consignment: Consignment,
  before: Partial<Progress> | undefined,
): Promise<AttemptOutcome> => {
  const progress: Progress = { startedAt: Date.now(), bytesSent: 0, saved: before?.saved }
  let { failures } = input
  const cutOff = before?.startedAt !== undefined
  if (cutOff) {
    failures += 1
    const { startedAt = progress.startedAt, bytesSent = 0 } = before
    const outcome = await settle(deps, input, consignment, failures, { startedAt, bytesSent }, interrupted())
    if (outcome.status !== 'retrying') return outcome
  }
  if (consignment.overtaken && takesAPlace(deps, consignment)) return settle(deps, input, consignment, failures, progress, 'superseded')
  // in place of the other run's heartbeat, or that run would be counted again
  const telling = tellProgress(progress, { intervalMs: deps.config.DELIVERY_HEARTBEAT_TIMEOUT_MS / heartbeatsPerTimeout, atOnce: cutOff })
  let result: Receipt | DeliveryError
  try {
    result = await tryToDeliver(deps, input, consignment, progress, telling.save)
  } finally {
    telling.stop()
  }
  return settle(deps, input, consignment, result instanceof DeliveryError ? failures + 1 : failures, progress, result)
}

const heartbeatsPerTimeout = 3

/** What came of it, as a value. @throws CancelledFailure where the workflow or the worker's shutdown ended it */
const tryToDeliver = async (
  deps: ActivityDeps,
  input: AttemptInput,
  consignment: Consignment,
  progress: Progress,
  save: (sealed: string) => void,
): Promise<Receipt | DeliveryError> => {
  const { config } = deps
  const timeUp = AbortSignal.timeout(input.attemptTimeoutMs)
  const uploads = sealedUploads(deps.keyRing, input)
  try {
    const { connector, target } = readTarget(deps, consignment)
    return await connector.deliver(toParcel(deps, input, consignment), target, {
      signal: AbortSignal.any([stopped(cancellationSignal()), timeUp]),
      onProgress: (bytesSent) => {
        progress.bytesSent = bytesSent
      },
      outbound: deps.outbound,
      connectTimeoutMs: config.DELIVERY_CONNECT_TIMEOUT_MS,
      idleTimeoutMs: config.DELIVERY_IDLE_TIMEOUT_MS,
      answerMaxBytes: config.DELIVERY_ANSWER_MAX_BYTES,
      saved: progress.saved === undefined ? undefined : uploads.open(progress.saved),
      save: (state) => save(uploads.seal(state)),
    })
  } catch (thrown) {
    if (cancellationSignal().aborted) throw new CancelledFailure('the attempt was stopped')
    if (timeUp.aborted) return new DeliveryError('attempt_timeout', `the attempt took longer than ${input.attemptTimeoutMs} ms`)
    return thrown instanceof DeliveryError ? thrown : new DeliveryError('unexpected', messageOf(thrown), { cause: thrown })
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
  const { content, workspaceId, docId, compId, arObject, repoId, contentType, receivedAt, path } = consignment
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
    arObject,
    path,
    contentType,
    sizeBytes: content.sizeBytes,
    sha256: content.sha256.toString('hex'),
    receivedAt,
    open: (start = 0) => store.read(content, { start }),
    downloadUrl: () => deps.downloadUrl(workspaceId, input.documentId),
  }
}

const interrupted = () => new DeliveryError('interrupted', 'the worker was lost in mid-delivery')

/** Records the attempt and tells the workflow what is next. */
const settle = async (
  deps: ActivityDeps,
  input: AttemptInput,
  consignment: Consignment,
  failures: number,
  progress: Progress,
  result: Receipt | DeliveryError | 'superseded',
): Promise<AttemptOutcome> => {
  const { deliveries, config } = deps
  const { content, overwrites } = consignment
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
    if (superseded && takesAPlace(deps, consignment)) await deliveries.resendNewer({ documentId, destinationId }, config)
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
    : { status: 'failed', error: result.permanent ? message : `${message} (gave up after ${failures} attempts)`, code: result.code }
}

// an append seldom comes alone
const repeatMs = 10_000

const messageMaxCharacters = 1_000
const clipped = (text: string) => (text.length > messageMaxCharacters ? `${text.slice(0, messageMaxCharacters)}...` : text)
