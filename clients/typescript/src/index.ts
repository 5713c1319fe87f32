import createFetchClient, { type Client } from 'openapi-fetch'
import { noResponse } from './error.ts'
import { retrying, type Fetch, type RetryOptions } from './retry.ts'
import type { paths } from './schema.ts'

export { RelayError, unwrap } from './error.ts'
export { pages, type ListPath } from './pages.ts'
export { retrying, type Fetch, type RetryOptions } from './retry.ts'
export type * from './schema.ts'
export { waitForDocument } from './wait.ts'
export { verifyWebhook, WebhookError, type Webhook } from './webhook.ts'

export interface ClientOptions {
  /** The URL of the installation, for example `https://relay.example`. */
  baseUrl: string
  /** The workspace: `{userSlug}/{workspaceSlug}`. */
  workspace: string
  /** An API key of the workspace: `relay_<id>_<secret>`. */
  apiKey: string
  /** Replaces the global `fetch`, for example to use a proxy or a time limit, or in a test. */
  fetch?: Fetch
  /** How requests that were answered with 429 or 503 are repeated. False: they are not. */
  retry?: RetryOptions | false
}

export type RelayClient = Client<paths>

/** Sends a request. @throws RelayError without a response, unless the signal of the request was aborted */
const sending =
  (send: Fetch): Fetch =>
  async (request) => {
    try {
      return await send(request)
    } catch (thrown) {
      throw request.signal.aborted ? thrown : noResponse(request, thrown)
    }
  }

/**
 * Creates a client of one workspace. `GET`, `POST`, `PUT`, `PATCH` and `DELETE` accept a path relative to the workspace
 * and resolve to `{ data, error, response }`. Unless the response has no body, either `data` or `error` is set.
 */
export const createClient = ({ baseUrl, workspace, apiKey, fetch, retry }: ClientOptions): RelayClient => {
  const address = `${baseUrl.replace(/\/+$/, '')}/api/${workspace.split('/').map(encodeURIComponent).join('/')}`
  const send = sending(fetch ?? ((request) => globalThis.fetch(request)))
  return createFetchClient<paths>({
    baseUrl: address,
    headers: { authorization: `Bearer ${apiKey}`, accept: 'application/json' },
    fetch: retry === false ? send : retrying(send, retry),
  })
}
