import type { z } from 'zod'
import { consoleUrlOf } from '../base/console-url.ts'
import { newId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { DeliveryError, type NoticeMessage } from '../connectors/connector.ts'
import type { Database, Transaction } from '../db/database.ts'
import type { Installation } from '../db/installation.ts'
import { createToBegin } from '../delivery/to-begin.ts'
import { stallNoticeTypes, type stallData } from '../domain/notices.ts'
import type { RelayState, RelayStatus } from '../domain/relay-state.ts'

// The notices about the installation as a whole. Workers and Temporal are what is away, so a process of the API sends them, without a
// workflow. Their state is one value of the table `installation`, for all processes.

type Cause = Exclude<RelayStatus, 'working'>

/** A time in which deliveries are due and not made. */
interface Stall {
  id: string
  cause: Cause
  /** Time at which the oldest delivery was due. */
  openedAt: string
  closedAt: string | null
  /** True once the operator has been told of the beginning. */
  isAnnounced: boolean
  /** When the next attempt to tell may begin. */
  tryAt: string
}

const stallLimits = {
  /** Age of the oldest delivery that is due from which the operator is told. */
  dueMs: 300_000,
  /** Time for which deliveries have to be made again: a worker that fails and is restarted must not cause two notices a minute. */
  settledMs: 60_000,
  /** Pause after an attempt. Longer than an attempt may last. */
  retryMs: 60_000,
  /** Time for which the end is announced, if the target does not take it. */
  endMaxMs: 86_400_000,
}

interface StallDeps {
  db: Database
  relayWatch: { read(): Pick<RelayState, 'status' | 'since'> }
  installation: Installation
  /** Sends to the target of the operator. Has a timeout that is shorter than the pause between two attempts. */
  send(message: NoticeMessage): Promise<DeliveryError | undefined>
  config: Pick<Config, 'RELAY_BASE_URL'>
  log: Pick<Log, 'info' | 'warn'>
}

const summaries: Record<Cause, string> = {
  no_worker: 'No worker is running: documents are received and wait.',
  temporal_unavailable: 'Temporal does not answer: documents are received and wait.',
}
const remedies: Record<Cause, string> = {
  no_worker: 'Start relay worker, and read the last lines of its log. What waits is delivered then.',
  temporal_unavailable:
    'Check that Temporal and its database run, and that the relay reaches it: relay doctor says why not. What waits is delivered then.',
}
const resumed = 'Deliveries are made again: a worker is running, and Temporal answers.'

/** Returns what a message says of a stall. */
export const stallDataOf = (
  { id, cause, openedAt, closedAt }: Pick<Stall, 'id' | 'cause' | 'openedAt' | 'closedAt'>,
  installationId: string,
  baseUrl: string | undefined,
): z.output<typeof stallData> => ({
  installation_id: installationId,
  incident_id: id,
  cause,
  summary: closedAt === null ? summaries[cause] : resumed,
  ...(closedAt === null && { remedy: remedies[cause] }),
  opened_at: openedAt,
  ...(closedAt !== null && { closed_at: closedAt }),
  console_url: consoleUrlOf(baseUrl, 'overview'),
})

/** Creates the check that tells the operator once when deliveries stop, and once when they go on. */
export const createStallCheck = (
  { db, relayWatch, installation, send, config, log }: StallDeps,
  changed: Partial<typeof stallLimits> = {},
) => {
  const { dueMs, settledMs, retryMs, endMaxMs } = { ...stallLimits, ...changed }
  const toBegin = createToBegin(db)

  const read = async (from: Database | Transaction): Promise<Stall | null> =>
    (await from('installation').first<{ stall: Stall | null } | undefined>('stall'))?.stall ?? null

  const change = (decide: (stall: Stall | null) => Stall | null): Promise<void> =>
    db.transaction(async (trx) => {
      await trx('installation').forUpdate().select('id')
      const stall = decide(await read(trx))
      await trx('installation').update({ stall: stall && JSON.stringify(stall) })
    })

  /** Returns what deliveries wait for, if they do so for too long. */
  const findStall = async (now: Date): Promise<Pick<Stall, 'cause' | 'openedAt'> | undefined> => {
    const { status } = relayWatch.read()
    if (status === 'working') return undefined
    const due = await toBegin.findOldestDue()
    return due && due.getTime() <= now.getTime() - dueMs ? { cause: status, openedAt: due.toISOString() } : undefined
  }

  const isSettled = (now: Date): boolean => {
    const { status, since } = relayWatch.read()
    return status === 'working' && now.getTime() - since.getTime() >= settledMs
  }

  const isDue = (stall: Stall, now: Date) => Date.parse(stall.tryAt) <= now.getTime()

  const advance = (stall: Stall | null, found: Pick<Stall, 'cause' | 'openedAt'> | undefined, now: Date): Stall | null => {
    const at = now.toISOString()
    if (!stall) return found ? { id: newId(), ...found, closedAt: null, isAnnounced: false, tryAt: at } : null
    // The end of the earlier one has not been told: it goes on.
    if (stall.closedAt !== null) {
      if (found) return { ...stall, closedAt: null }
      return now.getTime() - Date.parse(stall.closedAt) > endMaxMs ? null : stall
    }
    if (!isSettled(now)) return stall
    if (stall.isAnnounced) return { ...stall, closedAt: at, tryAt: at }
    // While an attempt may be under way, it may still be announced.
    return isDue(stall, now) ? null : stall
  }

  const messageOf = async ({ id, cause, openedAt, closedAt }: Stall, now: Date): Promise<NoticeMessage> => {
    const data = stallDataOf({ id, cause, openedAt, closedAt }, await installation.id(), config.RELAY_BASE_URL)
    const lines = [
      data.summary,
      '',
      `Since:    ${openedAt}, when the oldest delivery that waits was due`,
      ...(closedAt === null ? [] : [`Ended:    ${closedAt}`]),
      ...(data.console_url === undefined ? [] : [`Console:  ${data.console_url}`]),
      ...(data.remedy === undefined ? [] : ['', 'What to do:', `  ${data.remedy}`]),
      '',
      'Sent by Document Relay to its operator.',
      '',
    ]
    return {
      id: `${id}-${closedAt === null ? 'opened' : 'closed'}`,
      subject: `${closedAt === null ? 'Document Relay has stalled' : 'Document Relay goes on'}: ${data.summary}`,
      text: lines.join('\n'),
      event: { type: stallNoticeTypes[closedAt === null ? 'opened' : 'closed'], timestamp: now.toISOString(), data },
    }
  }

  /** Notes the end of an attempt that the target has accepted, unless the stall is over or another one. */
  const noteTold = (told: Stall): Promise<void> =>
    change((stall) => {
      if (stall?.id !== told.id) return stall
      if (told.closedAt === null) return { ...stall, isAnnounced: true, tryAt: new Date().toISOString() }
      // It has begun again in the meantime.
      return stall.closedAt === null ? { ...stall, isAnnounced: false } : null
    })

  /** Looks once, and tells the operator what has changed. */
  return async (now = new Date()): Promise<void> => {
    const found = await findStall(now)
    if (!found && !(await read(db))) return
    let due: Stall | undefined
    await change((before) => {
      const stall = advance(before, found, now)
      if (!stall || (stall.isAnnounced && stall.closedAt === null) || !isDue(stall, now)) return stall
      due = stall
      return { ...stall, tryAt: new Date(now.getTime() + retryMs).toISOString() }
    })
    if (!due) return
    const message = await messageOf(due, now)
    const error = await send(message)
    if (error)
      log.warn(
        { event: message.event.type, error_code: error.code, reason: error.message },
        'the operator could not be told, it is tried again',
      )
    else await noteTold(due)
  }
}
