import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { startHttpTarget } from '../support/http-target.ts'
import { startRelay, until, type RelayedDocument } from '../support/relay.ts'
import { createTimeSkippingTemporal } from '../support/temporal.ts'

export const minute = 60_000
export const hour = 60 * minute

interface Answer {
  status: number
  headers?: Record<string, string>
}

/** Starts a relay on a server that skips time, and a web server with one path per destination, whose answers the test sets. */
export const startScene = async () => {
  const env: TestWorkflowEnvironment = await createTimeSkippingTemporal()
  const relay = await startRelay(env, { DELIVERY_RETRY_WINDOW_MS: String(24 * hour) })
  const target = await startHttpTarget()
  const requestCount = (name: string) => target.arrivals.filter(({ url }) => url === `/${name}`).length
  // Time of each request. The history has no event for an attempt that the server repeats.
  let times: { name: string; atMs: number }[] = []

  /** Sets the answers to the nth request of each destination from now on. All other requests are answered with 200. */
  const answer = (answers: Record<string, (nth: number) => Answer>) =>
    target.answerWith(({ url }, response) => {
      const name = url.slice(1)
      const { status, headers = {} } = answers[name]?.(requestCount(name)) ?? { status: 200 }
      void env.currentTimeMs().then((atMs) => {
        times.push({ name, atMs })
        response.writeHead(status, headers)
        response.end()
      })
    })

  return {
    env,
    relay,
    target,
    /** Returns the number of requests that this destination has received. */
    requestCount,
    /** Returns destinations whose paths on the web server are their names. */
    destinations: (...names: string[]) => names.map((name) => ({ name, config: { url: `${target.origin}/${name}` } })),
    answer,
    reset: () => {
      target.arrivals.length = 0
      times = []
      answer({})
    },
    untilStatus: (document: RelayedDocument, status: string) =>
      until(env, `document is ${status}`, async () => (await document.status()) === status, 5 * minute),
    // Does not await the result: the server would skip time up to the retry window of any workflow that an earlier test left open.
    untilClosed: (document: RelayedDocument) =>
      until(env, 'document workflow is closed', async () => (await document.handle().describe()).status.name === 'FAILED', hour),
    /** Returns the times of the requests that this destination has received, by the clock of the server. */
    attemptTimes: (name: string): number[] => times.filter((time) => time.name === name).map(({ atMs }) => atMs),
    [Symbol.asyncDispose]: async () => {
      await target.stop()
      await relay.stop()
      await env.teardown()
    },
  }
}

/** Returns settings of a workspace with three retries, the first one ten minutes after the first failure. */
export const retrySettings = (more: object = {}) => ({
  workspaceSettings: { max_retries: 3, retry_initial_interval_seconds: 600, retry_max_interval_seconds: 3_600, ...more },
})

export const answer503 = () => ({ status: 503 })
