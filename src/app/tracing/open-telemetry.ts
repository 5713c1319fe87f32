import { setTimeout as delay } from 'node:timers/promises'
import {
  context,
  diag,
  DiagLogLevel,
  isSpanContextValid,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Context,
  type Span as RecordedSpan,
  type SpanContext,
} from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import {
  defaultResource,
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
} from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
  type Sampler,
  type SpanExporter,
} from '@opentelemetry/sdk-trace'
import { version } from '../../base/version.ts'
import { traceHttpCalls } from './http-calls.ts'
import type { Span, SpanOptions, Tracing, TracingConfig } from './tracing.ts'

const defaultEndpoint = 'http://localhost:4318'
// The longest message of a failed attempt has 1,000 characters.
const attributeMaxCharacters = 1_024

/** Records traces with the SDK of OpenTelemetry, which is global in a process: there is at most one tracing at a time. */
export const createTracing = (config: TracingConfig, report: (reason: string) => void): Tracing => {
  const contextManager = new AsyncLocalStorageContextManager().enable()
  context.setGlobalContextManager(contextManager)
  // The SDK warns about spans that it has dropped. Its errors arrive with the result of an export.
  const ignore = () => {}
  diag.setLogger(
    { verbose: ignore, debug: ignore, info: ignore, warn: (message) => report(message), error: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  )
  const tell = createExportReports(report)
  const provider = new TracerProvider({
    sampler: samplerOf(config),
    // OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME, which the SDK reads, have the last word.
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'document-relay', 'service.version': version }))
      .merge(detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] })),
    spanLimits: { attributeValueLengthLimit: attributeMaxCharacters },
    // Holds up to 2,048 spans and drops further ones, so that a collector that is slow or unavailable delays nothing.
    spanProcessors: [new BatchSpanProcessor({ exporter: telling(createExporter(config), tell) })],
  })
  const tracer = provider.getTracer('document-relay', version)

  const start = (name: string, { kind, parent, startedAt, attributes = {} }: SpanOptions): Span => {
    const active = context.active()
    const activeSpan = trace.getSpanContext(active)
    const remote = parent === undefined ? undefined : parseTraceparent(parent)
    const parentContext = remote ? trace.setSpanContext(ROOT_CONTEXT, remote) : active
    const links = remote && activeSpan && activeSpan.traceId !== remote.traceId ? [{ context: activeSpan }] : []
    const span = tracer.startSpan(name, { kind: kinds[kind], attributes, links, ...(startedAt && { startTime: startedAt }) }, parentContext)
    return spanOf(span, trace.setSpan(parentContext, span))
  }
  const activeContext = () => trace.getSpanContext(context.active())

  const tracing: Tracing = {
    start,
    traceparent: () => {
      const active = activeContext()
      return active && formatTraceparent(active)
    },
    logFields: () => {
      const active = activeContext()
      return active ? { trace_id: active.traceId, span_id: active.spanId } : {}
    },
    stop: async () => {
      stopHttpCalls()
      const waiting = new AbortController()
      const late = delay(config.OTEL_EXPORTER_OTLP_TIMEOUT, 'late', { signal: waiting.signal }).catch(() => 'stopped')
      // A failure has been reported with the result of the export.
      const flushed = provider.shutdown().catch(() => {})
      if ((await Promise.race([flushed, late])) === 'late') tell('the collector did not take the last spans in time')
      waiting.abort()
      context.disable()
      diag.disable()
    },
  }
  const stopHttpCalls = traceHttpCalls(tracing)
  return tracing
}

const kinds: Record<SpanOptions['kind'], SpanKind> = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
}

const spanOf = (span: RecordedSpan, ownContext: Context): Span => ({
  rename: (name) => void span.updateName(name),
  set: (attributes) => {
    for (const [name, value] of Object.entries(attributes)) if (value !== undefined) span.setAttribute(name, value)
  },
  fail: (type, message) => {
    span.setAttribute('error.type', type)
    span.setStatus({ code: SpanStatusCode.ERROR, ...(message !== undefined && { message }) })
  },
  run: (work) => context.with(ownContext, work),
  end: () => span.end(),
})

/** The exporter reads its headers, and the variables for TLS and compression, from the environment itself. */
const createExporter = (config: TracingConfig): SpanExporter => {
  const base = config.OTEL_EXPORTER_OTLP_ENDPOINT ?? defaultEndpoint
  return new OTLPTraceExporter({
    url: config.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? `${base.replace(/\/$/, '')}/v1/traces`,
    timeoutMillis: config.OTEL_EXPORTER_OTLP_TIMEOUT,
  })
}

/** Returns a function that takes the result of each export, and reports the first of several failures in succession. */
const createExportReports = (report: (reason: string) => void) => {
  let isFailing = false
  return (failure: string | undefined): void => {
    if (failure !== undefined && !isFailing) report(failure)
    isFailing = failure !== undefined
  }
}

/** Returns the same exporter, which tells the result of each export. */
const telling = (exporter: SpanExporter, tell: (failure: string | undefined) => void): SpanExporter => ({
  export: (spans, done) =>
    exporter.export(spans, (result) => {
      tell(result.error && reasonOf(result.error))
      done(result)
    }),
  forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
  shutdown: () => exporter.shutdown(),
})

/** Returns a reason for operators. The answer of a collector may quote the headers that it was sent, so only its status is named. */
const reasonOf = (error: Error): string =>
  'code' in error && typeof error.code === 'number' ? `the collector answered ${error.code}` : error.message

const samplerOf = ({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: ratio }: TracingConfig): Sampler => {
  if (name.startsWith('parentbased_')) return new ParentBasedSampler({ root: rootSamplerOf(name.slice('parentbased_'.length), ratio) })
  return rootSamplerOf(name, ratio)
}

const rootSamplerOf = (name: string, ratio: number): Sampler => {
  if (name === 'traceidratio') return new TraceIdRatioBasedSampler(ratio)
  return name === 'always_off' ? new AlwaysOffSampler() : new AlwaysOnSampler()
}

// https://www.w3.org/TR/trace-context: version ff is invalid, and a version after 00 may have further fields.
const traceparentForm = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/** Parses a `traceparent`. @returns undefined if it is malformed, or its ids are zero */
export const parseTraceparent = (text: string): SpanContext | undefined => {
  const [, formatVersion, traceId = '', spanId = '', flags = '', more] = traceparentForm.exec(text) ?? []
  if (formatVersion === undefined || (formatVersion === '00' && more !== undefined)) return undefined
  const parsed = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED, isRemote: true }
  return isSpanContextValid(parsed) ? parsed : undefined
}

const formatTraceparent = ({ traceId, spanId, traceFlags }: SpanContext): string =>
  `00-${traceId}-${spanId}-0${traceFlags & TraceFlags.SAMPLED}`
