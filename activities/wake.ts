import type { OutboxMessage } from '../src/db/outbox.ts'
import type { Wake } from '../src/delivery/wake.ts'
import type { WakeActivities } from '../workflows/messages.ts'

interface WakeDeps {
  wake: Wake
  /** Sends messages and waits for them. Messages that cannot be sent are left to the sweep. */
  sendAll(messages: OutboxMessage[]): Promise<void>
}

/** A page is committed as messages, so a run that is interrupted before they are sent loses none. */
export const createWakeActivities = ({ wake, sendAll }: WakeDeps): WakeActivities => ({
  wakeNextPage: async (page) => {
    const { messages, ...outcome } = await wake.wakeNextPage(page)
    await sendAll(messages)
    return { ...outcome, count: messages.length }
  },
})
