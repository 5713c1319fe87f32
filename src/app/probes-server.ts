import { createHash, timingSafeEqual } from 'node:crypto'
import type { Middleware } from 'koa'
import { AppError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { answerErrors, refuseUnknown, type ErrorDeps } from '../http/errors.ts'
import { createRequestLog } from '../http/request-log.ts'
import { createConnectionLimit, startHttpServer, type HttpServer, type PortVariable } from '../http/server.ts'
import type { Probes } from '../observe/probes.ts'

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Refuses to show the metrics to a client without the token, if there is one. */
const demandToken = (token: string, deps: ErrorDeps): Middleware => {
  const expected = digestOf(`bearer ${token}`)
  const errors = answerErrors(deps, 'other')
  return (context, next) => {
    if (context.path !== '/metrics') return next()
    const shown = context.get('authorization').replace(/^bearer +/i, 'bearer ')
    if (timingSafeEqual(digestOf(shown), expected)) return next()
    return errors(context, () => Promise.reject(new AppError('unauthorized', 'The metrics need the token of RELAY_METRICS_TOKEN.')))
  }
}

/**
 * Serves the probes and the metrics of a process on a port of their own, with connections of their own: a flood of the public port must not
 * fail the probe of a container engine, and the metrics, which name workspaces and repositories, are for the operator alone.
 */
export const startProbesServer = (
  probes: Probes,
  portVariable: Exclude<PortVariable, 'RELAY_PORT'>,
  config: Config,
  log: Log,
): Promise<HttpServer> => {
  const { RELAY_METRICS_TOKEN: token, RELAY_PROBES_HOST: RELAY_HOST } = config
  const deps = { log, requestLog: createRequestLog(log), config: {} }
  return startHttpServer(
    [...(token === undefined ? [] : [demandToken(token, deps)]), probes.middleware, refuseUnknown(deps)],
    portVariable,
    { ...config, RELAY_HOST, RELAY_BASE_URL: undefined },
    log,
    createConnectionLimit(config),
  )
}
