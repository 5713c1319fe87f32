import type { NoticeOutcome } from '../../workflows/messages.ts'
import type { Config } from '../config/config.ts'
import { callTarget, type CallTargetDeps } from '../connectors/call-target.ts'
import { DeliveryError } from '../connectors/connector.ts'
import { createOpenCredentials } from '../connectors/target.ts'
import { record, systemActor } from '../db/audit.ts'
import type { Database } from '../db/database.ts'
import { dueInMs } from '../db/due.ts'
import { toCamelCase } from '../domain/casing.ts'
import { noticeData, noticeTypeOf, type IncidentEvent, type noticeStatuses, type Transition } from '../domain/notices.ts'
import { decideRetry } from '../domain/retry.ts'
import { retryPolicyOf, workspaceSettings } from '../domain/settings.ts'
import type { KeyRing } from '../security/seal.ts'
import { subjectOf, textOf } from './text.ts'

export interface SendNoticeDeps extends Omit<CallTargetDeps, 'openCredentials'> {
  db: Database
  keyRing: KeyRing
  config: CallTargetDeps['config'] & Pick<Config, 'RELAY_BASE_URL'>
}

interface NoticeJob {
  id: string
  status: (typeof noticeStatuses)[number]
  attempts: number
  lastError: string | null
  lastErrorCode: string | null
  /** Time until the next attempt. Null if it is due. */
  dueInMs: number | null
  createdAt: Date
  event: IncidentEvent
  transition: Transition
  data: Record<string, unknown>
  notification: string
  workspaceId: string
  /** `{userSlug}/{workspaceSlug}` */
  workspace: string
  settings: object
  destination: { id: string; connector: string; config: Record<string, unknown> }
  credentialsSealed: Buffer
}

/** The end of an attempt. */
interface AttemptEnd {
  status: NoticeJob['status']
  error?: { code: string; message: string }
  delayMs?: number
}

const load = async (db: Database, noticeId: string, dueBy: string | null): Promise<NoticeJob | undefined> => {
  const { rows } = await db.raw<{ rows: NoticeJob[] }>(
    `
    select
      notices.id, notices.status, attempts, notices.last_error as "lastError", notices.last_error_code as "lastErrorCode",
      ${dueInMs('notices.next_attempt_at')} as "dueInMs", notices.created_at as "createdAt", incidents.event, transition, data,
      notifications.name as notification, notices.workspace_id as "workspaceId",
      user_slug || '/' || workspace_slug as workspace, settings, credentials_sealed as "credentialsSealed",
      jsonb_build_object('id', destinations.id, 'connector', connector_type, 'config', config) as destination
    from notices
    join incidents on incidents.id = incident_id
    join notifications on notifications.id = notification_id
    join destinations on destinations.id = destination_id
    join workspaces on workspaces.id = notices.workspace_id
    where notices.id = :noticeId
    `,
    { noticeId, dueBy },
  )
  return rows[0]
}

/** Sends a notice. A failure of the target is returned. @throws as `callTarget` */
const send = (
  deps: SendNoticeDeps,
  job: NoticeJob,
  limits: { timeoutMs: number; cancelled: AbortSignal },
): Promise<DeliveryError | undefined> => {
  const { event, transition } = job
  const data = toCamelCase(noticeData, job.data as never)
  const message = {
    id: job.id,
    workspace: data.workspace,
    subject: subjectOf({ transition, data }),
    text: textOf({ transition, data, notification: job.notification }),
    event: { type: noticeTypeOf(event, transition), timestamp: job.createdAt.toISOString(), data: job.data },
  }
  const callDeps = { ...deps, openCredentials: createOpenCredentials(deps.keyRing) }
  return callTarget(callDeps, job, limits, async (connector, target, context) => {
    if (!connector.sendNotice) {
      throw new DeliveryError('connector_unknown', `destinations of the type ${connector.kind} cannot send notices`)
    }
    await connector.sendNotice(message, target, context)
    return undefined
  })
}

/** Returns what follows from a failure, by the retry settings of the workspace as they are now. */
const failureOf = ({ settings, attempts, createdAt }: NoticeJob, error: DeliveryError): AttemptEnd => {
  const policy = retryPolicyOf(workspaceSettings(settings))
  const remainingMs = createdAt.getTime() + policy.ttlMs - Date.now()
  const decision = decideRetry(policy, { failures: attempts + 1, remainingMs, retryAfterMs: error.retryAfterMs }, Math.random())
  return error.permanent || !decision.retry ? { status: 'failed', error } : { status: 'pending', error, delayMs: decision.delayMs }
}

const endDescriptions = { delivered: 'was delivered', failed: 'could not be delivered' }

/** Records an attempt, unless the notice has ended. */
const recordEnd = (db: Database, job: Pick<NoticeJob, 'id'>, { status, error, delayMs }: AttemptEnd): Promise<void> =>
  db.transaction(async (trx) => {
    const [row] = await trx('notices')
      .where({ id: job.id, status: 'pending' })
      .update({
        status,
        attempts: trx.raw('attempts + 1'),
        last_error: error?.message ?? null,
        last_error_code: error?.code ?? null,
        next_attempt_at: delayMs === undefined ? null : trx.raw(`now() + ? * interval '1 millisecond'`, [delayMs]),
        delivered_at: status === 'delivered' ? trx.fn.now() : null,
      })
      .returning(['workspace_id as workspaceId', 'incident_id as incidentId', 'notification_id as notificationId', 'attempts', 'data'])
    if (!row || status === 'pending') return
    await record(trx, {
      workspaceId: row.workspaceId,
      event: `notice.${status}`,
      subjectId: job.id,
      description: `The notice "${row.data.summary}" ${endDescriptions[status]}.`,
      metadata: {
        incident_id: row.incidentId,
        notification_id: row.notificationId,
        attempts: row.attempts,
        ...(error && { error_code: error.code }),
      },
      actor: systemActor,
    })
  })

export const createSendNotice = (deps: SendNoticeDeps) => {
  const { db } = deps
  return {
    /**
     * Makes one attempt to send a notice and records it. Safe to run twice: a repetition has the same id, and if a previous attempt is
     * recorded and Temporal has not heard of it, nothing is sent, and what is recorded is returned.
     * @param dueBy an attempt that was planned for this time or earlier is due: a timestamp, or `infinity`. By default, the clock of the
     * database decides
     * @param cancelled aborted when the workflow is cancelled or the worker stops
     * @throws the reason of `cancelled`, and failures of the relay itself
     */
    sendNotice: async (noticeId: string, attemptTimeoutMs: number, cancelled: AbortSignal, dueBy?: string): Promise<NoticeOutcome> => {
      const job = await load(db, noticeId, dueBy ?? null)
      if (!job) return { status: 'cancelled' }
      if (job.status === 'delivered') return { status: 'delivered' }
      const recorded = { error: job.lastError ?? '', errorCode: job.lastErrorCode ?? '' }
      if (job.status === 'failed') return { status: 'failed', ...recorded }
      if (job.dueInMs !== null && job.attempts > 0) return { status: 'retrying', delayMs: job.dueInMs, ...recorded }
      const failure = await send(deps, job, { timeoutMs: attemptTimeoutMs, cancelled })
      if (failure) {
        const end = failureOf(job, failure)
        await recordEnd(db, job, end)
        const error = { error: failure.message, errorCode: failure.code }
        return end.delayMs === undefined ? { status: 'failed', ...error } : { status: 'retrying', delayMs: end.delayMs, ...error }
      }
      await recordEnd(db, job, { status: 'delivered' })
      return { status: 'delivered' }
    },

    /** Records that an operator cancelled the workflow of a notice. */
    cancelNotice: (noticeId: string): Promise<void> =>
      recordEnd(db, { id: noticeId }, { status: 'failed', error: { code: 'interrupted', message: 'an operator cancelled the workflow' } }),
  }
}

export type SendNotice = ReturnType<typeof createSendNotice>
