import { connectionSettings } from '../domain/connection-settings.ts'
import { passesFilter } from '../domain/fan-out.ts'
import type { DeliveryJob } from './delivery-job.ts'
import type { Progress } from './progress.ts'

// What a run of the activity does with the delivery that it has loaded, as a pure function. deliver.ts performs the effects.

/** The run of the activity. */
export interface RunStart {
  /** The attempt that it was to start. */
  attemptId: string
  /** True once it has decided whether the filter of the connection selects the document. */
  hasRouted: boolean
  /** True once it has recorded the attempt of a lost worker, and loaded the delivery again. */
  hasRecordedLoss: boolean
  /** Returns true if a destination of this kind keeps one document per path, which a later document replaces. */
  replacesByPath(connector: string): boolean
}

export type Step =
  /** Nothing is left to do. */
  | { step: 'end'; status: 'cancelled' | 'delivered' | 'held' }
  /** A previous run may have recorded that the document arrived, and stopped before this step. */
  | { step: 'redeliverNewer' }
  /** The destination was deleted. */
  | { step: 'cancel' }
  /** The worker of this attempt was lost. If its upload goes on, so does this run. */
  | { step: 'recordLoss'; lost: { attemptId: string; bytesSent: number }; goesOn: boolean }
  /** A previous run has recorded how the round ended, and its answer was lost. */
  | { step: 'fail' }
  /** A previous run has recorded that a retry follows, and its answer was lost. The retry is not due yet. */
  | { step: 'backOff'; delayMs: number }
  /** An operator has signalled the workflow without the API. The next step follows. */
  | { step: 'resume' }
  /** The next step follows if the connection has been activated. */
  | { step: 'hold' }
  /** The filter of the connection needs business data, which is known by now or not. */
  | { step: 'route' }
  | { step: 'expire' }
  | { step: 'waitInLine' }
  /** Another run of this activity has started an attempt. */
  | { step: 'giveWay' }
  /** A newer document has been delivered to the same place. */
  | { step: 'recordSuperseded' }
  /** @param savedUpload the upload to continue, sealed */
  | { step: 'send'; savedUpload: string | undefined }

/** Names the content that an attempt sends. An upload of another content cannot be continued. */
export const contentKeyOf = ({ content, overwrites }: Pick<DeliveryJob, 'content' | 'overwrites'>) =>
  [content.id, content.sizeBytes, overwrites].join()

/** Returns true if the connection of a delivery is inactive, and no other active connection leads the document to the destination. */
const isInactive = ({ activeRoutes, ...job }: DeliveryJob): boolean => {
  const document = { ...job, sizeBytes: job.content.sizeBytes }
  return activeRoutes !== null && !activeRoutes.some((settings) => passesFilter(connectionSettings(settings), document))
}

/** @param saved details of the last heartbeat of a previous run */
export const nextStep = (job: DeliveryJob, start: RunStart, saved: Partial<Progress> | undefined): Step => {
  const { status, attemptId } = job
  const replacesByPath = start.replacesByPath(job.destination.connector)
  if (status === 'cancelled') return { step: 'end', status }
  if (status === 'delivered') {
    return job.superseded && replacesByPath && job.location !== null ? { step: 'redeliverNewer' } : { step: 'end', status }
  }
  if (job.destination.deleted) return { step: 'cancel' }
  if (status === 'held') return { step: 'end', status }
  if (attemptId !== null && attemptId !== start.attemptId) {
    if (start.hasRecordedLoss) return { step: 'giveWay' }
    const isOfPreviousRun = saved?.attemptId === attemptId
    const bytesSent = isOfPreviousRun ? (saved.bytesSent ?? 0) : 0
    return { step: 'recordLoss', lost: { attemptId, bytesSent }, goesOn: isOfPreviousRun && saved.savedUpload !== undefined }
  }
  if (job.isRoundOver) return { step: 'fail' }
  if (status === 'failed') return { step: 'resume' }
  if (job.dueInMs !== null) return { step: 'backOff', delayMs: job.dueInMs }
  if (isInactive(job)) return { step: 'hold' }
  if (job.isExpired) return { step: 'expire' }
  if (!job.hasSlot) return { step: 'waitInLine' }
  if (attemptId === null) return { step: 'giveWay' }
  if (job.isFilteredByFields && job.attempts === 0 && !start.hasRouted) return { step: 'route' }
  if (job.overtaken && replacesByPath) return { step: 'recordSuperseded' }
  return { step: 'send', savedUpload: saved?.content === contentKeyOf(job) ? saved.savedUpload : undefined }
}
