import { Readable } from 'node:stream'
import { z } from 'zod'
import type { Replay } from '../capture/replay.ts'
import { createCapturedRequests, type ListedRequest, type SingleRequest } from '../db/captured-requests.ts'
import type { Database } from '../db/database.ts'
import { mediaTypeOf } from '../domain/content-type.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { notFound } from './faults.ts'
import { cursorPageOf, cursorQuery, dateFrom, dateTo, idParams, one, resource, resourceOf, timestamp, toCursorPage } from './schemas.ts'

// the contract's limit for a body that is shown inline
const previewMaxBytes = 64 * 1024
const previewable = /^(text\/html|(application|text)\/(json|xml)|[^/]+\/[^/]+\+(json|xml))$/
const octets = 'application/octet-stream'

const channel = z.enum(['receiver', 'bridge'])

const attributes = z.object({
  channel,
  workspace_id: z.string(),
  http_method: z.string(),
  uri: z.string(),
  query_string: z.string(),
  request_content_type: z.string().describe('Empty where the request named none'),
  request_content_length: z.int(),
  request_body_truncated: z.boolean(),
  source_ip: z.string(),
  request_at: timestamp,
  status_code: z.int(),
  response_content_type: z.string().describe('Empty where the answer named none'),
  response_content_length: z.int(),
  response_body_truncated: z.boolean(),
  duration_ms: z.int(),
  response_at: timestamp,
  created_at: timestamp,
})

const headers = z.record(z.string(), z.string())

const capturedRequest = resource('captured_request', attributes)
const singleRequest = resource(
  'captured_request',
  attributes.extend({
    request_headers: headers,
    response_headers: headers,
    request_body_preview: z.string().nullable(),
    response_body_preview: z.string().nullable(),
    replay_of: z.string().nullable(),
  }),
)

const present = <Row extends ListedRequest>(row: Row) =>
  resourceOf('captured_request')({
    ...row,
    requestContentType: row.requestContentType ?? '',
    responseContentType: row.responseContentType ?? '',
  })

const previewOf = (contentType: string | null, body: Buffer | null): string | null =>
  body && previewable.test(mediaTypeOf(contentType)) ? body.toString() : null

const presentSingle = ({ smallRequestBody, smallResponseBody, ...request }: SingleRequest) =>
  present({
    ...request,
    requestBodyPreview: previewOf(request.requestContentType, smallRequestBody),
    responseBodyPreview: previewOf(request.responseContentType, smallResponseBody),
  })

export interface RequestDeps {
  db: Database
  replay: Replay
}

export const requestEndpoints = ({ db, replay }: RequestDeps): Endpoint[] => {
  const requests = createCapturedRequests(db)
  return [
    endpoint({
      method: 'GET',
      path: '/requests',
      level: 'viewer',
      summary: 'The requests that reached receivers and bridges, newest first',
      query: cursorQuery.extend({
        channel: channel.optional().describe('That came in here only'),
        status_code: z.coerce.number().int().min(100).max(599).optional().describe('Answered by exactly this status'),
        status_class: z
          .enum(['2xx', '3xx', '4xx', '5xx'])
          .transform((text) => Number(text[0]))
          .optional()
          .describe('Answered by a status of this class'),
        method: z
          .string()
          .transform((text) => text.toUpperCase())
          .optional()
          .describe('Sent by this HTTP method'),
        repo_id: z.string().optional().describe('Whose URL carries this contRep'),
        doc_id: z.string().optional().describe('Whose URL carries this docId'),
        date_from: dateFrom,
        date_to: dateTo,
      }),
      response: cursorPageOf(capturedRequest),
      status: 200,
      handle: async ({ query }, { workspaceId }) => toCursorPage(await requests.list(workspaceId, query), query, present),
    }),

    endpoint({
      method: 'GET',
      path: '/requests/:id',
      level: 'viewer',
      summary: 'One captured request with its headers, and its bodies where they are small text',
      params: idParams,
      response: one(singleRequest),
      status: 200,
      handle: async ({ params }, { workspaceId }) => {
        const found = await requests.find(workspaceId, params.id, previewMaxBytes)
        if (!found) throw notFound()
        return { data: presentSingle(found) }
      },
    }),

    endpoint({
      method: 'GET',
      path: '/requests/:id/body/:kind',
      level: 'viewer',
      summary: 'The bytes of a captured request, or of its response, with their own content type; 404 where none are kept',
      params: idParams.extend({ kind: z.enum(['request', 'response']).describe('Whose body') }),
      response: 'bytes',
      status: 200,
      handle: async ({ params: { id, kind } }, { workspaceId }) => {
        const body = await requests.findBody(workspaceId, id, kind)
        if (!body) throw notFound()
        return {
          contentType: body.contentType ?? octets,
          fileName: `${id}-${kind}`,
          sizeBytes: body.data.length,
          open: () => Readable.from([body.data]),
        }
      },
    }),

    endpoint({
      method: 'POST',
      path: '/requests/:id/replay',
      level: 'admin',
      summary: 'Sends a captured request through the receiver again, its signature judged as of then; the new one is captured in turn',
      params: idParams,
      response: one(z.object({ replay_of: z.string(), new_request_id: z.string() })),
      conflict: 'It cannot be sent again as it was: its body is not kept or was redacted, or it is a call through the bridge',
      status: 202,
      handle: async ({ params }, { workspaceId }) => {
        const newRequestId = await replay(workspaceId, params.id)
        if (newRequestId === undefined) throw notFound()
        return { data: { replayOf: params.id, newRequestId } }
      },
    }),
  ]
}
