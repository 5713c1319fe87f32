import type { ErrorCode } from '../../base/errors.ts'

interface Guide {
  /** What a client does, with Markdown as in docs/errors.md. */
  caller: string
  operator: string
}

/** What to do about each error code of the HTTP APIs. docs/errors.md and the page `/docs/errors` are generated from it. */
export const errorGuide: Readonly<Record<ErrorCode | 'internal_error', Guide>> = {
  invalid_request: {
    caller:
      'Correct the request: it has malformed JSON, a missing field, a wrong type, an unknown key, or an unknown or malformed ' +
      'query value. Repeating it does not help',
    operator: 'Nothing',
  },
  unauthorized: {
    caller: 'Send a valid key of this workspace as `Authorization: Bearer <key>`',
    operator: 'Run `relay key list` to see whether the key is revoked or expired. Create a new key with `relay key create`',
  },
  forbidden: {
    caller: 'Use a key of the level that the message names. A person in the console needs a group with that level',
    operator: 'Decide whether the caller should have that level',
  },
  not_found: {
    caller: 'Check the path and the id. A resource of another workspace gets the same response',
    operator: 'Nothing',
  },
  method_not_allowed: {
    caller: 'Use a method from the `Allow` header',
    operator: 'Nothing',
  },
  conflict: {
    caller:
      'Retrieve the current state: another request may have created or completed the resource. With `Retry-After`, the outcome ' +
      'of a request with the same `Idempotency-Key` is not known yet: wait and repeat it',
    operator: 'Nothing',
  },
  nothing_to_retry: {
    caller: 'Nothing: no delivery can be retried. The message says why',
    operator: 'Activate the connection, or [acknowledge](deliveries.md#acknowledge-a-failed-document) the document, as the message says',
  },
  gone: {
    caller:
      'A link in an e-mail (`/download/...`) has expired or was revoked, or the document has been deleted. Ask the sender for ' +
      'the document. Of `GET /events`: [the events after the cursor were removed, or the database does not have its event](events.md#a-cursor-that-is-gone)',
    operator: 'Send the document again, or raise `DOWNLOAD_LINK_TTL_MS`',
  },
  precondition_failed: {
    caller:
      'The resource has changed since the `ETag` in `If-Match` was returned: retrieve it and decide again. Certificates, API ' +
      'keys and documents have no `ETag`: omit `If-Match`',
    operator: 'Nothing',
  },
  payload_too_large: {
    caller: 'Send a smaller body, or one with fewer values',
    operator: 'The limits are 1 MiB and 5,000 keys and values, and for the bridge 50,000: split the request',
  },
  unsupported_media_type: {
    caller: 'Send uncompressed JSON with `Content-Type: application/json`',
    operator: 'Nothing',
  },
  range_not_satisfiable: {
    caller: 'Ask for a range below the size, which `Content-Range` contains',
    operator: 'Nothing',
  },
  validation_failed: {
    caller:
      'Correct the values in `details`: for example an `idempotency-key` that was used for a different request, unknown ids, an ' +
      'unknown `connector_type`, or a `config` that is invalid for the connector',
    operator: 'Nothing',
  },
  abap_exception: {
    caller: 'The function raised an exception. `message` begins with its name, and `details` contains the name',
    operator: 'Nothing',
  },
  rate_limited: {
    caller:
      'Wait for the number of seconds in `Retry-After`. Then ask for less at a time, or, if the message speaks of wrong keys, use a valid one',
    operator:
      'The message says which limit it is. [behaviour.md](behaviour.md#limits-that-keep-the-api-responsive) has those of requests that run at a ' +
      'time, which are for one workspace, API key or person: the others are not affected. If it speaks of wrong keys, a client uses an invalid key. Find its address in the log lines `http.request` with this code (`source_ip`). The limit is ' +
      '`RELAY_WRONG_KEYS_PER_MINUTE`',
  },
  internal_error: {
    caller: 'Report the error with its `request_id`',
    operator: 'Search the log for the `request_id`: the line contains the cause. This is a defect in the relay',
  },
  rfc_failed: {
    caller: 'Check the result before you repeat the call: the function may or may not have run',
    operator: 'Fix what the message names: the address, the credentials or the service in the system. See [bridge.md](bridge.md)',
  },
  unavailable: {
    caller:
      'Repeat the request after `Retry-After` seconds, if present. Unless `nothing_changed` is `true`, a change either took ' +
      'effect completely or not at all: check the state before you repeat it',
    operator:
      'Restore the dependency that the log line names: the database, the content store or, for the retry of a single delivery, ' +
      'Temporal. If the line names a deadlock or a serialization failure, nothing is down: a concurrent change was in the way. ' +
      'If too many exports, tests or remote function calls run in the process, wait, or start further API processes: ' +
      '[behaviour.md](behaviour.md#limits-that-keep-the-api-responsive) has the limits of each',
  },
  rfc_timeout: {
    caller: 'As for `rfc_failed`',
    operator: 'Find out why the system is slow, or raise `RFC_TIMEOUT_MS`',
  },
  loop_detected: {
    caller: 'Nothing: the relay has sent this request itself, as a delivery',
    operator: 'A destination leads back to the relay. Correct its `url`',
  },
}
