import { resolve } from 'node:path'
import { loadClientConnectConfig, type ClientConnectConfig } from '@temporalio/envconfig'
import { z } from 'zod'
import { messageOf, UserError } from './errors.ts'

const integer = (fallback: number, lowest: number, description: string) =>
  z.coerce.number().int().min(lowest).default(fallback).describe(description)

const flag = (fallback: boolean, description: string) =>
  z
    .enum(['true', 'false'])
    .default(fallback ? 'true' : 'false')
    .transform((value) => value === 'true')
    .describe(description)

const list = (description: string) =>
  z
    .string()
    .default('')
    .transform((text) =>
      text
        .split(',')
        .map((item) => item.trim())
        .filter(Boolean),
    )
    .describe(description)

const KiB = 1024
const MiB = 1024 * KiB
const GiB = 1024 * MiB

/** Every environment variable we read, with its default. The unit of a number is the end of its name. docs/configuration.md is made from it. */
export const environment = z.object({
  DATABASE_URL: z.string().optional().describe('PostgreSQL 14 or newer, as postgres://user:password@host:port/database'),
  DATABASE_POOL_MAX_CONNECTIONS: integer(10, 2, 'Connections one process holds at most'),
  DATABASE_IDLE_TIMEOUT_MS: integer(600_000, 1_000, 'An unused connection is closed after this; a new one costs as much as forty queries'),
  DATABASE_ACQUIRE_TIMEOUT_MS: integer(5_000, 100, 'How long a request waits for a connection before it answers 503'),
  DATABASE_STATEMENT_TIMEOUT_MS: integer(30_000, 100, 'The longest a single statement may run'),

  RELAY_PORT: integer(8080, 0, 'Port of the HTTP server; 0 takes a free one'),
  RELAY_HOST: z.string().default('0.0.0.0').describe('Address the HTTP server listens on'),
  RELAY_BASE_URL: z.string().optional().describe('How clients reach us, where that differs from host and port'),
  RELAY_TRUST_PROXY: flag(false, 'Take the client address from the last entry of X-Forwarded-For'),
  RELAY_DATA_DIR: z.string().default('.relay').describe('Where script/server keeps its database and ready.json'),
  RELAY_CACHE_DIR: z
    .string()
    .optional()
    .describe('Where programs fetched or built for the embedded stack are kept; document-relay in $XDG_CACHE_HOME or ~/.cache'),
  RELAY_POSTGRES_BIN: z.string().optional().describe('Directory with postgres and initdb (14 or newer) for the embedded stack'),
  RELAY_TEMPORAL_BIN: z.string().optional().describe('The Temporal CLI that the embedded stack runs'),
  RELAY_LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info').describe('Lowest level logged'),
  RELAY_SECRET_KEYS: list('Keys that seal credentials, id:base64(32 bytes), comma separated; the first one seals, all of them open'),
  RELAY_ALLOWED_PRIVATE_CIDRS: list('Private or loopback ranges that destinations may lie in, comma separated'),

  RELAY_HTTP_HEADERS_TIMEOUT_MS: integer(30_000, 1_000, 'How long a client may take to send its headers'),
  RELAY_HTTP_IDLE_TIMEOUT_MS: integer(60_000, 1_000, 'How long a connection may carry no byte in mid-request'),
  RELAY_HTTP_MAX_HEADER_BYTES: integer(64 * KiB, 8 * KiB, 'Request line and headers together'),
  RELAY_HTTP_MIN_BODY_BYTES: integer(1024, 1, 'What a body must bring within each RELAY_HTTP_IDLE_TIMEOUT_MS that we wait for it'),
  RELAY_HTTP_LINGER_TIMEOUT_MS: integer(
    5_000,
    0,
    'How long the rest of a refused body is read, so that the client gets to see the refusal',
  ),
  RELAY_API_BODY_MAX_BYTES: integer(1 * MiB, 1 * KiB, 'A JSON body of the management API'),
  RELAY_EXPORT_MAX_ROWS: integer(100_000, 1, 'Rows in one CSV export; a narrower range of dates gets the rest'),
  RELAY_EXPORT_TIMEOUT_MS: integer(600_000, 1_000, 'The longest one CSV export may take, however slowly the client reads'),
  RELAY_MAX_CONCURRENT_EXPORTS: integer(2, 1, 'CSV exports at work in one process: each holds a database connection'),
  RELAY_WRONG_KEYS_PER_MINUTE: integer(20, 1, 'Wrong API keys from one address before it is answered 429'),
  RELAY_WRONG_KEY_MAX_ADDRESSES: integer(10_000, 1, 'Addresses whose wrong keys one process counts'),
  RELAY_PROBE_TIMEOUT_MS: integer(30_000, 100, 'The longest a test of a destination may take'),
  RELAY_DOCUMENT_MAX_BYTES: integer(4 * GiB, 1, 'One request of the source system'),
  RELAY_DOCUMENT_MAX_PARTS: integer(1_000, 1, 'Components in one multipart request'),
  RELAY_APPEND_QUIET_MS: integer(60_000, 0, 'A component that was appended to is relayed again once no append has come for this long'),
  RELAY_DOCUMENT_LOCK_TIMEOUT_MS: integer(
    5_000,
    100,
    'How long a command waits for another one that is changing the same document, before it answers 409',
  ),
  RELAY_SEARCH_MAX_RESULTS: integer(10_000, 1, 'Hits that one search answers with, however many are asked for'),
  RELAY_SIGNATURE_SKEW_MS: integer(120_000, 0, 'How long after its expiration a signed URL is still taken, for clocks that differ'),
  RELAY_SIGNATURE_SCOPE: z
    .enum(['all', 'doc_prot'])
    .default('all')
    .describe(
      'What a repository with signature_verification takes signed only: all commands, or those that the docProt of the document names',
    ),
  RELAY_CERTIFICATE_MAX_BYTES: integer(256 * KiB, 1 * KiB, 'A certificate, as a source system sends it'),
  RELAY_REPOSITORY_MAX_CERTIFICATES: integer(100, 1, 'Certificates one repository holds, inactive ones included'),
  RELAY_SHUTDOWN_GRACE_MS: integer(10_000, 0, 'How long running requests and attempts may go on after SIGTERM'),

  CONTENT_S3_BUCKET: z.string().optional().describe('Keeps document bytes in this bucket instead of PostgreSQL'),
  CONTENT_S3_REGION: z.string().default('us-east-1').describe('Region of that bucket'),
  CONTENT_S3_ENDPOINT: z.string().optional().describe('For stores other than AWS'),
  CONTENT_S3_PATH_STYLE: flag(false, 'Bucket in the path instead of the host name'),
  CONTENT_S3_PREFIX: z.string().default('').describe('Put before every key'),
  CONTENT_S3_ACCESS_KEY_ID: z.string().optional().describe("Without it, AWS's own chain of credentials"),
  CONTENT_S3_SECRET_ACCESS_KEY: z.string().optional().describe('Goes with the access key id'),
  CONTENT_S3_CONNECT_TIMEOUT_MS: integer(5_000, 100, 'Connecting to that store'),
  CONTENT_S3_IDLE_TIMEOUT_MS: integer(30_000, 100, 'That store neither takes nor sends a byte'),
  CONTENT_ORPHAN_AGE_MS: integer(24 * 3_600_000, 60_000, 'Bytes that no document came to own are removed after this'),

  CAPTURE_BODY_MAX_BYTES: integer(1 * MiB, 0, 'The largest body kept with a captured request or its answer'),
  CAPTURE_COMMIT_BODY_MAX_BYTES: integer(
    8 * KiB,
    0,
    'A body larger than this is written just after the answer, and not in the transaction of its document',
  ),
  CAPTURE_MEMORY_MAX_BYTES: integer(
    64 * MiB,
    1 * MiB,
    'What bodies to be captured and captures not written yet may hold in one process; beyond it bodies, then captures are left out',
  ),
  CAPTURE_WAITING_MAX_REQUESTS: integer(10_000, 1, 'Captures that wait in one process to be written; what comes on top is left out'),
  CAPTURE_WRITE_INTERVAL_MS: integer(500, 10, 'How long a capture waits for others to be written with'),
  CAPTURE_REPLAY_TIMEOUT_MS: integer(30_000, 100, 'The longest a replayed request may search'),

  DELIVERY_ATTEMPT_TIMEOUT_MS: integer(3_600_000, 1_000, 'The longest one attempt may take'),
  DELIVERY_CONNECT_TIMEOUT_MS: integer(10_000, 100, 'Connecting to a target'),
  DELIVERY_IDLE_TIMEOUT_MS: integer(60_000, 100, 'A target that neither takes nor sends a byte'),
  DELIVERY_HEARTBEAT_TIMEOUT_MS: integer(30_000, 1_000, 'A worker silent for this long has lost its attempt'),
  DELIVERY_MAX_CONCURRENT_PER_DESTINATION: integer(
    16,
    1,
    'Attempts at work at one destination in one worker process, and never more than are left free for the others; a destination may say max_concurrent_deliveries',
  ),
  DELIVERY_MAX_PER_MINUTE_PER_DESTINATION: integer(
    0,
    0,
    'Attempts one worker process begins at one destination in a minute, 0 for any number; a destination may say max_deliveries_per_minute',
  ),
  DELIVERY_BUSY_MAX_WAIT_MS: integer(
    1_800_000,
    1_000,
    'The longest a delivery waits before it asks again whether its destination has a place',
  ),
  DELIVERY_RETRY_WINDOW_MS: integer(
    7 * 86_400_000,
    1_000,
    'How long a failed delivery stays open in Temporal, waiting for a retry by hand',
  ),
  DELIVERY_ANSWER_MAX_BYTES: integer(16 * KiB, 0, "How much of a target's answer is kept with the attempt"),
  DELIVERY_BATCH_SIZE: integer(200, 1, 'Deliveries released or cancelled in one transaction, when a connection or destination changes'),

  DOWNLOAD_LINK_TTL_MS: integer(
    7 * 86_400_000,
    1_000,
    'How long the link in a mail is good, which stands for a document too large to be attached; it needs RELAY_BASE_URL',
  ),

  RFC_TIMEOUT_MS: integer(60_000, 100, 'The longest one remote function call may take'),
  RFC_ANSWER_MAX_BYTES: integer(16 * MiB, 1 * KiB, "The answer to one, as the system's XML"),

  OUTBOX_SWEEP_INTERVAL_MS: integer(15_000, 1_000, 'How often the outbox is looked through for messages that were never sent'),
  OUTBOX_SWEEP_AGE_MS: integer(5_000, 0, 'How old such a message must be: younger ones are still being sent'),

  HELD_CHECK_INTERVAL_MS: integer(60_000, 1_000, 'How often held deliveries are looked for whose connection is active or gone'),
  UPKEEP_INTERVAL_MS: integer(3_600_000, 1_000, 'How often partitions are made ahead, and bytes removed that belong to nothing'),

  RETENTION_ATTEMPTS_DAYS: integer(
    365,
    1,
    'How long the attempts of deliveries are kept; what a workspace decides itself is in its settings',
  ),
  RETENTION_BATCH_SIZE: integer(5_000, 1, 'Rows that retention removes by one statement'),
  RETENTION_LOCK_TIMEOUT_MS: integer(1_000, 10, 'How long retention waits for a table that it may drop, and others behind it'),

  EMBEDDED_START_TIMEOUT_MS: integer(60_000, 1_000, 'How long an embedded server may take until it answers'),
  EMBEDDED_STOP_TIMEOUT_MS: integer(20_000, 1_000, 'How long an embedded server may take to stop before it is killed'),
  EMBEDDED_DOWNLOAD_TIMEOUT_MS: integer(60_000, 1_000, 'How long fetching a program for the embedded stack may take'),
  EMBEDDED_BUILD_TIMEOUT_MS: integer(1_800_000, 1_000, 'How long building or installing one may take'),

  TEMPORAL_TASK_QUEUE: z.string().default('document-relay').describe('Task queue of workflows and activities'),
  TEMPORAL_START_TIMEOUT_MS: integer(5_000, 100, 'Starting a workflow; the sweep takes over after that'),
  TEMPORAL_MAX_CONCURRENT_STARTS: integer(50, 1, 'Messages to Temporal in flight in one process'),
  TEMPORAL_MAX_WAITING_STARTS: integer(1_000, 0, 'Messages that wait for their turn; the sweep takes the rest'),
  TEMPORAL_MAX_CONCURRENT_ATTEMPTS: integer(100, 1, 'Delivery attempts at work in one worker process'),
  TEMPORAL_WORKER_BUILD_ID: z
    .string()
    .optional()
    .describe("Of this worker's version, where upgrades go by worker versioning: the version must then be made current"),
  TEMPORAL_WORKER_DEPLOYMENT: z.string().default('document-relay').describe('The worker deployment that such versions belong to'),
  TEMPORAL_MAX_CACHED_WORKFLOWS: integer(1_000, 0, 'Workflows a worker keeps in memory'),
})

export type Config = z.output<typeof environment> & {
  /** Address, namespace, TLS and API key from the standard TEMPORAL_* variables and TOML profile. */
  temporal: ClientConnectConfig
  /** PATH, HOME, proxies and the like, for programs we start: without what is meant for us alone, secrets above all. */
  childEnvironment: Record<string, string>
}

type Variables = Record<string, string | undefined>

/** The configuration of this process. @throws UserError that names the variable which does not fit. */
export const readConfig = (variables: Variables = process.env): Config => {
  const present = Object.fromEntries(
    Object.entries(variables).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== ''),
  )
  const parsed = environment.safeParse(present)
  if (!parsed.success) {
    const faults = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`)
    throw new UserError(`The configuration does not fit: ${faults.join('; ')}`)
  }
  return {
    ...parsed.data,
    RELAY_DATA_DIR: resolve(parsed.data.RELAY_DATA_DIR),
    temporal: readTemporal(present),
    childEnvironment: forChildren(present),
  }
}

const ours = /^(TEMPORAL_|AWS_|AZURE_|GOOGLE_|PG|RELAY_|TEST_)/

const forChildren = (variables: Record<string, string>) =>
  Object.fromEntries(Object.entries(variables).filter(([name]) => !(name in environment.shape) && !ours.test(name)))

const readTemporal = (variables: Record<string, string>): ClientConnectConfig => {
  try {
    return loadClientConnectConfig({ overrideEnvVars: variables })
  } catch (thrown) {
    throw new UserError(`The TEMPORAL_* variables or the Temporal profile do not fit: ${messageOf(thrown)}`, { cause: thrown })
  }
}
