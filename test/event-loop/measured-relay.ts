import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Agent, request } from 'undici'
import { startRelayProcess } from '../support/relay-process.ts'
import { until } from '../support/until.ts'

/** A request that is to cost the relay as much as possible. */
export interface HostileRequest {
  /** The command or endpoint that it calls. */
  covers: string
  name: string
  /** Including the query string. */
  path: string | (() => string)
  method?: string
  headers?: Record<string, string>
  body?: string | Buffer
}

const probe = fileURLToPath(new URL('./probe.ts', import.meta.url))

/** Starts `relay api` with a probe that measures the turns of its event loop. */
export const startMeasuredRelay = async (variables: Record<string, string>) => {
  const { child, ...relay } = await startRelayProcess('api', variables, { preload: probe })
  const agent = new Agent({ headersTimeout: 100_000, bodyTimeout: 100_000 })

  /** Sends a request and reads the answer to its end. @returns its status, or 0 if the relay closed the connection */
  const send = async ({ path, method = 'GET', headers = {}, body }: HostileRequest): Promise<number> => {
    const url = relay.baseUrl + (typeof path === 'string' ? path : path())
    try {
      const answer = await request(url, { dispatcher: agent, method, headers, body: body ?? null })
      await answer.body.dump({ limit: 256 * 1024 * 1024 })
      return answer.statusCode
    } catch {
      return 0
    }
  }

  /** Waits until the requests so far are captured: their bodies are redacted after the answer. */
  const untilCaptured = () =>
    until('all requests are captured', async () => {
      const answer = await request(`${relay.probesUrl}/metrics`, { dispatcher: agent })
      return /^relay_captures_waiting 0$/m.test(await answer.body.text())
    })

  /** Sends requests. @returns the longest turn of the event loop meanwhile, in milliseconds of processor time, and the statuses */
  const measure = async (requests: HostileRequest[]): Promise<{ longestTurnMs: number; statuses: number[] }> => {
    const statuses: number[] = []
    const measured = once(child, 'message') as Promise<[{ longestTurnMs: number }]>
    child.send('start')
    for (const each of requests) statuses.push(await send(each))
    await untilCaptured()
    child.send('stop')
    const [{ longestTurnMs }] = await measured
    return { longestTurnMs, statuses }
  }

  return {
    measure,
    stop: async () => {
      await agent.destroy()
      await relay.kill()
    },
    baseUrl: relay.baseUrl,
  }
}

export type MeasuredRelay = Awaited<ReturnType<typeof startMeasuredRelay>>
