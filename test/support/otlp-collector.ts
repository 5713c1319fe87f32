import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import protobuf from 'protobufjs'

// The messages of opentelemetry-proto 1.x that carry spans.
const proto = `
  syntax = "proto3";
  message ExportTraceServiceRequest { repeated ResourceSpans resource_spans = 1; }
  message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
  message Resource { repeated KeyValue attributes = 1; }
  message ScopeSpans { repeated Span spans = 2; }
  message Span {
    bytes trace_id = 1;
    bytes span_id = 2;
    string trace_state = 3;
    bytes parent_span_id = 4;
    string name = 5;
    int32 kind = 6;
    fixed64 start_time_unix_nano = 7;
    fixed64 end_time_unix_nano = 8;
    repeated KeyValue attributes = 9;
    repeated Event events = 11;
    repeated Link links = 13;
    Status status = 15;
  }
  message Event { fixed64 time_unix_nano = 1; string name = 2; repeated KeyValue attributes = 3; }
  message Link { bytes trace_id = 1; bytes span_id = 2; }
  message Status { string message = 2; int32 code = 3; }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message AnyValue {
    oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4; }
  }
`
const exportRequest = protobuf.parse(proto).root.lookupType('ExportTraceServiceRequest')

interface KeyValue {
  key: string
  value: Record<string, unknown>
}

interface DecodedSpan {
  traceId: Buffer
  spanId: Buffer
  parentSpanId?: Buffer
  name: string
  kind: number
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes?: KeyValue[]
  links?: { traceId: Buffer; spanId: Buffer }[]
  status?: { message?: string; code?: number }
}

interface DecodedRequest {
  resourceSpans?: { resource: { attributes?: KeyValue[] }; scopeSpans: { spans: DecodedSpan[] }[] }[]
}

/** A span as the collector has received it. Ids are in hexadecimal. */
export interface ReceivedSpan {
  traceId: string
  spanId: string
  /** Empty for the first span of a trace. */
  parentSpanId: string
  name: string
  kind: 'internal' | 'server' | 'client' | 'producer' | 'consumer'
  startedAt: bigint
  endedAt: bigint
  attributes: Record<string, unknown>
  links: { traceId: string; spanId: string }[]
  isError: boolean
  message: string
  resource: Record<string, unknown>
}

const kinds = ['internal', 'internal', 'server', 'client', 'producer', 'consumer'] as const
const errorStatus = 2

const attributesOf = (pairs: KeyValue[] = []) => Object.fromEntries(pairs.map(({ key, value }) => [key, Object.values(value)[0]]))

const spansOf = (body: Buffer): ReceivedSpan[] => {
  const message = exportRequest.toObject(exportRequest.decode(body), { longs: String, bytes: Buffer }) as DecodedRequest
  return (message.resourceSpans ?? []).flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(({ traceId, spanId, parentSpanId, name, kind, startTimeUnixNano, endTimeUnixNano, attributes, links, status }) => ({
        traceId: traceId.toString('hex'),
        spanId: spanId.toString('hex'),
        parentSpanId: parentSpanId?.toString('hex') ?? '',
        name,
        kind: kinds[kind]!,
        startedAt: BigInt(startTimeUnixNano),
        endedAt: BigInt(endTimeUnixNano),
        attributes: attributesOf(attributes),
        links: (links ?? []).map((link) => ({ traceId: link.traceId.toString('hex'), spanId: link.spanId.toString('hex') })),
        isError: status?.code === errorStatus,
        message: status?.message ?? '',
        resource: attributesOf(resource.attributes),
      })),
    ),
  )
}

/** Starts a collector that speaks OTLP over HTTP with protobuf, and keeps what it receives. */
export const startOtlpCollector = async () => {
  const spans: ReceivedSpan[] = []
  const requests: { headers: IncomingHttpHeaders; body: Buffer }[] = []
  let answer = (response: ServerResponse): void => void response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end()
  const server = createServer((request, response) => {
    void buffer(request).then((body) => {
      if (request.method !== 'POST' || request.url !== '/v1/traces' || request.headers['content-type'] !== 'application/x-protobuf') {
        response.writeHead(400).end()
        return
      }
      requests.push({ headers: request.headers, body })
      spans.push(...spansOf(body))
      answer(response)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stop = async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    requests,
    /** Sets the answer to all following requests. Initially 200. */
    answerWith: (next: (response: ServerResponse) => void) => {
      answer = next
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
