import type { AttemptInput } from '../../workflows/messages.ts'
import { messageOf } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import type { Config } from '../config/config.ts'
import { callTarget, type CallTargetDeps } from '../connectors/call-target.ts'
import { DeliveryError, type AttemptContext, type Connector, type DeliveryResult, type Payload } from '../connectors/connector.ts'
import { foundInPlace } from '../connectors/shared/earlier-copy.ts'
import { openPayload } from '../connectors/shared/payload-stream.ts'
import { propertiesOf } from '../connectors/target.ts'
import { hashAppended } from '../content/segments.ts'
import type { ContentStore, Stores } from '../content/store.ts'
import type { AttemptOutcome } from '../domain/delivery-run.ts'
import type { Receipt } from '../domain/receipt.ts'
import { decideRetry } from '../domain/retry.ts'
import type { LinkedDownload } from '../security/download-link.ts'
import type { KeyRing } from '../security/seal.ts'
import { recordInterruption, recordLoss } from './broken-off.ts'
import { placeWaitMs, type DeliveryJob, type LoadJob } from './delivery-job.ts'
import { endsUpload, giveUpload } from './give-up.ts'
import { contentKeyOf, nextStep, type RunStart } from './next-step.ts'
import { backOff, failureOf } from './outcome.ts'
import { connectorSignal, createUploadSeal, sendHeartbeats, type Heartbeats, type Progress } from './progress.ts'
import type { Delivered } from './receipt.ts'
import { endOf, failExpired, recordDelivery, recordFailure, replacesByPath, type ConcludeDeps, type TimedInput } from './record-attempt.ts'
import { hold } from './release.ts'
import { decideRoute, wasPassedOver } from './route.ts'
import { saveFirst } from './save-first.ts'
import { leaseMs, renewLease, withdrawAttempt, type Slots } from './slots.ts'
import { transition } from './transition.ts'
import type { WakeNext } from './wake.ts'

/** A destination as it was loaded, for a change that must not be applied to another version of it. */
export interface PinnedDestination {
  workspaceId: string
  id: string
  connector: string
  config: Record<string, unknown>
  credentialsSealed: Buffer
}

export interface DeliverDeps extends ConcludeDeps, CallTargetDeps {
  loadJob: LoadJob
  slots: Slots
  wakeNext: WakeNext
  contents: Stores
  /** Adds values to the config of the destination, unless it was changed since it was loaded. */
  pinConfig(destination: PinnedDestination, values: Record<string, string>): Promise<void>
  /** Returns a link to the content that needs no API key, or undefined if the relay's own address is not configured. */
  downloadUrl(download: LinkedDownload): string | undefined
  /** Brings back what the delivery would replace at a home. @returns why the delivery fails; undefined if it may be made */
  saveReplaced(delivery: AttemptInput & { place: string }, signal: AbortSignal): Promise<DeliveryError | undefined>
  keyRing: KeyRing
  config: CallTargetDeps['config'] & Pick<Config, 'DELIVERY_HEARTBEAT_TIMEOUT_MS'>
}

/** The running activity. */
export interface AttemptRun {
  /** Aborted when the delivery is cancelled or the worker stops. */
  signal: AbortSignal
  /** Details of the last heartbeat of a previous run of the same activity. */
  lastHeartbeat: Partial<Progress> | undefined
  /** A retry that was planned for this time or earlier is due: a timestamp, or `infinity`. By default, the clock of the database decides. */
  dueBy?: string | undefined
  heartbeat(details: unknown): void
}

/**
 * Makes one attempt of a delivery and records it. Safe to run twice: if a previous run has recorded how its attempt has ended and Temporal
 * has not heard it, this run returns what is recorded, and attempts nothing. A retry that comes after the time to live is not made, and an
 * attempt through an inactive connection is held.
 * @throws the reason of `run.signal` if the attempt was cancelled, and failures of the relay itself
 */
export const deliver = async (deps: DeliverDeps, input: AttemptInput, run: AttemptRun): Promise<AttemptOutcome> => {
  const saved = run.lastHeartbeat
  const resumes = saved?.savedUpload !== undefined
  const leavePlace = deps.slots.acquire({ ...input, resumes })
  const attemptId = newId()
  const load = () =>
    deps.loadJob(input, {
      attemptId,
      continues: resumes ? saved.attemptId : undefined,
      hasPlace: leavePlace !== undefined,
      isCalled: input.isCalled ?? false,
      dueBy: run.dueBy,
    })
  const start: RunStart = {
    attemptId,
    hasRouted: false,
    hasRecordedLoss: false,
    replacesByPath: (connector) => replacesByPath(deps, connector),
  }
  try {
    let job = await load()
    for (;;) {
      if (!job) return (await wasPassedOver(deps.db, input)) ? { status: 'held', reason: 'doesNotMatch' } : { status: 'cancelled' }
      const next = nextStep(job, start, saved)
      if (endsUpload(next)) await giveUpload(deps, input, job, saved, run.signal)
      switch (next.step) {
        case 'end':
          return { status: next.status }
        case 'redeliverNewer':
          await deps.redeliverNewer(input)
          return { status: 'delivered' }
        case 'cancel':
          await transition(deps.db, 'cancel', input, 'destination_deleted')
          return { status: 'cancelled' }
        case 'recordLoss': {
          const outcome = await recordLoss(deps, timedInput(input, job), job, next.lost, next.goesOn)
          if (outcome.status === 'failed') await giveUpload(deps, input, job, saved, run.signal)
          if (!next.goesOn || outcome.status !== 'retrying') return outcome
          start.hasRecordedLoss = true
          job = await load()
          break
        }
        case 'fail':
          return await failureOf(deps.db, input, job)
        case 'backOff':
          return backOff(job, next.delayMs)
        case 'resume':
          await transition(deps.db, 'resume', input)
          job = await load()
          break
        case 'hold':
          if (await hold(deps.db, input)) {
            await withdrawAttempt(deps.db, input, attemptId)
            await passOn(deps, job)
            return { status: 'held' }
          }
          job = { ...job, activeRoutes: null }
          break
        case 'route': {
          start.hasRouted = true
          const route = await decideRoute(deps.db, input)
          if (route === 'send') break
          await withdrawAttempt(deps.db, input, attemptId)
          if (route === 'otherConnection') {
            job = await load()
            break
          }
          await passOn(deps, job)
          return { status: 'held', reason: route }
        }
        case 'expire': {
          const outcome = await failExpired(deps, input, job)
          await passOn(deps, job)
          return outcome
        }
        case 'waitInLine':
          return await waitInLine(deps, job, leavePlace !== undefined)
        case 'giveWay':
          await withdrawAttempt(deps.db, input, attemptId)
          throw new Error('another run of this activity has started an attempt meanwhile')
        case 'recordSuperseded':
        case 'send': {
          // There may be room for more: not all that were called have found a place in their worker. With a limit per minute, the next in
          // line takes over the timer.
          if (job.hasLine) await deps.wakeNext(input.destinationId)
          const savedUpload = next.step === 'send' ? next.savedUpload : undefined
          const progress: Progress = { attemptId, content: contentKeyOf(job), bytesSent: 0, savedUpload }
          const attempt: Attempt = { deps, input: timedInput(input, job), job, run, progress, pinned: {} }
          return next.step === 'send' ? await sendAndRecord(attempt) : await recordSuperseded(attempt)
        }
      }
    }
  } finally {
    leavePlace?.()
  }
}

/** A delivery that was called and makes no attempt leaves its turn to the next one in line. */
const passOn = async (deps: DeliverDeps, { isCalled, destination }: DeliveryJob): Promise<void> => {
  if (isCalled) await deps.wakeNext(destination.id)
}

/**
 * A slot may have become free between the refusal and the moment from which others see the delivery in line, so it looks once more. Without
 * a place in this worker it calls no other delivery: the destination may have slots, and those that wait would call each other without end.
 * The first of them asks again by itself.
 */
const waitInLine = async (deps: DeliverDeps, { refusal, destination }: DeliveryJob, hasPlace: boolean): Promise<AttemptOutcome> => {
  // Other limits were set at this moment, and the delivery does not stand in line.
  const { askAgainMs, circuit } = refusal ?? { askAgainMs: placeWaitMs, circuit: null }
  if (hasPlace && askAgainMs === null) await deps.wakeNext(destination.id)
  return { status: 'waiting', ...(askAgainMs !== null && { askAgainMs }), ...(circuit && { circuit }) }
}

/** The first attempt has the whole time to live, however late it is. */
const timedInput = (input: AttemptInput, { failures, remainingMs }: DeliveryJob): TimedInput => ({
  ...input,
  failures,
  expiresAt: Date.now() + (remainingMs ?? input.policy.ttlMs),
})

const heartbeatsPerTimeout = 3

/** An attempt that has been started. */
interface Attempt {
  deps: DeliverDeps
  input: TimedInput
  job: DeliveryJob
  run: AttemptRun
  progress: Progress
  /** Values that the connector adds to the config of the destination. */
  pinned: Record<string, string>
}

const recordSuperseded = async ({ deps, input, job, progress }: Attempt): Promise<AttemptOutcome> => {
  await deps.recordAttempt(input, job, { operation: 'attemptDelivered', outcome: 'superseded', ...endOf(progress) })
  return { status: 'delivered' }
}

const sendAndRecord = async (attempt: Attempt): Promise<AttemptOutcome> => {
  const { deps, input, job, run, progress, pinned } = attempt
  const isContinued = progress.savedUpload !== undefined
  const heartbeats = sendHeartbeats(progress, {
    heartbeat: run.heartbeat,
    intervalMs: deps.config.DELIVERY_HEARTBEAT_TIMEOUT_MS / heartbeatsPerTimeout,
    // A lease that cannot be renewed runs out, and the attempt goes on.
    renew: () => renewLease(deps.db, input.destinationId, progress.attemptId, leaseMs(deps.config)).catch(() => {}),
  })
  try {
    let result: Delivered | DeliveryError
    try {
      result = await send(attempt, heartbeats)
    } catch (thrown) {
      await recordInterruption(deps, input, job, run.signal, progress)
      throw thrown
    }
    if (result instanceof DeliveryError) {
      heartbeats.fail()
      return await recordFailure(deps, input, job, progress, result)
    }
    const outcome = await recordDelivery(deps, input, job, progress, result, isContinued)
    const { workspaceId, destination, credentialsSealed } = job
    if (Object.keys(pinned).length > 0) await deps.pinConfig({ workspaceId, ...destination, credentialsSealed }, pinned)
    return outcome
  } finally {
    heartbeats.stop()
  }
}

/** Sends the document. A failure of the target is returned. @throws as `callTarget` */
const send = async (attempt: Attempt, { saveUpload, stopRenewing }: Heartbeats): Promise<Delivered | DeliveryError> => {
  const { deps, input, job, run, progress, pinned } = attempt
  const uploads = createUploadSeal(deps.keyRing, input)
  try {
    const isThere = (await deps.contents[job.content.store]?.placeOf?.(job.content.id)) === input.destinationId && job.location !== null
    let timeoutMs = input.attemptTimeoutMs
    if (!isThere && job.replacesAtHome !== null) {
      const begunAt = Date.now()
      const replacing = { ...input, place: job.replacesAtHome }
      const obstacle = await saveFirst((signal) => deps.saveReplaced(replacing, signal), { timeoutMs, cancelled: run.signal })
      if (obstacle) return obstacle
      // Both within the time of an attempt: the activity, its lease and the manifest of the day count on it.
      timeoutMs = Math.max(1, timeoutMs - (Date.now() - begunAt))
    }
    return await callTarget(
      deps,
      job,
      { timeoutMs, cancelled: run.signal },
      async (connector, target, context) => {
        const payload = await payloadOf(attempt, connector, context.signal)
        const { sha256, sizeBytes } = payload
        const result = await (isThere ? readAtHome(attempt, payload, context) : connector.deliver(payload, target, context))
        return { ...result, sha256, sizeBytes }
      },
      {
        signal: connectorSignal(run.signal),
        onProgress: (bytesSent) => {
          progress.bytesSent = bytesSent
        },
        saved: progress.savedUpload === undefined ? undefined : uploads.open(progress.savedUpload),
        save: (state) => saveUpload(uploads.seal(state)),
        isLast: !decideRetry(input.policy, { failures: input.failures + 1, remainingMs: input.expiresAt - Date.now() }, 0).retry,
        pin: (values) => Object.assign(pinned, values),
      },
    )
  } finally {
    await stopRenewing()
  }
}

/**
 * Reads a document that the destination alone has, instead of sending it there: a delivery that breaks off could destroy it.
 * @throws DeliveryError if the destination no longer has what was delivered
 */
const readAtHome = async ({ deps, input }: Attempt, payload: Payload, { signal, onProgress }: AttemptContext): Promise<DeliveryResult> => {
  for await (const chunk of openPayload(payload, { signal, onProgress })) void chunk
  const { documentId, destinationId } = input
  const delivered: { receipt: Receipt | null } | undefined = await deps
    .db('deliveries')
    .where({ document_id: documentId, destination_id: destinationId })
    .first('receipt')
  return { path: payload.location!, bytesSent: 0, answer: { ...delivered?.receipt?.target, body: foundInPlace } }
}

const payloadOf = async (
  { deps, input: { documentId, destinationId }, job }: Attempt,
  connector: Connector,
  signal: AbortSignal,
): Promise<Payload> => {
  const { content, workspaceId, workspace, connectionId, repoId, docId, compId, path, location, contentType, receivedAt } = job
  const { erpObjectType, erpObjectId, arObject, fileName, description, fields } = job
  const store = deps.contents[content.store]
  if (!store) {
    throw new DeliveryError(
      'content_store_missing',
      `this worker is not configured for the ${content.store} store, which holds the content`,
    )
  }
  const sha256 = (job.sha256 ?? (await hashContent(deps, store, content, signal))).toString('hex')
  const deliveryId = `${documentId}_${destinationId}`
  return {
    deliveryId,
    messageId: `${deliveryId}.${sha256.slice(0, 16)}${job.again === 0 ? '' : `.again${job.again}`}`,
    attempt: job.attempts + 1,
    again: job.again,
    workspace,
    connectionId,
    documentId,
    repoId,
    docId,
    compId,
    erpObjectType,
    erpObjectId,
    arObject,
    fileName,
    description,
    fields,
    properties: propertiesOf(connector.properties, job.properties, job),
    path,
    location,
    contentType,
    sizeBytes: content.sizeBytes,
    sha256,
    receivedAt,
    open: (start = 0) => store.read(content, { start }),
    downloadUrl: () => deps.downloadUrl({ workspaceId, documentId, destinationId, version: job.destination.downloadLinksVersion }),
  }
}

const hashContent = async ({ db }: DeliverDeps, store: ContentStore, content: DeliveryJob['content'], signal: AbortSignal) => {
  try {
    return await hashAppended(db, store, content, signal)
  } catch (thrown) {
    throw new DeliveryError('content_unreadable', `the stored document could not be read: ${messageOf(thrown)}`, { cause: thrown })
  }
}
