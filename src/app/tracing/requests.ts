import type { Context, Middleware } from 'koa'
import type { Tracing } from './tracing.ts'

/** Facts that the surfaces add to the context of a request. */
interface RequestState {
  /** Template of the path. The router of the management API states its own. */
  route?: string
  /** Command of the content-server protocol. */
  command?: string
  errorCode?: string
}

const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/**
 * Records a span for each request, with the template of its path instead of the path, which may contain keys. It continues the trace of
 * the client.
 */
export const traceRequests =
  (tracing: Tracing): Middleware =>
  (context, next) => {
    const method = knownMethods.has(context.method) ? context.method : 'HTTP'
    const span = tracing.start(method, {
      kind: 'server',
      parent: context.get('traceparent') || undefined,
      attributes: { 'http.request.method': method },
    })
    context.res.once('close', () => {
      const { command, errorCode } = context.state as RequestState
      const route = routeOf(context)
      span.rename([method, route, command].filter(Boolean).join(' '))
      span.set({ 'http.route': route, 'relay.command': command, 'relay.request_id': requestIdOf(context) })
      if (!context.res.headersSent) span.fail('client_gone')
      else {
        span.set({ 'http.response.status_code': context.res.statusCode })
        if (context.res.statusCode >= 500) span.fail(errorCode ?? String(context.res.statusCode))
      }
      span.end()
    })
    return span.run(next)
  }

const routeOf = (context: Context): string | undefined => {
  const { route } = context.state as RequestState
  const matched: unknown = context['_matchedRoute']
  return route ?? (typeof matched === 'string' ? matched : undefined)
}

const requestIdOf = ({ res }: Context): string | undefined => {
  const id = res.getHeader('x-relay-request-id')
  return typeof id === 'string' ? id : undefined
}
