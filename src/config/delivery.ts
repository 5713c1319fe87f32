import { integer, MiB } from './values.ts'

/** Variables of captured requests, deliveries, download links and the bridge. */
export const deliveryVariables = {
  CAPTURE_BODY_MAX_BYTES: integer(1 * MiB, 0, 'Maximum size of a request or answer body that is stored with a captured request'),
  CAPTURE_MEMORY_MAX_BYTES: integer(
    64 * MiB,
    1 * MiB,
    'Maximum memory per process for bodies being captured and captures not yet written. Source addresses share it: the bodies of one ' +
      'alone use at most half. Beyond it, bodies and then whole captures are dropped. A process stores at most as much of refused ' +
      'requests per workspace and hour, of which half may be bodies, and as much of failed ones',
  ),

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
    'Number of consecutive failed attempts at a destination that open its circuit: one delivery at a time then tries it, ' +
      'until an attempt succeeds. 0 switches circuits off',
  ),
  DELIVERY_CIRCUIT_PAUSE_MS: integer(
    10_000,
    100,
    'Time between the opening of a circuit and the first trial. It doubles with each trial that fails, up to six times as long',
  ),
  DELIVERY_RETRY_WINDOW_MS: integer(
    7 * 86_400_000,
    1_000,
    'Time for which the workflow of a failed delivery stays open in Temporal and waits for a manual retry, unless many deliveries of its destination have failed',
  ),

  DOWNLOAD_LINK_TTL_MS: integer(
    7 * 86_400_000,
    1_000,
    'Validity of the download link that an e-mail contains instead of a large attachment. Requires RELAY_BASE_URL',
  ),

  RFC_TIMEOUT_MS: integer(60_000, 100, 'Maximum duration of one remote function call'),
}
