import { isAbsolute, resolve } from 'node:path'
import { loadClientConnectConfig, type ClientConnectConfig } from '@temporalio/envconfig'
import { z } from 'zod'
import { plainMessages } from './domain/issue-messages.ts'
import { messageOf, UserError } from './errors.ts'

const integer = (fallback: number, lowest: number, description: string) =>
  z.coerce.number().int().min(lowest).default(fallback).describe(description)

const flag = (fallback: boolean, description: string) =>
  z
    .enum(['true', 'false'])
    .default(fallback ? 'true' : 'false')
    .transform((value) => value === 'true')
    .describe(description)

const list = (description: string, item: z.ZodType<string, string> = z.string()) =>
  z
    .string()
    .default('')
    .transform((text) =>
      text
        .split(',')
        .map((entry) => entry.trim())
        .filter(Boolean),
    )
    .pipe(z.array(item))
    .describe(description)

/** Reads `name=value` pairs, separated by commas, with percent-encoded values: the format of the OpenTelemetry variables. */
const pairs = (description: string) =>
  z
    .string()
    .default('')
    .refine((text) => text.split(',').every((pair) => pair.trim() === '' || /^[^=]+=/.test(pair.trim())), 'must be name=value pairs')
    .transform((text) =>
      Object.fromEntries(
        text
          .split(',')
          .filter((pair) => pair.trim() !== '')
          .map((pair): [string, string] => {
            const equals = pair.indexOf('=')
            return [pair.slice(0, equals).trim(), decoded(pair.slice(equals + 1).trim())]
          }),
      ),
    )
    .describe(description)

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const httpUrl = (description: string) =>
  z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe(description)

const isOrigin = (text: string) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) && new URL(text).origin === text

const KiB = 1024
const MiB = 1024 * KiB
const GiB = 1024 * MiB
const TiB = 1024 * GiB

/**
 * Schema of the environment variables, with defaults and descriptions. The name of a number ends with its unit.
 * docs/configuration.md is generated from it.
 */
export const environment = z.object({
  DATABASE_URL: z
    .string()
    .optional()
    .describe('Address of the database (PostgreSQL 14 or newer), as postgres://user:password@host:port/database'),
  DATABASE_POOL_MAX_CONNECTIONS: integer(10, 2, 'Maximum number of database connections per process'),
  DATABASE_IDLE_TIMEOUT_MS: integer(
    600_000,
    1_000,
    'Time after which an unused connection is closed. Opening a connection costs as much as 40 queries',
  ),
  DATABASE_ACQUIRE_TIMEOUT_MS: integer(5_000, 100, 'Maximum time that a request waits for a database connection before it is answered 503'),
  DATABASE_STATEMENT_TIMEOUT_MS: integer(30_000, 100, 'Maximum duration of one SQL statement'),

  RELAY_PORT: integer(8080, 0, 'Port of the HTTP server. 0 selects a free port'),
  RELAY_WORKER_PORT: integer(
    8081,
    0,
    'Port of the HTTP server of relay worker, which answers probes and /metrics. 0 selects a free port. ' +
      'script/server and script/demo answer for their worker on RELAY_PORT',
  ),
  RELAY_HOST: z
    .string()
    .default('0.0.0.0')
    .describe('Address that the HTTP servers listen on. script/server and script/demo listen on 127.0.0.1 unless it is set'),
  RELAY_BASE_URL: z.string().optional().describe('URL under which clients reach the relay, if it differs from host and port'),
  RELAY_CORS_ORIGINS: list(
    'Comma-separated origins of web pages, like https://console.example, that may call the management API in a browser; empty allows none',
    z.string().refine(isOrigin, 'must be an origin: scheme, host and port, like https://console.example'),
  ),
  RELAY_TRUST_PROXY: flag(false, 'If true, the client address is the last entry of X-Forwarded-For. Set it only behind a proxy'),
  RELAY_DATA_DIR: z
    .string()
    .default('.relay')
    .describe('Directory in which script/server keeps its database, its sealing key and ready.json'),
  RELAY_CACHE_DIR: z
    .string()
    .optional()
    .describe(
      'Directory for programs that the embedded stack has downloaded or built. Default: document-relay in $XDG_CACHE_HOME or ~/.cache',
    ),
  RELAY_POSTGRES_BIN: z
    .string()
    .optional()
    .describe('Directory with the programs postgres and initdb (version 14 or newer) for the embedded stack'),
  RELAY_TEMPORAL_BIN: z.string().optional().describe('Path of the Temporal CLI for the embedded stack'),
  RELAY_LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe('Lowest level that is logged'),
  RELAY_LOG_FORMAT: z
    .enum(['json', 'pretty'])
    .optional()
    .describe('Format of the log: json for programs, pretty for people. Default: json; pretty in script/server and script/demo'),
  RELAY_SECRET_KEYS: list('Keys that seal credentials, as comma-separated entries id:base64(32 bytes). The first key seals, all keys open'),
  RELAY_ALLOWED_PRIVATE_CIDRS: list('Comma-separated private or loopback address ranges that destinations may use'),
  RELAY_DIRECTORY_ROOTS: list(
    'Comma-separated absolute paths of directories below which destinations of the kind directory may write; empty allows none',
    z.string().refine(isAbsolute, 'must be an absolute path'),
  ),

  RELAY_HTTP_MAX_CONNECTIONS: integer(2_000, 1, 'Maximum number of connections per process. Further ones are closed at once'),
  RELAY_HTTP_MAX_CONNECTIONS_PER_ADDRESS: integer(
    500,
    1,
    'Maximum number of connections per process from one address (for IPv6, from one /64 network). Further ones are closed at once. ' +
      'With RELAY_TRUST_PROXY, the maximum number of concurrent requests of one client instead. Further ones are answered 503',
  ),
  RELAY_HTTP_HEADERS_TIMEOUT_MS: integer(30_000, 1_000, 'Maximum time in which a client must send its request headers'),
  RELAY_HTTP_IDLE_TIMEOUT_MS: integer(
    60_000,
    1_000,
    'Time without any transferred byte after which the connection of a running request is closed',
  ),
  RELAY_HTTP_MAX_HEADER_BYTES: integer(64 * KiB, 8 * KiB, 'Maximum size of the request line and headers together'),
  RELAY_HTTP_MIN_BODY_BYTES: integer(
    1024,
    1,
    'Number of bytes that a request body must deliver in each RELAY_HTTP_IDLE_TIMEOUT_MS spent waiting for it',
  ),
  RELAY_HTTP_LINGER_TIMEOUT_MS: integer(
    5_000,
    0,
    'Maximum time for reading the rest of a refused request body, so that the client receives the answer',
  ),
  RELAY_API_BODY_MAX_BYTES: integer(1 * MiB, 1 * KiB, 'Maximum size of a JSON body in the management API and the bridge'),
  RELAY_API_BODY_MAX_VALUES: integer(
    5_000,
    1,
    'Maximum number of keys and values in a JSON body in the management API, including those of nested arrays and objects',
  ),
  RELAY_IDEMPOTENCY_TTL_MS: integer(
    24 * 3_600_000,
    60_000,
    'Time for which the answer to a POST with an Idempotency-Key is kept, so that a repetition of the request gets it',
  ),
  RELAY_IDEMPOTENCY_LOCK_MS: integer(
    120_000,
    1_000,
    'Time after which a POST with an Idempotency-Key whose process was lost may be repeated. Longer than any such request takes',
  ),
  RELAY_STATISTICS_MAX_DAYS: integer(92, 1, 'Maximum length of the time range of statistics'),
  RELAY_EXPORT_MAX_ROWS: integer(100_000, 1, 'Maximum number of rows in one CSV export. A narrower date range exports the remaining rows'),
  RELAY_EXPORT_TIMEOUT_MS: integer(
    600_000,
    1_000,
    'Maximum duration of one CSV export, including the time that the client needs to read it',
  ),
  RELAY_MAX_CONCURRENT_EXPORTS: integer(
    2,
    1,
    'Maximum number of concurrent CSV exports per process. Each one occupies a database connection',
  ),
  RELAY_MAX_CONCURRENT_EXPORTS_PER_WORKSPACE: integer(1, 1, 'Maximum number of concurrent CSV exports of one workspace per process'),
  RELAY_EXPORT_MIN_BYTES: integer(
    64 * KiB,
    1,
    'Number of bytes that a client must read of a CSV export in each RELAY_HTTP_IDLE_TIMEOUT_MS spent waiting for it. ' +
      'A slower client is disconnected',
  ),
  RELAY_SESSION_TTL_MS: integer(
    12 * 3_600_000,
    60_000,
    'Time after which a session of the console ends. It ends earlier when its API key expires or is revoked',
  ),
  RELAY_EVENT_STREAMS: integer(
    1_000,
    0,
    'Maximum number of pages of the console that listen for changes at one process. Others ask by themselves',
  ),
  RELAY_EVENT_STREAMS_PER_KEY: integer(20, 0, 'Maximum number of pages with the same API key that listen for changes at one process'),
  RELAY_EVENT_INTERVAL_MS: integer(1_000, 100, 'Time between two looks for changes, while pages of the console are open'),
  RELAY_EVENT_HEARTBEAT_MS: integer(
    15_000,
    1_000,
    'Time between two signs of life to a page of the console. Shorter than the idle timeouts of proxies and RELAY_HTTP_IDLE_TIMEOUT_MS',
  ),
  RELAY_WRONG_KEYS_PER_MINUTE: integer(
    20,
    1,
    'Number of requests with a wrong API key that one address may send per minute before it is answered 429',
  ),
  RELAY_WRONG_KEY_MAX_ADDRESSES: integer(
    10_000,
    1,
    'Maximum number of addresses for which one process counts wrong API keys, and of those for which it counts sent certificates',
  ),
  RELAY_PROBE_TIMEOUT_MS: integer(30_000, 100, 'Maximum duration of the test of a destination'),
  RELAY_DOCUMENT_MAX_BYTES: integer(4 * GiB, 1, 'Maximum size of the body of one request from the source system'),
  RELAY_WORKSPACE_MAX_BYTES: integer(
    1 * TiB,
    0,
    'Maximum size of the stored content of one workspace. receiver_max_bytes of a workspace can lower it. 0 means no limit',
  ),
  RELAY_WORKSPACE_MAX_REQUESTS_PER_MINUTE: integer(
    60_000,
    0,
    'Maximum number of receiver requests per minute of one workspace, per process. ' +
      'receiver_max_requests_per_minute of a workspace can lower it. 0 means no limit',
  ),
  RELAY_DOCUMENT_MAX_PARTS: integer(1_000, 1, 'Maximum number of components in one multipart request'),
  RELAY_APPEND_QUIET_MS: integer(60_000, 0, 'Time without a further append after which an appended component is delivered again'),
  RELAY_DOCUMENT_LOCK_TIMEOUT_MS: integer(
    5_000,
    100,
    'Maximum time that a command waits for another command on the same document before it is answered 409',
  ),
  RELAY_SEARCH_MAX_RESULTS: integer(10_000, 1, 'Maximum number of hits in the answer to one search'),
  RELAY_SEARCH_MAX_CONDITIONS: integer(16, 1, 'Maximum number of conditions in one attrSearch'),
  RELAY_SEARCH_TIMEOUT_MS: integer(30_000, 1, 'Maximum duration of one search or attrSearch. After it, the search is answered 503'),
  RELAY_MAX_CONCURRENT_SEARCHES: integer(
    16,
    1,
    'Maximum number of concurrent searches per process. Further ones are answered 503. Each one holds 2 MiB of memory',
  ),
  RELAY_MAX_CONCURRENT_SEARCHES_PER_WORKSPACE: integer(8, 1, 'Maximum number of concurrent searches of one workspace per process'),
  RELAY_SIGNATURE_SKEW_MS: integer(
    120_000,
    0,
    'Time after its expiration for which a signed URL is still accepted, to allow for clock differences',
  ),
  RELAY_SIGNATURE_SCOPE: z
    .enum(['all', 'doc_prot'])
    .default('all')
    .describe(
      'Commands that need a signature in a repository with signature_verification: all of them, or those that the ' +
        'docProt of the document names',
    ),
  RELAY_CERTIFICATE_MAX_BYTES: integer(
    16 * KiB,
    1 * KiB,
    'Maximum size of a certificate. Reading a hostile one of this size takes 10 to 30 ms, and other requests wait meanwhile',
  ),
  RELAY_REPOSITORY_MAX_CERTIFICATES: integer(
    100,
    1,
    'Maximum number of certificates per repository that operators have added or activated, active or not',
  ),
  RELAY_REPOSITORY_MAX_UNREVIEWED_CERTIFICATES: integer(
    20,
    1,
    'Maximum number of certificates per repository that a source system has sent and no operator has activated. ' +
      'Beyond it, the oldest gives way',
  ),
  RELAY_PUT_CERTS_PER_MINUTE: integer(
    30,
    1,
    'Number of certificates that one address may send per minute to one process before it is answered 503',
  ),
  RELAY_THREADS: integer(
    2,
    1,
    'Number of threads per API process for searches and for large JSON and XML. A workspace uses at most one at a time',
  ),
  RELAY_THREAD_IDLE_TIMEOUT_MS: integer(60_000, 0, 'Time without work after which a thread ends. It starts again with the next work'),
  RELAY_THREAD_HEAP_MAX_BYTES: integer(512 * MiB, 64 * MiB, 'Maximum heap of one thread. Work that needs more memory fails'),
  RELAY_SHUTDOWN_GRACE_MS: integer(10_000, 0, 'Time that running requests and attempts have to finish after SIGTERM'),

  CONTENT_S3_BUCKET: z
    .string()
    .optional()
    .describe('S3 bucket that stores the content of documents. Without it, content is stored in PostgreSQL'),
  CONTENT_S3_REGION: z.string().default('us-east-1').describe('Region of the bucket'),
  CONTENT_S3_ENDPOINT: z.string().optional().describe('URL of an S3-compatible store other than AWS'),
  CONTENT_S3_PATH_STYLE: flag(false, 'If true, the bucket name is part of the path instead of the host name'),
  CONTENT_S3_PREFIX: z.string().default('').describe('Prefix of all object keys'),
  CONTENT_S3_ACCESS_KEY_ID: z.string().optional().describe('Access key id. Without it, the default credential chain of AWS is used'),
  CONTENT_S3_SECRET_ACCESS_KEY: z.string().optional().describe('Secret access key that belongs to CONTENT_S3_ACCESS_KEY_ID'),
  CONTENT_S3_CONNECT_TIMEOUT_MS: integer(5_000, 100, 'Maximum time for connecting to the store'),
  CONTENT_S3_IDLE_TIMEOUT_MS: integer(30_000, 100, 'Time without any transferred byte after which a request to the store fails'),
  CONTENT_ORPHAN_AGE_MS: integer(24 * 3_600_000, 60_000, 'Age after which content that belongs to no document is deleted'),

  CAPTURE_BODY_MAX_BYTES: integer(1 * MiB, 0, 'Maximum size of a request or answer body that is stored with a captured request'),
  CAPTURE_MEMORY_MAX_BYTES: integer(
    64 * MiB,
    1 * MiB,
    'Maximum memory per process for bodies being captured and captures not yet written. A quarter is reserved for requests without ' +
      'their bodies. Source addresses share it: one alone uses at most half. Beyond it, bodies and then whole captures are dropped',
  ),
  CAPTURE_REFUSED_MAX_BYTES_PER_HOUR: integer(
    64 * MiB,
    0,
    'Maximum size of the captures of refused requests that one process stores per workspace and hour. Further ones are dropped',
  ),
  CAPTURE_WAITING_MAX_REQUESTS: integer(
    10_000,
    1,
    'Maximum number of captures per process that wait to be written, of which one source address uses at most half. Further ones are dropped',
  ),
  CAPTURE_WRITE_INTERVAL_MS: integer(500, 10, 'Time that a capture waits so that several are written together'),

  DELIVERY_ATTEMPT_TIMEOUT_MS: integer(3_600_000, 1_000, 'Maximum duration of one delivery attempt'),
  DELIVERY_CONNECT_TIMEOUT_MS: integer(10_000, 100, 'Maximum time for connecting to a target'),
  DELIVERY_IDLE_TIMEOUT_MS: integer(60_000, 100, 'Time without any transferred byte after which an attempt fails'),
  DELIVERY_HEARTBEAT_TIMEOUT_MS: integer(
    30_000,
    1_000,
    'Time without a heartbeat from a worker after which its attempt is considered lost',
  ),
  DELIVERY_MAX_CONCURRENT_PER_DESTINATION: integer(
    16,
    1,
    'Maximum number of concurrent attempts per destination, in the whole installation. ' +
      'No destination takes more slots of a worker than it leaves free for others. ' +
      'Overridden by max_concurrent_deliveries of a destination',
  ),
  DELIVERY_MAX_PER_MINUTE_PER_DESTINATION: integer(
    0,
    0,
    'Maximum number of attempts per minute and destination, in the whole installation. 0 means no limit. ' +
      'Overridden by max_deliveries_per_minute of a destination',
  ),
  DELIVERY_CIRCUIT_FAILURES: integer(
    10,
    0,
    'Number of consecutive failed attempts at a destination that open its circuit: from then on, one delivery at a time tries it, ' +
      'until an attempt succeeds. 0 switches circuits off',
  ),
  DELIVERY_CIRCUIT_PAUSE_MS: integer(
    10_000,
    100,
    'Time between the opening of a circuit and the first trial. It doubles with each trial that fails',
  ),
  DELIVERY_CIRCUIT_MAX_PAUSE_MS: integer(60_000, 100, 'Maximum time between two trials of a destination whose circuit is open'),
  DELIVERY_BUSY_MAX_WAIT_MS: integer(
    1_800_000,
    1_000,
    'Maximum time that a delivery waits before it asks again for a free slot at its destination',
  ),
  DELIVERY_RETRY_WINDOW_MS: integer(
    7 * 86_400_000,
    1_000,
    'Time for which the workflow of a failed delivery stays open in Temporal and waits for a manual retry',
  ),
  DELIVERY_ANSWER_MAX_BYTES: integer(16 * KiB, 0, "Maximum size of the part of a target's answer that is stored with the attempt"),
  DELIVERY_BATCH_SIZE: integer(
    200,
    1,
    'Number of deliveries released or cancelled per transaction when a connection or destination changes',
  ),

  DOWNLOAD_LINK_TTL_MS: integer(
    7 * 86_400_000,
    1_000,
    'Validity of the download link that an e-mail contains instead of a large attachment. Requires RELAY_BASE_URL',
  ),

  RFC_TIMEOUT_MS: integer(60_000, 100, 'Maximum duration of one remote function call'),
  RFC_ANSWER_MAX_BYTES: integer(
    2 * MiB,
    1 * KiB,
    'Maximum size of the answer to a remote function call, as XML. Reading it takes a thread 0.3 seconds and 60 MB per MiB',
  ),
  RFC_CALL_MAX_VALUES: integer(
    50_000,
    1,
    'Maximum number of keys and values in the body of a remote function call. Reading them takes a thread half a second',
  ),
  RFC_MAX_CONCURRENT_CALLS: integer(64, 1, 'Maximum number of concurrent remote function calls per process. Further ones are answered 503'),
  RFC_MAX_CONCURRENT_CALLS_PER_WORKSPACE: integer(16, 1, 'Maximum number of concurrent remote function calls of one workspace per process'),

  OUTBOX_SWEEP_INTERVAL_MS: integer(15_000, 1_000, 'Interval at which the outbox is checked for messages that were not sent'),
  OUTBOX_SWEEP_AGE_MS: integer(5_000, 0, 'Minimum age of a message for this check. A younger message may still be on its way'),

  HELD_CHECK_INTERVAL_MS: integer(
    60_000,
    1_000,
    'Interval at which held deliveries are released or cancelled whose connection has become active or was deleted',
  ),
  RECONCILE_INTERVAL_MS: integer(
    60_000,
    1_000,
    'Interval at which the reconciler asks Temporal about overdue deliveries and starts those again that Temporal has lost, and at which ' +
      'each worker checks that the schedules exist',
  ),
  RECONCILE_AGE_MS: integer(30_000, 0, 'Time without a sign of life after which the reconciler considers a delivery overdue'),
  RECONCILE_MAX_CHECKS: integer(
    2_000,
    1,
    'Number of overdue deliveries in order after which a run of the reconciler ends; the next run continues. ' +
      'A run does not end while it finds deliveries that Temporal has lost',
  ),
  UPKEEP_INTERVAL_MS: integer(3_600_000, 1_000, 'Interval at which partitions are created ahead of time and orphaned content is deleted'),

  COUNTERS_FOLD_INTERVAL_MS: integer(
    15_000,
    1_000,
    'Interval at which changes of the number of documents, deliveries and attempts are added up. Totals are exact at any time; ' +
      'the more changes wait, the longer reading a total takes',
  ),
  COUNTERS_FOLD_BATCH_SIZE: integer(10_000, 1, 'Number of these changes that are added up per transaction'),
  METRICS_INTERVAL_MS: integer(
    30_000,
    1_000,
    'Interval at which metrics about all documents, destinations and repositories are computed. /metrics shows the latest',
  ),

  RETENTION_ATTEMPTS_DAYS: integer(
    365,
    1,
    'Time for which delivery attempts are kept. Other retention periods are settings of a workspace',
  ),
  RETENTION_BATCH_SIZE: integer(5_000, 1, 'Number of rows that retention deletes per statement'),
  RETENTION_LOCK_TIMEOUT_MS: integer(
    1_000,
    10,
    'Maximum time that retention waits for the lock to drop a partition. Other statements queue behind it',
  ),

  RETENTION_INCIDENTS_DAYS: integer(90, 7, 'Time for which closed incidents and their notices are kept'),

  NOTIFICATION_CHECK_INTERVAL_MS: integer(30_000, 1_000, 'Interval at which incidents are opened and closed, and notices are written'),
  NOTIFICATION_MAX_NOTICES: integer(1_000, 1, 'Maximum number of incidents that one check announces. The next check announces the rest'),
  NOTIFICATION_MAX_COUNT: integer(1_000, 1, 'Number of failed deliveries or discarded documents up to which an incident counts them'),
  NOTIFICATION_ATTEMPT_TIMEOUT_MS: integer(60_000, 1_000, 'Maximum duration of one attempt to send a notice'),
  NOTIFICATION_DESTINATION_FAILURES: integer(
    5,
    1,
    'Number of consecutive failed attempts from which a destination is announced as failing, also if its circuit is closed',
  ),
  NOTIFICATION_CERTIFICATE_DAYS: integer(30, 1, 'Time before the end of its validity from which a certificate is announced as expiring'),
  NOTIFICATION_SILENCE_MIN_MS: integer(
    3_600_000,
    1_000,
    'Time without a request after which, at the earliest, a source is announced as silent',
  ),
  NOTIFICATION_SILENCE_GAPS: integer(2, 1, 'Number of usual gaps between two requests after which a source is announced as silent'),
  NOTIFICATION_SILENCE_LEARNING_MS: integer(
    7 * 86_400_000,
    0,
    'Time for which the relay watches a source before it announces the source as silent: a week has nights and a weekend',
  ),

  EMBEDDED_START_TIMEOUT_MS: integer(60_000, 1_000, 'Maximum time until an embedded server answers after its start'),
  EMBEDDED_STOP_TIMEOUT_MS: integer(20_000, 1_000, 'Time that an embedded server has to stop before it is killed'),
  EMBEDDED_DOWNLOAD_TIMEOUT_MS: integer(60_000, 1_000, 'Maximum time for downloading a program of the embedded stack'),
  EMBEDDED_BUILD_TIMEOUT_MS: integer(1_800_000, 1_000, 'Maximum time for building or installing a program of the embedded stack'),

  TEMPORAL_UI_URL: z
    .string()
    .refine((text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol), 'must be an http or https URL')
    .optional()
    .describe(
      'URL of the Temporal UI, for the links in the console and in notices. script/server and script/demo know that of their own server',
    ),
  TEMPORAL_TASK_QUEUE: z.string().default('document-relay').describe('Task queue of workflows and activities'),
  TEMPORAL_START_TIMEOUT_MS: integer(5_000, 100, 'Maximum time for starting a workflow. After it, the outbox sweep starts the workflow'),
  TEMPORAL_REGISTER_TIMEOUT_MS: integer(
    30_000,
    0,
    'Time for which relay migrate tries to register the search attributes while Temporal is unavailable',
  ),
  TEMPORAL_MAX_CONCURRENT_STARTS: integer(50, 1, 'Maximum number of messages that one process sends to Temporal at a time'),
  TEMPORAL_MAX_WAITING_STARTS: integer(
    1_000,
    0,
    'Maximum number of further messages that wait in one process. The outbox sweep sends the rest',
  ),
  TEMPORAL_MAX_CONCURRENT_ATTEMPTS: integer(100, 1, 'Maximum number of concurrent delivery attempts in one worker process'),
  TEMPORAL_WORKER_BUILD_ID: z
    .string()
    .optional()
    .describe('Build id of this worker, for upgrades with worker versioning. The version must then be made current in Temporal'),
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
  OTEL_EXPORTER_OTLP_HEADERS: pairs('Headers for the collector, for example its API key, as comma-separated name=value pairs. A secret'),
  OTEL_EXPORTER_OTLP_TIMEOUT: integer(
    10_000,
    100,
    'Maximum time, in milliseconds, for sending a batch of spans, and for sending the last spans when the process stops',
  ),
  OTEL_SERVICE_NAME: z.string().optional().describe('Name of the service in traces. Default: document-relay'),
  OTEL_RESOURCE_ATTRIBUTES: pairs('Further attributes of all spans, as comma-separated name=value pairs'),
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
})

export type Config = z.output<typeof environment> & {
  /** Address, namespace, TLS and API key, from the standard TEMPORAL_* variables or the TOML profile. */
  temporal: ClientConnectConfig
  /**
   * Variables passed to child processes, such as PATH, HOME and proxies. The variables of the relay, Temporal,
   * PostgreSQL, OpenTelemetry and cloud SDKs are excluded, because they contain secrets.
   */
  childEnvironment: Record<string, string>
}

type Variables = Record<string, string | undefined>

/** Reads the configuration of this process. @throws `UserError` that names the invalid variables */
export const readConfig = (variables: Variables = process.env): Config => {
  const present = Object.fromEntries(
    Object.entries(variables).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== ''),
  )
  const parsed = environment.safeParse(present, plainMessages)
  if (!parsed.success) {
    const issues = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`)
    throw new UserError(`Invalid configuration: ${issues.join('; ')}`)
  }
  return {
    ...parsed.data,
    RELAY_DATA_DIR: resolve(parsed.data.RELAY_DATA_DIR),
    temporal: readTemporal(present),
    childEnvironment: childEnvironmentOf(present),
  }
}

const ownVariables = /^(TEMPORAL_|OTEL_|AWS_|AZURE_|GOOGLE_|PG|RELAY_|TEST_)/

const childEnvironmentOf = (variables: Record<string, string>) =>
  Object.fromEntries(Object.entries(variables).filter(([name]) => !(name in environment.shape) && !ownVariables.test(name)))

const readTemporal = (variables: Record<string, string>): ClientConnectConfig => {
  try {
    return loadClientConnectConfig({ overrideEnvVars: variables })
  } catch (thrown) {
    throw new UserError(`The TEMPORAL_* variables or the Temporal profile are invalid: ${messageOf(thrown)}`, { cause: thrown })
  }
}
