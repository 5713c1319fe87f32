import { randomUUID } from 'node:crypto'
import { activityInfo } from '@temporalio/activity'
import { repeatAttempts } from '../../activities/delivery.ts'
import type { AttemptOutcome } from '../../src/domain/delivery-run.ts'
import type { AttemptInput, DeliveryActivities, DocumentInput } from '../../workflows/messages.ts'

export const hour = 3_600_000

/** Creates delivery activities whose outcomes the test sets for the nth attempt at each destination. What fails is repeated after an hour, without an end. */
export const scriptedActivities = (
  answer: (destinationId: string, attempt: number) => 'delivered' | 'down' | 'refused' | 'one of many' | 'busy',
) => {
  const attempts: { destinationId: string; atMs: number; input: AttemptInput }[] = []
  const cancelled: string[] = []
  const terminated: string[] = []
  const activities: DeliveryActivities = {
    attemptDelivery: async (input: AttemptInput): Promise<AttemptOutcome> => {
      const info = activityInfo()
      const atMs = info.attempt === 1 ? info.scheduledTimestampMs : info.currentAttemptScheduledTimestampMs
      attempts.push({ destinationId: input.destinationId, atMs, input })
      const count = attempts.filter((attempt) => attempt.destinationId === input.destinationId).length
      const result = answer(input.destinationId, count)
      if (result === 'delivered') return { status: 'delivered' }
      if (result === 'refused')
        return { status: 'failed', error: 'credentials refused', remedy: 'Save valid credentials, then retry the document.' }
      if (result === 'one of many') return { status: 'failed', error: 'credentials refused', keepsOpen: false }
      if (result === 'busy') return { status: 'waiting', askAgainMs: hour }
      return { status: 'retrying', delayMs: hour, failures: count, error: 'HTTP 503' }
    },
    recordCancellation: async ({ destinationId }) => {
      cancelled.push(destinationId)
      return 'failed'
    },
    recordTermination: async ({ destinationId }) => {
      terminated.push(destinationId)
      return undefined
    },
  }
  return {
    activities: repeatAttempts(activities),
    attempts,
    cancelled,
    terminated,
    attemptsTo: (id: string) => attempts.filter((attempt) => attempt.destinationId === id),
  }
}

export const documentTo = (...names: string[]): DocumentInput => ({
  documentId: randomUUID(),
  workspace: 'acme/invoices',
  repoId: 'Z1',
  docId: '005056B5A3F21EEFA9C1D04F7B6E8C11',
  compId: 'data',
  destinations: names.map((name) => ({ id: name, name, connector: 'webhook' })),
  policy: { maxRetries: 10, ttlMs: 24 * hour, initialIntervalMs: hour, maxIntervalMs: 4 * hour },
  retryWindowMs: 7 * 24 * hour,
  attemptTimeoutMs: hour,
  heartbeatTimeoutMs: 30_000,
})
