import { z } from 'zod'
import { idPrefixAt } from '../base/ids.ts'
import { notFound } from '../base/refusals.ts'
import { isStorable } from '../base/text.ts'
import type { Database } from '../db/database.ts'
import { directionOf, pageByCursor, type CursorPage, type CursorRequest } from '../db/page.ts'
import type { CamelCasedOutput } from '../domain/casing.ts'
import type { CodePage } from '../domain/code-pages.ts'
import { dateFrom, dateTo } from '../domain/date-range.ts'
import { flag } from '../http/filters.ts'
import { captureSelection, type Capture } from './capture.ts'
import { emptyBody, findBodyToReplay, findStoredBody, type BodyKind, type StoredBody } from './stored-body.ts'

const listedFields = [
  'id',
  'channel',
  'httpMethod',
  'uri',
  'queryString',
  'requestContentType',
  'requestContentLength',
  'requestBodyTruncationReason',
  'sourceIp',
  'requestAt',
  'statusCode',
  'errorCode',
  'responseContentType',
  'responseContentLength',
  'responseBodyTruncationReason',
  'durationMs',
  'responseAt',
] as const

/** A captured request as the list shows it. */
export interface ListedRequest extends Pick<Capture, (typeof listedFields)[number]> {
  workspaceId: string
  createdAt: Date
  /** Documents that the request created. */
  documentIds: string[]
  /** Encoding of what is not UTF-8: that of the repository. Null if the request names none that exists. */
  codePage: CodePage | null
}

/** One captured request, with its bodies if they are stored and small. */
export interface SingleRequest extends ListedRequest, Pick<Capture, 'requestHeaders' | 'responseHeaders' | 'replayOf'> {
  smallRequestBody: StoredBody | null
  smallResponseBody: StoredBody | null
}

const replayedFields = [
  'id',
  'channel',
  'httpMethod',
  'uri',
  'queryString',
  'querySealed',
  'requestHeaders',
  'sourceIp',
  'requestAt',
  'requestContentLength',
  'requestBodyTruncationReason',
] as const

/** A captured request with everything that a replay needs. */
export interface ReplayableRequest extends Pick<Capture, (typeof replayedFields)[number]> {
  body: StoredBody | null
}

export const requestChannel = z.enum(['receiver', 'bridge']).meta({ id: 'Channel' })

export const requestConditions = {
  channel: requestChannel.optional().describe('Only requests to the receiver or only requests to the bridge.'),
  status_code: z.coerce.number().int().min(100).max(599).optional().describe('Only requests answered with this status.'),
  error_code: z.string().refine(isStorable).optional().describe('Only requests answered with this error, for example `signature_invalid`.'),
  status_class: z
    .enum(['2xx', '3xx', '4xx', '5xx'])
    .transform((text) => Number(text[0]))
    .optional()
    .describe('Only requests answered with a status of this class.'),
  without_checks: flag
    .optional()
    .describe('If true, leaves out the requests of a check of the repository, of which several are refused because they have to be.'),
  method: z
    .string()
    .transform((text) => text.toUpperCase())
    .optional()
    .describe('Only requests with this HTTP method.'),
  repo_id: z.string().optional().describe('Only requests with this `contRep` in the query string.'),
  doc_id: z.string().optional().describe('Only requests with this `docId` in the query string.'),
  document_id: z.string().optional().describe('Only the request that created this document (`id`).'),
  date_from: dateFrom,
  date_to: dateTo,
}

/** @property withoutAgent leaves out requests whose User-Agent is this one */
export type RequestFilter = Omit<CamelCasedOutput<z.ZodObject<typeof requestConditions>>, 'withoutChecks'> & {
  withoutAgent?: string | undefined
}

export interface DownloadableBody {
  contentType: string | null
  body: StoredBody
}

interface Described {
  contentType: string | null
  contentLength: number
  truncationReason: Capture['requestBodyTruncationReason']
  httpMethod: string
}

const listedColumns = [...captureSelection(...listedFields), 'captured_requests.workspace_id as workspaceId', 'created_at as createdAt']

const documentIdsOf = (db: Database) =>
  db.raw(
    `array(select documents.id from documents where documents.request_id = captured_requests.id order by documents.id) as "documentIds"`,
  )

const codePageOf = (db: Database) =>
  db.raw(
    `(
      select code_page
      from repositories
      where repositories.workspace_id = captured_requests.workspace_id
        and repositories.repo_id = captured_requests.repo_id
        and deleted_at is null
    ) as "codePage"`,
  )

export const createCapturedRequests = (db: Database) => ({
  /** Lists captured requests, newest first, or oldest first after an id. */
  list: async (
    workspaceId: string,
    { before, after, perPage, ...filter }: RequestFilter & CursorRequest,
  ): Promise<CursorPage<ListedRequest>> => {
    const { channel, statusCode, errorCode, statusClass, method, repoId, docId, withoutAgent, documentId } = filter
    const query = db('captured_requests').where({ workspace_id: workspaceId })
    if (channel) query.where({ channel })
    if (statusCode !== undefined) query.where({ status_code: statusCode })
    if (errorCode !== undefined) query.where({ error_code: errorCode })
    if (statusClass !== undefined) query.whereRaw('(status_code / 100) = ?', [statusClass])
    if (method !== undefined) query.where({ http_method: method })
    if (repoId !== undefined) query.where({ repo_id: repoId })
    if (docId !== undefined) query.where({ doc_id: docId })
    if (withoutAgent !== undefined) query.whereRaw("request_headers ->> 'user-agent' is distinct from ?", [withoutAgent])
    if (documentId !== undefined) {
      query.where({ id: db('documents').select('request_id').where({ workspace_id: workspaceId, id: documentId }) })
    }
    // The id of a request begins with the millisecond of its arrival.
    if (filter.dateFrom) query.where('id', '>=', idPrefixAt(filter.dateFrom))
    if (filter.dateTo) query.where('id', '<', idPrefixAt(new Date(filter.dateTo.getTime() + 1)))
    const columns = [...listedColumns, documentIdsOf(db), codePageOf(db)]
    const cursor = { before, after, perPage }
    const isCombined = [channel, statusCode, errorCode, statusClass, method, repoId].filter((value) => value !== undefined).length > 1
    if (!isCombined) return pageByCursor(query, columns, cursor)
    // The ids are found in one index, which has the columns of the other conditions. Where many requests meet each condition and none meets
    // all, reading their rows would take ten times as long.
    const { items: found, nextCursor } = await pageByCursor<{ id: string }>(query, ['id'], cursor)
    if (found.length === 0) return { items: [], nextCursor }
    const ids = found.map(({ id }) => id)
    const items = await db('captured_requests').select<ListedRequest[]>(columns).whereIn('id', ids).orderBy('id', directionOf(cursor))
    return { items, nextCursor }
  },

  /** Finds a captured request. @param smallBytes bodies shorter than this are included. @throws `AppError` 404 */
  find: async (workspaceId: string, id: string, smallBytes: number): Promise<SingleRequest> => {
    const request = await db('captured_requests')
      .select<Omit<SingleRequest, 'smallRequestBody' | 'smallResponseBody'>[]>([
        ...listedColumns,
        documentIdsOf(db),
        codePageOf(db),
        ...captureSelection('requestHeaders', 'responseHeaders', 'replayOf'),
      ])
      .where({ workspace_id: workspaceId, id })
      .first()
    if (!request) throw notFound()
    const [smallRequestBody, smallResponseBody] = await Promise.all([
      findStoredBody(db, id, 'request', { belowBytes: smallBytes }),
      findStoredBody(db, id, 'response', { belowBytes: smallBytes }),
    ])
    return { ...request, smallRequestBody, smallResponseBody }
  },

  /** Finds a body. @throws `AppError` 404 if the request does not exist, or the body was not empty and is not stored (any more) */
  findBody: async (workspaceId: string, id: string, kind: BodyKind): Promise<DownloadableBody> => {
    const request = await db('captured_requests')
      .select<Described[]>([
        `${kind}_content_type as contentType`,
        `${kind}_content_length as contentLength`,
        `${kind}_body_truncation_reason as truncationReason`,
        'http_method as httpMethod',
      ])
      .where({ workspace_id: workspaceId, id })
      .first()
    if (!request) throw notFound()
    // The response to a HEAD declares the length of a body that it does not have.
    const isEmpty =
      request.truncationReason === null && (request.contentLength === 0 || (kind === 'response' && request.httpMethod === 'HEAD'))
    const body = (await findStoredBody(db, id, kind)) ?? (isEmpty ? emptyBody : null)
    if (!body) throw notFound()
    return { contentType: request.contentType, body }
  },

  /** Finds a captured request for a replay. @throws `AppError` 404 */
  findForReplay: async (workspaceId: string, id: string): Promise<ReplayableRequest> => {
    const request = await db('captured_requests')
      .select<Omit<ReplayableRequest, 'body'>[]>(captureSelection(...replayedFields))
      .where({ workspace_id: workspaceId, id })
      .first()
    if (!request) throw notFound()
    return { ...request, body: await findBodyToReplay(db, id) }
  },
})

export type CapturedRequests = ReturnType<typeof createCapturedRequests>
