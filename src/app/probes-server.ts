import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { refuseUnknown } from '../http/errors.ts'
import { createRequestLog } from '../http/request-log.ts'
import { createConnectionLimit, startHttpServer, type HttpServer, type PortVariable } from '../http/server.ts'
import type { Probes } from '../observe/probes.ts'

/**
 * Serves the probes and the metrics of a process on a port of their own, with connections of their own: a flood of the public port must not
 * fail the probe of a container engine, and the metrics, which name workspaces and repositories, are for the operator alone.
 */
export const startProbesServer = (
  probes: Probes,
  portVariable: Exclude<PortVariable, 'RELAY_PORT'>,
  config: Config,
  log: Log,
): Promise<HttpServer> =>
  startHttpServer(
    [probes.middleware, refuseUnknown({ log, requestLog: createRequestLog(log) })],
    portVariable,
    { ...config, RELAY_BASE_URL: undefined },
    log,
    createConnectionLimit(config),
  )
