import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Agent, request } from 'undici'
import { exchangeBytes } from '../fuzz/connection.ts'
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
  /** Sent as often on one connection, without waiting for an answer. */
  pipelined?: number
  /** True if it goes to the port of the probes. */
  isProbe?: boolean
}

const bytesOf = ({ path, method = 'GET', headers = {}, body }: HostileRequest): Buffer => {
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
  const lines = Object.entries({ host: 'relay', ...headers, ...length }).map(([name, value]) => `${name}: ${value}\r\n`)
  const head = `${method} ${typeof path === 'string' ? path : path()} HTTP/1.1\r\n${lines.join('')}\r\n`
  return Buffer.concat([Buffer.from(head), Buffer.from(body ?? '')])
}

const probe = fileURLToPath(new URL('./probe.ts', import.meta.url))

/** Starts `relay api` with a probe that measures the turns of its event loop. */
export const startMeasuredRelay = async (variables: Record<string, string>) => {
  const { child, ...relay } = await startRelayProcess('api', variables, { preload: probe })
  const agent = new Agent({ headersTimeout: 100_000, bodyTimeout: 100_000 })

  /** @returns the highest status of the answers, or 0 if the relay closed the connection before one */
  const sendPipelined = async (hostile: HostileRequest, times: number): Promise<number> => {
    const url = hostile.isProbe ? relay.probesUrl : relay.baseUrl
    const one = bytesOf(hostile)
    const all = Buffer.concat(Array.from({ length: times }, () => one))
    const received = await exchangeBytes(Number(new URL(url).port), all, { isComplete: false })
    const statuses = received.toString('latin1').matchAll(/^HTTP\/1\.1 (\d{3})/gm)
    return Math.max(0, ...Array.from(statuses, ([, status]) => Number(status)))
  }

  /** Sends a request and reads the answer to its end. @returns its status, or 0 if the relay closed the connection */
  const send = async (hostile: HostileRequest): Promise<number> => {
    const { path, method = 'GET', headers = {}, body, pipelined } = hostile
    if (pipelined !== undefined) return sendPipelined(hostile, pipelined)
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

  /** Sends requests. @returns the longest turn of the event loop during them, in milliseconds of processor time, and the statuses */
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
