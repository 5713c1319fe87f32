import { buffer } from 'node:stream/consumers'
import { z } from 'zod'
import { checkAgent } from '../../clients/check-source/src/http.ts'
import { truncationReasons } from '../capture/body.ts'
import {
  requestChannel,
  requestConditions,
  type CapturedRequests,
  type ListedRequest,
  type SingleRequest,
} from '../capture/captured-requests.ts'
import type { Replay } from '../capture/replay.ts'
import { openStoredBody, type StoredBody } from '../capture/stored-body.ts'
import { decodeHeader } from '../content-server/encoding.ts'
import type { Stores } from '../content/store.ts'
import { actorOf } from '../db/audit.ts'
import type { CodePage } from '../domain/code-pages.ts'
import { mediaTypeOf } from '../domain/content-type.ts'
import { timestamp } from '../domain/date-range.ts'
import { decodeText } from '../domain/decoded-text.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { cursorPageOf, followQuery, isOneWay, toCursorPage } from './pagination.ts'
import { idParams, one, resource, resourceOf } from './schemas.ts'

// The specification limits inline previews to bodies under 64 KiB.
const previewMaxBytes = 64 * 1024
const previewable = /^(text\/html|(application|text)\/(json|xml)|[^/]+\/[^/]+\+(json|xml))$/
const octets = 'application/octet-stream'

const truncationReason = z
  .enum(truncationReasons)
  .meta({ id: 'TruncationReason' })
  .nullable()
  .describe('Why the body is not stored. Null if it is not truncated.')

const attributes = z.object({
  channel: requestChannel,
  workspace_id: z.string(),
  http_method: z.string(),
  uri: z.string(),
  query_string: z.string(),
  request_content_type: z.string().describe('Empty if the request had no Content-Type.'),
  request_content_length: z.int(),
  request_body_truncated: z.boolean(),
  request_body_truncation_reason: truncationReason,
  source_ip: z.string(),
  request_at: timestamp,
  status_code: z.int(),
  error_code: z.string().nullable().describe('The code of the error that the request was answered with. Null if it has none.'),
  response_content_type: z.string().describe('Empty if the response had no Content-Type.'),
  response_content_length: z.int(),
  response_body_truncated: z.boolean(),
  response_body_truncation_reason: truncationReason,
  duration_ms: z.int(),
  response_at: timestamp,
  created_at: timestamp,
  document_ids: z.array(z.string()).describe('The documents that the request created.'),
})

const headers = z.record(z.string(), z.string())

const capturedRequest = resource('CapturedRequest', 'captured_request', attributes)
const singleRequest = resource(
  'SingleCapturedRequest',
  'captured_request',
  attributes.extend({
    request_headers: headers,
    response_headers: headers,
    request_body_preview: z.string().nullable(),
    response_body_preview: z.string().nullable(),
    replay_of: z.string().nullable(),
    code_page: z
      .string()
      .nullable()
      .describe('The encoding of what is not UTF-8, in the query string too: that of the repository. Null if the request names none.'),
  }),
)

const mapValues = (values: Record<string, string>, map: (value: string) => string): Record<string, string> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]))

/** Returns a header as people read it. Stored ones have one character for each byte. */
const readable = (value: string | null, { codePage }: Pick<ListedRequest, 'codePage'>): string =>
  decodeHeader(value ?? '', codePage ?? undefined)

const present = <Row extends ListedRequest>(row: Row) =>
  resourceOf('captured_request')({
    ...row,
    requestContentType: readable(row.requestContentType, row),
    requestBodyTruncated: row.requestBodyTruncationReason !== null,
    responseContentType: readable(row.responseContentType, row),
    responseBodyTruncated: row.responseBodyTruncationReason !== null,
  })

interface RequestDeps {
  capturedRequests: Pick<CapturedRequests, 'list' | 'find' | 'findBody'>
  contents: Stores
  replay: Replay
}

export const requestEndpoints = ({ capturedRequests, contents, replay }: RequestDeps): Endpoint[] => {
  const previewOf = async (contentType: string | null, body: StoredBody | null, codePage: CodePage | null): Promise<string | null> => {
    if (!body || !previewable.test(mediaTypeOf(contentType))) return null
    try {
      return decodeText(await buffer(openStoredBody(contents, body)), contentType, codePage).text
    } catch {
      // The rest of the request can be shown while the content store is not available.
      return null
    }
  }

  const presentSingle = async ({ smallRequestBody, smallResponseBody, ...request }: SingleRequest) =>
    present({
      ...request,
      requestHeaders: mapValues(request.requestHeaders, (value) => readable(value, request)),
      responseHeaders: mapValues(request.responseHeaders, (value) => readable(value, request)),
      requestBodyPreview: await previewOf(request.requestContentType, smallRequestBody, request.codePage),
      responseBodyPreview: await previewOf(request.responseContentType, smallResponseBody, request.codePage),
    })

  return [
    endpoint({
      method: 'GET',
      path: '/requests',
      level: 'viewer',
      summary: 'List captured requests',
      description:
        'Returns the requests that reached the receiver or the bridge, newest first, or oldest first with `after`. A request has an id of the time ' +
        'of its arrival and is found when it has ended. A reader that follows the list with `after` therefore misses a request that took ' +
        'more than a minute, or that ended while the database was unavailable, unless it stays behind with `date_to`.',
      query: followQuery.extend(requestConditions).refine(...isOneWay),
      response: cursorPageOf(capturedRequest),
      handle: async ({ query }, { workspaceId }) => {
        const filter = { ...query, withoutAgent: query.withoutChecks ? checkAgent : undefined }
        return toCursorPage(await capturedRequests.list(workspaceId, filter), query, present)
      },
    }),

    endpoint({
      method: 'GET',
      path: '/requests/:id',
      level: 'viewer',
      summary: 'Retrieve a captured request',
      description: 'Returns the request with its headers, and a preview of each body that is HTML, JSON or XML under 64 KiB.',
      params: idParams,
      response: one(singleRequest),
      handle: async ({ params }, { workspaceId }) => {
        return { data: await presentSingle(await capturedRequests.find(workspaceId, params.id, previewMaxBytes)) }
      },
    }),

    endpoint({
      method: 'GET',
      path: '/requests/:id/body/:kind',
      level: 'viewer',
      summary: 'Download a captured body',
      description:
        'Returns the bytes of the request or response body with their original content type. An empty body is returned with 0 bytes. ' +
        'Returns 404 if the body is not stored.',
      params: idParams.extend({ kind: z.enum(['request', 'response']).describe('Which body to download.') }),
      response: 'bytes',
      handle: async ({ params: { id, kind } }, { workspaceId }) => {
        const found = await capturedRequests.findBody(workspaceId, id, kind)
        return {
          contentType: found.contentType ?? octets,
          fileName: `${id}-${kind}`,
          sizeBytes: found.body.sizeBytes,
          open: () => openStoredBody(contents, found.body),
        }
      },
    }),

    endpoint({
      method: 'POST',
      path: '/requests/:id/replay',
      level: 'admin',
      audit: ['request.replayed', 'document.acknowledged'],
      summary: 'Replay a captured request',
      description:
        'Processes the request again as if it had just arrived, except that its signature is verified as of the time of ' +
        'the original request. The replay is captured as a new request. If it succeeds, discarded documents of the original request count as acknowledged.',
      params: idParams,
      response: one(z.object({ replay_of: z.string(), new_request_id: z.string() }).meta({ id: 'Replay' })),
      conflict: 'The request cannot be repeated: its body is not stored or contains redacted values, or it is a call through the bridge.',
      isTest: true,
      status: 202,
      handle: async ({ params }, { workspaceId, actor }) => {
        const { newRequestId } = await replay(workspaceId, params.id, actorOf(actor))
        return { data: { replayOf: params.id, newRequestId } }
      },
    }),
  ]
}
