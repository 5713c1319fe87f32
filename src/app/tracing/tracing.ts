import type { Config } from '../../config/config.ts'

type Attributes = Record<string, string | number | boolean | undefined>

/** A step of a trace. Names, attributes and messages never contain a secret: no query string, no path of a target, no header. */
export interface Span {
  rename(name: string): void
  set(attributes: Attributes): void
  /** Marks the step as failed. @param type a code, for the attribute `error.type` */
  fail(type: string, message?: string): void
  /** Runs work with this span as the active one, which is the parent of the spans that the work starts. */
  run<T>(work: () => T): T
  /** Ends the span, which is exported later. A span that is never ended is never exported. */
  end(): void
}

export interface SpanOptions {
  kind: 'server' | 'client' | 'producer' | 'consumer'
  /**
   * `traceparent` of the parent; a malformed one is ignored. Without a parent, the active span is the parent. If the parent belongs to
   * another trace than the active span, the new span links to the active span.
   */
  parent?: string | undefined
  /** Default: now. */
  startedAt?: Date
  attributes?: Attributes
}

/** The traces of a process. A process that records no traces has none, and loads no package of OpenTelemetry. */
export interface Tracing {
  start(name: string, options: SpanOptions): Span
  /** Returns the active span in the form of the W3C header `traceparent`. */
  traceparent(): string | undefined
  /** Returns `trace_id` and `span_id` of the active span, for log lines. */
  logFields(): { trace_id?: string; span_id?: string }
  /** Exports what is left, within OTEL_EXPORTER_OTLP_TIMEOUT. Never rejects. */
  stop(): Promise<void>
}

export type TracingConfig = Pick<
  Config,
  | 'OTEL_TRACES_EXPORTER'
  | 'OTEL_EXPORTER_OTLP_ENDPOINT'
  | 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'
  | 'OTEL_EXPORTER_OTLP_TIMEOUT'
  | 'OTEL_TRACES_SAMPLER'
  | 'OTEL_TRACES_SAMPLER_ARG'
  | 'OTEL_SDK_DISABLED'
>

/** Does work in a span of its own, which is failed by an error of the work. */
export const inSpan = async <T>(tracing: Tracing, name: string, options: SpanOptions, work: (span: Span) => Promise<T>): Promise<T> => {
  const span = tracing.start(name, options)
  try {
    return await span.run(() => work(span))
  } catch (thrown) {
    span.fail(errorTypeOf(thrown))
    throw thrown
  } finally {
    span.end()
  }
}

/** Returns the code of an error, or its name. Its message may quote what it was called with. */
export const errorTypeOf = (thrown: unknown): string => {
  if (!(thrown instanceof Error)) return 'unexpected'
  return 'code' in thrown && (typeof thrown.code === 'string' || typeof thrown.code === 'number') ? String(thrown.code) : thrown.name
}
