import { AsyncResource } from 'node:async_hooks'
import type { Context } from 'koa'
import { Histogram } from 'prom-client'
import type { Log } from '../base/log.ts'
import type { Actor } from '../security/api-keys.ts'

/** Surfaces that answer with the errors of docs/errors.md. `other`: paths that no surface serves. */
export type Surface = 'api' | 'bridge' | 'console' | 'download' | 'other'

/** Facts that the handling of a request adds to its log line and to its error response. */
export interface RequestState {
  keyId?: string
  /** Id of the person at the sign-in provider. */
  personId?: string
  errorCode?: string
  /** True if the answer is a file of the console, of which a page loads dozens. */
  isAsset?: boolean
  /** True once an endpoint handles the request: its key is valid, and so is what it asks for. */
  hasBegun?: boolean
}

/** Adds the caller to the log line of a request. */
export const nameActor = (context: Pick<Context, 'state'>, { type, id }: Pick<Actor, 'type' | 'id'>): void => {
  context.state[(type === 'api_key' ? 'keyId' : 'personId') satisfies keyof RequestState] = id
}

const pathMaxCharacters = 500
// The status with which captured requests and several proxies report that the client closed the connection before the answer.
const clientGone = 499

/** Creates the log of requests to every surface but the receivers, which log documents instead. */
export const createRequestLog = (log: Log) => {
  const durations = new Histogram({
    name: 'relay_http_request_duration_seconds',
    help: 'Time from the arrival of a request to the end of its answer, by surface, method and the class of the status',
    labelNames: ['surface', 'method', 'status'],
    buckets: [0.005, 0.02, 0.1, 0.5, 2, 10, 60],
    registers: [],
  })
  return {
    /** Logs and measures a request when its answer has been sent, or the client has closed the connection. */
    begin: (context: Context, surface: Surface, requestId: string): void => {
      const startedAt = performance.now()
      // The event belongs to the connection. The line belongs to the trace of the request.
      const onClose = AsyncResource.bind(() => {
        const durationMs = performance.now() - startedAt
        const { method } = context
        const status = context.res.headersSent ? context.status : clientGone
        const { keyId, personId, errorCode, isAsset } = context.state as RequestState
        durations.observe(
          { surface, method: knownMethods.has(method) ? method : 'other', status: `${Math.trunc(status / 100)}xx` },
          durationMs / 1_000,
        )
        // Every client can ask for paths that do not exist.
        log[surface === 'other' || isAsset ? 'debug' : 'info'](
          {
            event: 'http.request',
            request_id: requestId,
            surface,
            method,
            // Without the query string, which holds the signature of a download link.
            path: context.path.slice(0, pathMaxCharacters),
            status,
            code: errorCode,
            // False if the client has closed the connection before it had the whole answer.
            complete: context.res.writableFinished,
            duration_ms: Math.round(durationMs),
            key_id: keyId,
            person_id: personId,
            source_ip: context.ip,
          },
          'request',
        )
      })
      context.res.once('close', onClose)
    },
    metrics: [durations],
  }
}

export type RequestLog = ReturnType<typeof createRequestLog>

const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
