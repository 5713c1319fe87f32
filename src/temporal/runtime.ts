import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { Agent, request } from 'undici'
import { DefaultLogger, makeTelemetryFilterString, Runtime, type RuntimeOptions } from '#temporal-worker'
import { logFailure, reasonOf } from '../base/failure-log.ts'
import type { Log } from '../base/log.ts'

const loopback = '127.0.0.1'
const readTimeoutMs = 2_000
const portTries = 5

/**
 * Installs the SDK's runtime with the relay's log, and without signal handlers. Call it once per process, before the first worker.
 *
 * The runtime serves its metrics on a free port that only this machine can reach, and `/metrics` of the process includes them. The other
 * way, the SDK's buffer, is experimental and takes 1 to 2 ms of this thread per document, because each of the 110 updates per document
 * becomes an object.
 */
export const installRuntime = async (log: Log) => {
  const url = await installOnFreePort(optionsOf(log), portTries)
  const dispatcher = new Agent({ connections: 1, connectTimeout: readTimeoutMs, headersTimeout: readTimeoutMs, bodyTimeout: readTimeoutMs })
  return {
    /** Returns the metrics of the SDK in the text format of Prometheus; nothing if the runtime does not answer. Never fails. */
    read: async (): Promise<string> => {
      try {
        const { body } = await request(url, { dispatcher })
        const text = await body.text()
        return text
      } catch (thrown) {
        logFailure(log, thrown, 'the metrics of the Temporal SDK are unavailable')
        return ''
      }
    },
  }
}

// The worker of the activities that call no target has none.
const withoutWorkflows = 'No workflows registered'

const optionsOf = (log: Log): RuntimeOptions & { telemetryOptions: object } => ({
  shutdownSignals: [],
  telemetryOptions: { logging: { forward: {}, filter: makeTelemetryFilterString({ core: 'WARN' }) } },
  logger: new DefaultLogger('INFO', ({ level, message, meta }) => {
    // The token of a task is long and says nothing to people.
    const { error, taskToken: _, ...rest } = meta ?? {}
    const line = error === undefined ? rest : { ...rest, reason: reasonOf(error) }
    if (level === 'ERROR') log.error(line, message)
    else if (level === 'WARN' && !message.startsWith(withoutWorkflows)) logFailure(log, error ?? '', message, rest)
    // At info level, the SDK logs every start and stop of a worker.
    else log.debug(line, message)
  }),
})

/** Another process may take the free port before the runtime does. @returns the URL of the metrics */
const installOnFreePort = async (options: ReturnType<typeof optionsOf>, tries: number): Promise<string> => {
  const address = `${loopback}:${await findFreePort()}`
  const prometheus = { bindAddress: address, countersTotalSuffix: true, unitSuffix: true, useSecondsForDurations: true }
  try {
    Runtime.install({
      ...options,
      telemetryOptions: { ...options.telemetryOptions, metrics: { prometheus, attachServiceName: false } },
    })
    return `http://${address}/metrics`
  } catch (thrown) {
    if (tries <= 1) throw thrown
    return installOnFreePort(options, tries - 1)
  }
}

const findFreePort = async (): Promise<number> => {
  const server = createServer().listen(0, loopback)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
