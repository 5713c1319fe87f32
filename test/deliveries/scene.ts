import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { startHttpTarget } from '../support/http-target.ts'
import { createTimeSkippingTemporal } from '../support/temporal.ts'
import { startRelay, until, type RelayedDocument } from '../support/relay.ts'

export const minute = 60_000
export const hour = 60 * minute

interface Said {
  status: number
  headers?: Record<string, string>
}

/** A relay on a server that skips time, and a web server that answers as the test says, at each address of its own. */
export const startScene = async () => {
  const env: TestWorkflowEnvironment = await createTimeSkippingTemporal()
  const relay = await startRelay(env, { DELIVERY_RETRY_WINDOW_MS: String(24 * hour) })
  const target = await startHttpTarget()
  const came = (name: string) => target.arrivals.filter(({ url }) => url === `/${name}`).length

  /** From now on, to the nth document that comes to each address; 200 to all others. */
  const answer = (answers: Record<string, (nth: number) => Said>) =>
    target.answerWith(({ url }, response) => {
      const name = url.slice(1)
      const { status, headers = {} } = answers[name]?.(came(name)) ?? { status: 200 }
      response.writeHead(status, headers)
      response.end()
    })

  return {
    env,
    relay,
    target,
    /** How many times something came to this address. */
    came,
    /** Destinations, each with the address of its name. */
    at: (...names: string[]) => names.map((name) => ({ name, config: { url: `${target.origin}/${name}` } })),
    answer,
    reset: () => {
      target.arrivals.length = 0
      answer({})
    },
    untilStatus: (document: RelayedDocument, status: string) =>
      until(env, `the document is ${status}`, async () => (await document.status()) === status, 5 * minute),
    // not by awaiting its result: time would run to the window of whatever an earlier story left open, past everything at work
    untilClosed: (document: RelayedDocument) =>
      until(env, 'its window closes', async () => (await document.handle().describe()).status.name === 'FAILED', hour),
    /** When each attempt was asked for, by the server's clock. */
    startsOf: async (document: RelayedDocument, name: string): Promise<number[]> => {
      const { events } = await document.handle(name).fetchHistory()
      return events!
        .filter(({ activityTaskScheduledEventAttributes: scheduled }) => scheduled)
        .map(({ eventTime }) => Number(eventTime!.seconds) * 1_000)
    },
    stop: async () => {
      await target.stop()
      await relay.stop()
      await env.teardown()
    },
  }
}

/** Of a workspace whose documents are retried three times, ten minutes after the first failure. */
export const settings = (more: object = {}) => ({
  workspaceSettings: { max_retries: 3, retry_initial_interval_seconds: 600, retry_max_interval_seconds: 3_600, ...more },
})

export const down = () => ({ status: 503 })
