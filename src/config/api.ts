import { integer } from './values.ts'

/** Variables of the HTTP server and of the management API: limits, sessions and the streams of the console. */
export const apiVariables = {
  RELAY_HTTP_MAX_CONNECTIONS: integer(2_000, 1, 'Maximum number of connections per process. Further ones are closed at once'),
  RELAY_HTTP_MAX_CONNECTIONS_PER_ADDRESS: integer(
    500,
    1,
    'Maximum number of connections, and of running requests, per process from one address (for IPv6, from one /64 network). Further ' +
      'connections are closed at once, further requests are answered 503. With RELAY_TRUST_PROXY, only the requests of each client are counted',
  ),
  RELAY_SESSION_TTL_MS: integer(
    12 * 3_600_000,
    60_000,
    'Time after which a session of the console ends. It ends earlier when its API key expires or is revoked, and that of a person who ' +
      'has signed in through RELAY_OIDC_FILE after one hour',
  ),
  RELAY_WRONG_KEYS_PER_MINUTE: integer(
    20,
    1,
    'Number of requests with a wrong API key that one address may send per minute before it is answered 429',
  ),
}
