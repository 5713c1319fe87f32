import { integer, KiB, MiB } from './values.ts'

/** Variables of the HTTP server and of the management API: limits, sessions and the streams of the console. */
export const apiVariables = {
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
}
