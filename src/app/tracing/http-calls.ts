import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { errorTypeOf, type Span, type Tracing } from './tracing.ts'

// Connectors call their targets with undici or, in SDKs, with Node's http module. Both publish their requests on channels, in the context
// of the caller. A span has the host of a target. Path and query may contain keys.

interface UndiciRequest {
  origin?: string | URL
  method: string
}

const failedFrom = 400

/** Records a span for each HTTP request that is sent as a part of a trace. @returns a function that ends this */
export const traceHttpCalls = (tracing: Tracing): (() => void) => {
  const spans = new WeakMap<object, Span>()

  const begin = (request: object, method: string, url: URL) => {
    if (tracing.traceparent() === undefined) return
    const attributes = {
      'http.request.method': method,
      'url.scheme': url.protocol.slice(0, -1),
      'server.address': url.hostname,
      'server.port': Number(url.port || (url.protocol === 'https:' ? 443 : 80)),
    }
    spans.set(request, tracing.start(method, { kind: 'client', attributes }))
  }
  const answered = (request: object, status: number) => {
    const span = spans.get(request)
    span?.set({ 'http.response.status_code': status })
    if (status >= failedFrom) span?.fail(String(status))
  }
  const end = (request: object) => {
    spans.get(request)?.end()
    spans.delete(request)
  }
  const fail = (request: object, error: unknown) => {
    spans.get(request)?.fail(errorTypeOf(error))
    end(request)
  }

  const listeners = {
    'undici:request:create': ({ request }: { request: UndiciRequest }) => {
      if (request.origin !== undefined) begin(request, request.method, new URL(request.origin))
    },
    'undici:request:headers': ({ request, response }: { request: UndiciRequest; response: { statusCode: number } }) =>
      answered(request, response.statusCode),
    'undici:request:trailers': ({ request }: { request: UndiciRequest }) => end(request),
    'undici:request:error': ({ request, error }: { request: UndiciRequest; error: unknown }) => fail(request, error),
    'http.client.request.created': ({ request }: { request: ClientRequest }) => {
      const host = String(request.getHeader('host') ?? request.host)
      const origin = `${request.protocol}//${host}`
      if (URL.canParse(origin)) begin(request, request.method, new URL(origin))
    },
    'http.client.response.finish': ({ request, response }: { request: ClientRequest; response: IncomingMessage }) => {
      answered(request, response.statusCode ?? 0)
      end(request)
    },
    'http.client.request.error': ({ request, error }: { request: ClientRequest; error: unknown }) => fail(request, error),
  }
  const entries = Object.entries(listeners) as [string, (message: unknown) => void][]
  for (const [channel, listener] of entries) subscribe(channel, listener)
  return () => {
    for (const [channel, listener] of entries) unsubscribe(channel, listener)
  }
}
