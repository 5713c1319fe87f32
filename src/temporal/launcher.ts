import pLimit from 'p-limit'
import type { Config } from '../config.ts'
import { keyOf, type Outbox, type OutboxMessage } from '../db/outbox.ts'
import { messageOf } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Temporal } from './client.ts'

type LauncherConfig = Pick<Config, 'TEMPORAL_MAX_CONCURRENT_STARTS' | 'TEMPORAL_MAX_WAITING_STARTS' | 'OUTBOX_SWEEP_AGE_MS'>

// one sweep reads this many messages at a time, and goes on as long as it finds a full page
const sweepPage = 500

/**
 * Sends what the outbox holds. `launch` is the quick way, straight after the commit; `sweep`, a chore of the workers, finds what a
 * crash, an outage of Temporal or a full house left behind. Sending twice does no harm, so the two need not know of each other.
 */
export const createLauncher = (temporal: Pick<Temporal, 'send'>, outbox: Outbox, config: LauncherConfig, log: Log) => {
  const oneOfMany = pLimit({ concurrency: config.TEMPORAL_MAX_CONCURRENT_STARTS, rejectOnClear: true })
  const open = new Set<Promise<void>>()

  const start = async (message: OutboxMessage): Promise<boolean> => {
    try {
      await temporal.send(message)
      return true
    } catch (thrown) {
      log.warn({ message: keyOf(message), reason: messageOf(thrown) }, 'not sent to Temporal yet, the sweep will try again')
      return false
    }
  }

  const started: OutboxMessage[] = []
  let removing: Promise<void> | undefined

  // while one removal is under way, the next ones gather for it
  const removeStarted = async () => {
    try {
      while (started.length > 0) await outbox.remove(started.splice(0))
    } catch (thrown) {
      log.warn({ reason: messageOf(thrown) }, 'workflows are started, their outbox entries stay until the sweep')
    }
    removing = undefined
  }

  const launchOne = async (message: OutboxMessage) => {
    if (!(await start(message))) return
    started.push(message)
    removing ??= removeStarted()
  }

  /** Starts the workflows of documents that have just been committed. Never throws; past the limit it leaves them to the sweep. */
  const launch = (messages: OutboxMessage[]): void => {
    for (const message of messages) {
      if (open.size >= config.TEMPORAL_MAX_CONCURRENT_STARTS + config.TEMPORAL_MAX_WAITING_STARTS) return
      const launched = oneOfMany(launchOne, message)
        // rejected by close() only: the sweep of whoever comes next will find it
        .catch(() => {})
        .finally(() => open.delete(launched))
      open.add(launched)
    }
  }

  /** Sends these and waits until that is done; what cannot be sent is left to the sweep. */
  const sendAll = async (messages: OutboxMessage[]): Promise<void> => {
    const outcomes = await oneOfMany.map(messages, start)
    await outbox.remove(messages.filter((_, index) => outcomes[index]))
  }

  /** Sends everything that is overdue. @returns how many messages that were */
  const sweep = async (signal?: AbortSignal): Promise<number> => {
    let total = 0
    for (;;) {
      signal?.throwIfAborted()
      const due = await outbox.findDue(config.OUTBOX_SWEEP_AGE_MS, sweepPage)
      const swept: OutboxMessage[] = []
      for (let next = 0; next < due.length; next += config.TEMPORAL_MAX_CONCURRENT_STARTS) {
        const batch = due.slice(next, next + config.TEMPORAL_MAX_CONCURRENT_STARTS)
        const outcomes = await Promise.all(batch.map(start))
        swept.push(...batch.filter((_, index) => outcomes[index]))
        // Temporal is away: the rest would fail the same way
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
    /** Waits for what is under way; what has not begun is left to the next process. */
    close: async () => {
      oneOfMany.clearQueue()
      await Promise.all(open)
      await removing
    },
  }
}

export type Launcher = ReturnType<typeof createLauncher>
