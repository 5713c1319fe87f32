import pLimit from 'p-limit'
import { logFailure } from '../base/failure-log.ts'
import type { Log } from '../base/log.ts'
import { createOnItsOwn, type PassOver } from '../db/on-its-own.ts'
import { outboxKey, type Outbox, type OutboxMessage, type Sent } from '../db/outbox.ts'
import type { Start } from '../db/starts.ts'
import type { Temporal } from './client.ts'
import { isUnavailable } from './errors.ts'

const launcherLimits = {
  /** Minimum age of a message that a sweep sends. A younger one may still be on its way. */
  sweepAgeMs: 5_000,
  /** Messages that a process sends at a time. */
  maxConcurrent: 20,
  /** Messages of `launch` that wait in a process beyond these. The sweep sends the others, and the dispatcher begins the deliveries. */
  maxWaiting: 1_000,
}

const isStart = (message: OutboxMessage | Start): message is Start =>
  message.kind === 'startDocument' || message.kind === 'startDelivery' || message.kind === 'retryDelivery'

/**
 * Sends commands of the outbox, and messages that begin deliveries. `launch` sends them right after the commit. What it does not send is not
 * lost: `sweep`, a maintenance job of the workers, finds the commands, and the dispatcher the deliveries. They need no coordination, because
 * sending twice has no effect.
 */
export const createLauncher = (
  temporal: Pick<Temporal, 'send'>,
  outbox: Outbox,
  log: Log,
  { passOver = createOnItsOwn({ log }).passOver, ...limits }: Partial<typeof launcherLimits & { passOver: PassOver }> = {},
) => {
  const { sweepAgeMs, maxConcurrent, maxWaiting } = { ...launcherLimits, ...limits }
  const limit = pLimit({ concurrency: maxConcurrent, rejectOnClear: true })
  const open = new Set<Promise<void>>()

  const send = async (
    message: OutboxMessage | Start,
    subject = isStart(message) ? message.input.documentId : outboxKey(message),
  ): Promise<Sent> => {
    try {
      await temporal.send(message)
      return 'sent'
    } catch (thrown) {
      if (!isUnavailable(thrown)) {
        passOver('outbox', { message: message.kind, subject }, thrown)
        return 'refused'
      }
      logFailure(log, thrown, 'failed to send a message to Temporal, it will be sent later', { message: message.kind, subject })
      return 'unavailable'
    }
  }

  const sent: OutboxMessage[] = []
  let removing: Promise<void> | undefined

  // Messages sent during a removal are removed together by the next one.
  const removeSent = async () => {
    try {
      while (sent.length > 0) await outbox.remove(sent.splice(0))
    } catch (thrown) {
      logFailure(log, thrown, 'failed to remove sent messages from the outbox, the sweep will remove them')
    }
    removing = undefined
  }

  const launchOne = async (message: OutboxMessage | Start) => {
    if ((await send(message)) !== 'sent' || isStart(message)) return
    sent.push(message)
    removing ??= removeSent()
  }

  return {
    /** Sends messages that have just been committed, in the background. Never throws. */
    launch: (messages: (OutboxMessage | Start)[]): void => {
      for (const message of messages) {
        if (open.size >= maxConcurrent + maxWaiting) return
        const launched = limit(launchOne, message)
          // Only close() rejects. Another process will send the message.
          .catch(() => {})
          .finally(() => open.delete(launched))
        open.add(launched)
      }
    },

    /** Sends messages and waits for them. Messages that cannot be sent now are sent later. */
    sendAll: async (messages: (OutboxMessage | Start)[]): Promise<void> => {
      const outcomes = await limit.map(messages, (message) => send(message))
      await outbox.remove(messages.filter((message, index): message is OutboxMessage => outcomes[index] === 'sent' && !isStart(message)))
    },

    /** Sends every overdue command. @returns the number of sent ones */
    sweep: async (signal?: AbortSignal): Promise<number> => {
      for (let total = 0; ;) {
        signal?.throwIfAborted()
        const outcomes = await outbox.sendDue({ ageMs: sweepAgeMs, limit: maxConcurrent }, send)
        total += outcomes.filter((outcome) => outcome === 'sent').length
        if (outcomes.length === 0 || outcomes.includes('unavailable')) return total
      }
    },

    /** Waits for calls in progress. */
    close: async (): Promise<void> => {
      limit.clearQueue()
      await Promise.all(open)
      await removing
    },
  }
}

export type Launcher = ReturnType<typeof createLauncher>
