import { setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import { messageOf } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { outboxKey, type Outbox, type OutboxMessage, type StartDocument } from '../db/outbox.ts'
import type { Temporal } from './client.ts'
import { isUnavailable } from './errors.ts'
import { createStartPace, paceLimits } from './start-pace.ts'
import { createStartQueue } from './start-queue.ts'

type LauncherConfig = Pick<Config, 'TEMPORAL_MAX_CONCURRENT_STARTS'>

const launcherLimits = {
  /** Minimum age of a message that a sweep sends. A younger one may still be on its way. */
  sweepAgeMs: 5_000,
  /**
   * Messages that wait in one process beyond those that it sends at a time. The rest waits in the outbox. No workspace takes more of these
   * places than it leaves free for others.
   */
  maxWaiting: 1_000,
  pace: paceLimits,
}

// The queue must have time to begin with a start that it has room for.
const shortestWaitMs = 1_000
// How often a process looks for messages that it has left in the outbox. Temporal has work for longer than this.
const drainIntervalMs = 250
// A sweep sends starts for this long before it looks for other messages again.
const startsPerRoundMs = 15_000
// A transaction is open while starts of the outbox wait for the pace.
const pageMaxWaitMs = 5_000
// Failed messages of one run, after which it ends.
const maxFailures = 100

/** Outcome of a message. `waiting`: it was not its turn in time. `failed`: sending it failed, and other messages may succeed. */
type Sent = 'sent' | 'waiting' | 'failed' | 'unavailable'

/**
 * Sends the messages of the outbox. `launch` sends them right after the commit. `sweep`, a maintenance job of the workers, finds messages
 * that a crash or an outage of Temporal left behind. The two need no coordination, because sending twice has no effect.
 *
 * The starts of documents, which come as fast as source systems send, are paced: what the workers do not take yet waits in the outbox, from
 * which the process that left it there sends it, oldest first. All other messages are sent at once.
 */
export const createLauncher = (
  temporal: Pick<Temporal, 'send' | 'hasBegun'>,
  outbox: Outbox,
  { TEMPORAL_MAX_CONCURRENT_STARTS: maxConcurrent }: LauncherConfig,
  log: Log,
  limits: Partial<typeof launcherLimits> = {},
) => {
  const { sweepAgeMs, maxWaiting, pace: ofPace } = { ...launcherLimits, ...limits }
  const limit = pLimit({ concurrency: maxConcurrent, rejectOnClear: true })
  const open = new Set<Promise<void>>()
  const pace = createStartPace(temporal.hasBegun, () => performance.now(), ofPace)
  const starts = createStartQueue(pace, { maxConcurrent, maxWaiting })
  const closed = new AbortController()

  const send = async (message: OutboxMessage): Promise<Exclude<Sent, 'waiting'>> => {
    const start = message.kind === 'startDocument' ? pace.begin(message) : undefined
    try {
      await temporal.send(message)
      start?.succeeded()
      return 'sent'
    } catch (thrown) {
      log.warn({ message: outboxKey(message), reason: messageOf(thrown) }, 'failed to send a message to Temporal, the sweep will retry it')
      start?.failed(thrown)
      return isUnavailable(thrown) ? 'unavailable' : 'failed'
    }
  }

  const sent: OutboxMessage[] = []
  let removing: Promise<void> | undefined

  // Messages sent during a removal are removed together by the next one.
  const removeSent = async () => {
    try {
      while (sent.length > 0) await outbox.remove(sent.splice(0))
    } catch (thrown) {
      log.warn({ reason: messageOf(thrown) }, 'failed to remove sent messages from the outbox, the sweep will remove them')
    }
    removing = undefined
  }

  const launchOne = async (message: OutboxMessage) => {
    if ((await send(message)) !== 'sent') return
    sent.push(message)
    removing ??= removeSent()
  }

  // Workspaces with a message that this process has left in the outbox. Their later messages follow it, so that the oldest is sent first.
  const behind = new Set<string>()
  let leftAt = 0
  let draining: Promise<void> | undefined

  const leave = (workspace: string) => {
    // Another process sweeps the message.
    if (closed.signal.aborted) return
    behind.add(workspace)
    leftAt = performance.now()
    draining ??= drain()
  }

  const launchStart = (message: StartDocument) => {
    const { workspace } = message.input
    // From then on any process may send the message, this one included. If the queue dropped it earlier, none would send it meanwhile.
    const expiresAt = performance.now() + Math.max(sweepAgeMs, shortestWaitMs)
    const start = { run: () => launchOne(message), drop: () => leave(workspace), expiresAt }
    if (behind.has(workspace) || !starts.offer(workspace, start)) leave(workspace)
  }

  /** Sends messages that have just been committed, in the background. Never throws. What is over the limits stays in the outbox. */
  const launch = (messages: OutboxMessage[]): void => {
    for (const message of messages) {
      if (message.kind === 'startDocument') launchStart(message)
      else if (open.size < maxConcurrent + maxWaiting) {
        const launched = limit(launchOne, message)
          // Only close() rejects. Another process will sweep the message.
          .catch(() => {})
          .finally(() => open.delete(launched))
        open.add(launched)
      }
    }
  }

  /** Sends messages and waits for them. Messages that cannot be sent are left to the sweep. */
  const sendAll = async (messages: OutboxMessage[]): Promise<void> => {
    const outcomes = await limit.map(messages, send)
    await outbox.remove(messages.filter((_, index) => outcomes[index] === 'sent'))
  }

  /** Sends a message in the turn of its workspace. */
  const sendInTurn = (message: StartDocument): Promise<Sent> =>
    new Promise((resolve) => {
      const run = async () => resolve(await send(message))
      starts.add(message.input.workspace, { run, drop: () => resolve('waiting'), expiresAt: performance.now() + pageMaxWaitMs })
    })

  /**
   * Sends the oldest messages that no other process is sending.
   * @param failed keys of messages that are left out; those that fail are added
   * @returns true if there may be more that can be sent
   */
  const sendPage = async (kind: 'starts' | 'others', failed: string[]): Promise<{ sent: number; more: boolean }> => {
    // A transaction locks the messages until they are sent, so there should be no more than can be sent at once.
    const room = kind === 'starts' ? pace.room() : Number.POSITIVE_INFINITY
    const size = Math.max(1, Math.min(maxConcurrent, room))
    const page = { kind, ageMs: sweepAgeMs, limit: size, except: failed }
    let outcomes: Sent[] = []
    const sentNow = await outbox.sendDue(page, async (messages) => {
      outcomes = await Promise.all(
        messages.map((message) => (message.kind === 'startDocument' ? sendInTurn(message) : limit(send, message))),
      )
      const messagesThat = (outcome: Sent) => messages.filter((_, index) => outcomes[index] === outcome)
      failed.push(...messagesThat('failed').map(outboxKey))
      return messagesThat('sent')
    })
    // A few messages that Temporal refuses must not block the others. If it is unavailable or refuses everything, others fail as well.
    const isWorking = !closed.signal.aborted && !outcomes.includes('unavailable') && failed.length < maxFailures
    return { sent: sentNow, more: outcomes.length > 0 && isWorking }
  }

  /** Sends what this process has left in the outbox, as soon as it is old enough for no other process to be sending it. */
  const drain = async () => {
    try {
      for (let beganAt = 0; beganAt <= leftAt + sweepAgeMs;) {
        await sleep(Math.min(sweepAgeMs, drainIntervalMs), undefined, { signal: closed.signal })
        beganAt = performance.now()
        const failed: string[] = []
        while ((await sendPage('starts', failed)).more) closed.signal.throwIfAborted()
        behind.clear()
      }
    } catch (thrown) {
      if (!closed.signal.aborted) log.warn({ reason: messageOf(thrown) }, 'failed to send messages of the outbox, the sweep will send them')
      behind.clear()
    }
    draining = undefined
  }

  /** Sends every overdue message. @returns the number of sent messages */
  const sweep = async (signal?: AbortSignal): Promise<number> => {
    let total = 0
    const sendPages = async (kind: 'starts' | 'others', forMs: number) => {
      const failed: string[] = []
      for (const endsAt = performance.now() + forMs; performance.now() < endsAt;) {
        signal?.throwIfAborted()
        const page = await sendPage(kind, failed)
        total += page.sent
        if (!page.more) return false
      }
      return true
    }
    // Starts may be many and slow. Other messages, such as cancellations, do not wait for all of them.
    do await sendPages('others', Number.POSITIVE_INFINITY)
    while (await sendPages('starts', startsPerRoundMs))
    return total
  }

  return {
    launch,
    sendAll,
    sweep,
    /** Waits for calls in progress. Waiting messages are left to the next process. */
    close: async () => {
      closed.abort()
      limit.clearQueue()
      await starts.close()
      await Promise.all(open)
      await removing
      await draining
    },
  }
}

export type Launcher = ReturnType<typeof createLauncher>
