import { z } from 'zod'
import { integer, flag, httpUrl } from './values.ts'

/** Variables of the embedded servers, of Temporal and of traces. */
export const serviceVariables = {
  TEMPORAL_UI_URL: z
    .string()
    .refine((text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol), 'must be an http or https URL')
    .optional()
    .describe(
      'URL of the Temporal UI, for the links in the console and in notices. script/server and script/demo know that of their own server',
    ),
  TEMPORAL_TASK_QUEUE: z.string().default('document-relay').describe('Task queue of workflows and activities'),
  TEMPORAL_START_TIMEOUT_MS: integer(5_000, 100, 'Maximum time for starting a workflow. After it, the dispatcher starts the workflow'),
  TEMPORAL_MAX_CONCURRENT_ATTEMPTS: integer(100, 1, 'Maximum number of concurrent delivery attempts in one worker process'),
  TEMPORAL_WORKER_BUILD_ID: z
    .string()
    .optional()
    .describe(
      'Build id of this worker, for upgrades with worker versioning: it gets workflows once relay promote has been run with the same id',
    ),
  TEMPORAL_WORKER_DEPLOYMENT: z.string().default('document-relay').describe('Worker deployment that the build id belongs to'),
  TEMPORAL_MAX_CACHED_WORKFLOWS: integer(1_000, 0, 'Maximum number of workflows that a worker keeps in memory'),

  OTEL_TRACES_EXPORTER: z
    .enum(['otlp', 'none'])
    .optional()
    .describe('otlp sends traces with OTLP over HTTP, as protobuf; none records no traces. Default: otlp if an endpoint is set, else none'),
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl(
    'URL of the collector, to which v1/traces is appended. Default with OTEL_TRACES_EXPORTER=otlp: http://localhost:4318',
  ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: httpUrl('URL to which traces are sent, instead of OTEL_EXPORTER_OTLP_ENDPOINT and v1/traces'),
  OTEL_EXPORTER_OTLP_TIMEOUT: integer(
    10_000,
    100,
    'Maximum time, in milliseconds, for sending a batch of spans, and for sending the last spans when the process stops',
  ),
  OTEL_TRACES_SAMPLER: z
    .enum(['always_on', 'always_off', 'traceidratio', 'parentbased_always_on', 'parentbased_always_off', 'parentbased_traceidratio'])
    .default('parentbased_always_on')
    .describe(
      'Decides which traces are recorded. With a parentbased sampler, a request with a traceparent is recorded if its client records it',
    ),
  OTEL_TRACES_SAMPLER_ARG: z.coerce
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe('Share of the traces that a sampler with traceidratio records, from 0 to 1'),
  OTEL_SDK_DISABLED: flag(false, 'If true, no traces are recorded'),
}
