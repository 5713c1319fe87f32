import pLimit from 'p-limit'
import type { Config } from '../config.ts'
import { outboxKey, type Outbox, type OutboxMessage } from '../db/outbox.ts'
import { messageOf } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Temporal } from './client.ts'

type LauncherConfig = Pick<Config, 'TEMPORAL_MAX_CONCURRENT_STARTS' | 'TEMPORAL_MAX_WAITING_STARTS' | 'OUTBOX_SWEEP_AGE_MS'>

// A sweep reads this many messages at a time, and continues while it finds a full page.
const sweepPage = 500

/**
 * Sends the messages of the outbox. `launch` sends them right after the commit. `sweep`, a maintenance job of the workers, finds messages
 * that a crash, an outage of Temporal or an overload left behind. The two need no coordination, because sending twice has no effect.
 */
export const createLauncher = (temporal: Pick<Temporal, 'send'>, outbox: Outbox, config: LauncherConfig, log: Log) => {
  const limit = pLimit({ concurrency: config.TEMPORAL_MAX_CONCURRENT_STARTS, rejectOnClear: true })
  const open = new Set<Promise<void>>()

  const send = async (message: OutboxMessage): Promise<boolean> => {
    try {
      await temporal.send(message)
      return true
    } catch (thrown) {
      log.warn({ message: outboxKey(message), reason: messageOf(thrown) }, 'failed to send a message to Temporal, the sweep will retry it')
      return false
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
    if (!(await send(message))) return
    sent.push(message)
    removing ??= removeSent()
  }

  /** Sends messages that have just been committed, in the background. Never throws. Messages over the limit are left to the sweep. */
  const launch = (messages: OutboxMessage[]): void => {
    for (const message of messages) {
      if (open.size >= config.TEMPORAL_MAX_CONCURRENT_STARTS + config.TEMPORAL_MAX_WAITING_STARTS) return
      const launched = limit(launchOne, message)
        // Only close() rejects. Another process will sweep the message.
        .catch(() => {})
        .finally(() => open.delete(launched))
      open.add(launched)
    }
  }

  /** Sends messages and waits for them. Messages that cannot be sent are left to the sweep. */
  const sendAll = async (messages: OutboxMessage[]): Promise<void> => {
    const outcomes = await limit.map(messages, send)
    await outbox.remove(messages.filter((_, index) => outcomes[index]))
  }

  /** Sends every overdue message. @returns the number of sent messages */
  const sweep = async (signal?: AbortSignal): Promise<number> => {
    let total = 0
    for (;;) {
      signal?.throwIfAborted()
      const due = await outbox.findDue(config.OUTBOX_SWEEP_AGE_MS, sweepPage)
      const swept: OutboxMessage[] = []
      for (let next = 0; next < due.length; next += config.TEMPORAL_MAX_CONCURRENT_STARTS) {
        const batch = due.slice(next, next + config.TEMPORAL_MAX_CONCURRENT_STARTS)
        const outcomes = await Promise.all(batch.map(send))
        swept.push(...batch.filter((_, index) => outcomes[index]))
        // Temporal is unavailable, so the other messages would fail as well.
        if (!outcomes.includes(true)) break
      }
      await outbox.remove(swept)
      total += swept.length
      if (swept.length < sweepPage) return total
    }
  }

  return {
    launch,
    sendAll,
    sweep,
    /** Waits for calls in progress. Waiting messages are left to the next process. */
    close: async () => {
      limit.clearQueue()
      await Promise.all(open)
      await removing
    },
  }
}

export type Launcher = ReturnType<typeof createLauncher>
