import type { Tracing, TracingConfig } from './tracing.ts'

/**
 * Starts to record traces if the configuration asks for them.
 * @param report is called when spans are lost, with the reason: at the first failure, and again after an export has succeeded
 */
export const openTracing = async (config: TracingConfig, report: (reason: string) => void): Promise<Tracing | undefined> => {
  const endpoint = config.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? config.OTEL_EXPORTER_OTLP_ENDPOINT
  const exporter = config.OTEL_TRACES_EXPORTER ?? (endpoint === undefined ? 'none' : 'otlp')
  if (exporter === 'none' || config.OTEL_SDK_DISABLED) return undefined
  const { createTracing } = await import('./open-telemetry.ts')
  return createTracing(config, report)
}
