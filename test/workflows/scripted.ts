import { randomUUID } from 'node:crypto'
import { activityInfo } from '@temporalio/activity'
import { nextTry } from '../../src/domain/retry.ts'
import type { Activities, AttemptInput, AttemptOutcome, DocumentInput } from '../../workflows/messages.ts'

export const hour = 3_600_000

/** Activities whose outcomes the test dictates: what a target answers to the nth attempt. The rules of retry are the real ones. */
export const scripted = (answer: (destinationId: string, attempt: number) => 'delivered' | 'down' | 'refused' | 'busy') => {
  const attempts: { destinationId: string; atMs: number; input: AttemptInput }[] = []
  const cancelled: string[] = []
  const terminated: string[] = []
  const activities: Activities = {
    attemptDelivery: async (input: AttemptInput): Promise<AttemptOutcome> => {
      attempts.push({ destinationId: input.destinationId, atMs: activityInfo().scheduledTimestampMs, input })
      const count = attempts.filter((attempt) => attempt.destinationId === input.destinationId).length
      const answered = answer(input.destinationId, count)
      if (answered === 'delivered') return { status: 'delivered' }
      if (answered === 'refused') return { status: 'failed', error: 'credentials refused', code: 'credentials_refused' }
      if (answered === 'busy') return { status: 'waiting', inMs: hour }
      const failures = input.failures + 1
      const next = nextTry(input.policy, { failures, remainingMs: input.remainingMs }, 0)
      return next.again ? { status: 'retrying', inMs: next.inMs, failures, error: 'HTTP 503' } : { status: 'failed', error: 'HTTP 503' }
    },
    recordCancellation: async ({ destinationId }) => {
      cancelled.push(destinationId)
    },
    recordTermination: async ({ destinationId }) => {
      terminated.push(destinationId)
    },
  }
  return { activities, attempts, cancelled, terminated, of: (id: string) => attempts.filter((attempt) => attempt.destinationId === id) }
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
  searchAttributes: true,
})
