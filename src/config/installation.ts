import { isAbsolute } from 'node:path'
import { z } from 'zod'
import { workspaceNamePattern } from '../base/workspace-name.ts'
import { grants, integer, flag, list, isOrigin } from './values.ts'

const absolutePath = z.string().refine(isAbsolute, 'must be an absolute path')
const forWorkspaces =
  'Each is for the destinations of every workspace. user/workspace= in front of it allows it to one, and {workspace} in it stands for user/workspace'

/** Variables of every process: the database, addresses, folders, the log, keys, and what the operator allows. */
export const installationVariables = {
  DATABASE_URL: z
    .string()
    .optional()
    .describe('Address of the database (PostgreSQL 14 or newer), as postgres://user:password@host:port/database'),
  DATABASE_POOL_MAX_CONNECTIONS: integer(
    10,
    2,
    'Maximum number of database connections per process. In an API process, everything but the requests of source systems uses at most 60 % of them',
  ),
  DATABASE_STATEMENT_TIMEOUT_MS: integer(
    30_000,
    100,
    'Maximum duration of one SQL statement. A connection that has not answered 2 seconds later is closed',
  ),
  DATABASE_TRANSACTION_POOLING: flag(
    false,
    'If true, DATABASE_URL leads to a pooler such as PgBouncer that gives a connection another session for each transaction. ' +
      'Statements are then prepared if the pooler does so in each session, and PostgreSQL does not learn DATABASE_STATEMENT_TIMEOUT_MS: ' +
      'set statement_timeout for the role to the same time',
  ),

  RELAY_PORT: integer(8080, 0, 'Port of the API, the receivers, the bridge and the console. 0 selects a free port'),
  RELAY_PROBES_PORT: integer(
    8082,
    0,
    'Port on which relay api answers probes and /metrics, which name workspaces: do not publish it. 0 selects a free port. ' +
      'Unless it is set, script/server and script/demo select a free port and keep it; ready.json contains it',
  ),
  RELAY_WORKER_PORT: integer(
    8081,
    0,
    'Port on which relay worker answers probes and /metrics. 0 selects a free port. ' +
      'Unless it is set, script/server and script/demo select a free port and keep it; ready.json contains it',
  ),
  RELAY_HOST: z
    .string()
    .default('0.0.0.0')
    .describe(
      'Address on which RELAY_PORT listens. script/server and script/demo listen on 127.0.0.1 unless it is set. RELAY_PROBES_HOST is that of the other ports',
    ),
  RELAY_PROBES_HOST: z
    .string()
    .default('127.0.0.1')
    .describe(
      'Address on which RELAY_PROBES_PORT and RELAY_WORKER_PORT listen. The container image sets 0.0.0.0. Elsewhere, set the address at which Prometheus reaches this machine',
    ),
  RELAY_METRICS_TOKEN: z
    .string()
    .min(16)
    .regex(/^[\x21-\x7e]+$/, 'must have printable ASCII characters without blanks')
    .optional()
    .describe('Bearer token that /metrics demands. Without it, /metrics needs none. /healthz and /readyz never do'),
  RELAY_BASE_URL: z.string().optional().describe('URL under which clients reach the relay, if it differs from host and port'),
  RELAY_CORS_ORIGINS: list(
    'Comma-separated origins of web pages, like https://console.example, that may call the management API in a browser; empty allows none',
    z.string().refine(isOrigin, 'must be an origin: scheme, host and port, like https://console.example'),
  ),
  RELAY_TRUST_PROXY: flag(false, 'If true, the client address is the last entry of X-Forwarded-For. Set it only behind a proxy'),
  RELAY_DATA_DIR: z
    .string()
    .default('.relay')
    .describe('Directory in which script/server keeps its database, its contents, its sealing key and ready.json'),
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
  RELAY_TEMPORAL: z
    .enum(['local'])
    .optional()
    .describe(
      'local lets relay server run Temporal itself, with its state in two schemas of the database of DATABASE_URL: production on one machine. ' +
        'Instead of TEMPORAL_ADDRESS',
    ),
  RELAY_TEMPORAL_SERVER_DIR: z
    .string()
    .optional()
    .describe(
      'Directory with the programs temporal-server and temporal-sql-tool for RELAY_TEMPORAL=local, and ui-server for RELAY_TEMPORAL_UI. ' +
        'Default: those on PATH, or a build with Go',
    ),
  RELAY_TEMPORAL_UI: z
    .string()
    .regex(/^[^\s/@]+:\d{1,5}$/, 'must be an address and a port, like 127.0.0.1:8233')
    .optional()
    .describe(
      'Address and port, like 127.0.0.1:8233, on which relay server runs the UI of Temporal with RELAY_TEMPORAL=local. It changes nothing, ' +
        'and has no sign-in. Default: no UI',
    ),
  RELAY_LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe('Lowest level that is logged'),
  RELAY_LOG_FORMAT: z
    .enum(['json', 'pretty'])
    .optional()
    .describe('Format of the log: json for programs, pretty for people. Default: json; pretty in script/server and script/demo'),
  RELAY_SECRET_KEYS: list('Keys that seal credentials, as comma-separated entries id:base64(32 bytes). The first key seals, all keys open'),
  RELAY_OIDC_FILE: z
    .string()
    .optional()
    .describe(
      'Path of the YAML or JSON file with the OpenID provider by which people sign in to the console, and what each of them may do',
    ),
  RELAY_NOTICES_FILE: z
    .string()
    .optional()
    .describe(
      'Path of the YAML or JSON file with the mailbox or webhook to which relay api sends a notice when deliveries have been due for 5 minutes ' +
        'because no worker runs or Temporal does not answer, and another one when they are made again',
    ),
  RELAY_OPERATOR_WORKSPACE: z
    .string()
    .regex(workspaceNamePattern, 'must be user/workspace')
    .optional()
    .describe(
      'Workspace of the operator, as user/workspace. Its notifications also announce the incidents of all other workspaces, to the ' +
        'destinations of this one: all who may read it learn of these incidents',
    ),
  RELAY_ALLOWED_PRIVATE_CIDRS: list('Comma-separated private or loopback address ranges that destinations may use'),
  RELAY_OUTBOUND_PROXY: z
    .url({ protocol: /^https?$/, error: 'must be an http or https URL' })
    .optional()
    .describe(
      'URL of an HTTP proxy through which the relay connects to targets (CONNECT), as http://user:password@host:port. HTTPS_PROXY and its ' +
        'like are ignored',
    ),
  RELAY_OUTBOUND_NO_PROXY: list(
    'Comma-separated names, which include the names that end with them, and address ranges that the relay connects to directly, although ' +
      'RELAY_OUTBOUND_PROXY is set',
    z.string(),
    '127.0.0.0/8,::1/128,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10,fc00::/7',
  ),
  RELAY_DIRECTORY_ROOTS: grants(
    `Comma-separated absolute paths of directories below which destinations of the kind directory may write; empty allows none. ${forWorkspaces}`,
    absolutePath,
  ),
  RELAY_TOKEN_FILE_ROOTS: grants(
    `Comma-separated absolute paths of directories below which destinations may name files with federated tokens; empty allows none. ${forWorkspaces}`,
    absolutePath,
  ),
  RELAY_S3_ROLES: grants(
    `Comma-separated ARNs of the AWS roles that destinations of the kind objstore may assume with the identity of the relay, or with a federated token; empty allows none. ${forWorkspaces}`,
    z.string().regex(/^arn:[\w-]+:iam::[\w-]*:role\/\S+$/, 'must be the ARN of a role'),
  ),
}
