import type { Database } from '../db/database.ts'
import { pageBefore, type CursorPage, type CursorRequest } from '../db/page.ts'
import { idPrefixAt } from '../ids.ts'
import type { Capture } from './capture.ts'

/** A captured request as the list shows it. */
export interface ListedRequest extends Omit<
  Capture,
  | 'userSlug'
  | 'workspaceSlug'
  | 'querySealed'
  | 'repoId'
  | 'docId'
  | 'requestHeaders'
  | 'requestBody'
  | 'responseHeaders'
  | 'responseBody'
  | 'replayOf'
> {
  workspaceId: string
  createdAt: Date
  /** Documents that the request created. */
  documentIds: string[]
}

/** One captured request, with its bodies if they are stored and small. */
export interface SingleRequest extends ListedRequest, Pick<Capture, 'requestHeaders' | 'responseHeaders' | 'replayOf'> {
  smallRequestBody: Buffer | null
  smallResponseBody: Buffer | null
}

/** A captured request with everything that a replay needs. */
export interface ReplayableRequest extends Pick<
  Capture,
  | 'id'
  | 'channel'
  | 'httpMethod'
  | 'uri'
  | 'queryString'
  | 'querySealed'
  | 'requestHeaders'
  | 'sourceIp'
  | 'requestAt'
  | 'requestContentLength'
  | 'requestBodyTruncated'
  | 'requestBodyTruncationReason'
> {
  body: Buffer | null
  bodyRedacted: boolean | null
}

export interface RequestFilter {
  channel?: Capture['channel'] | undefined
  statusCode?: number | undefined
  /** First digit of the status: 4 selects 400 to 499. */
  statusClass?: number | undefined
  method?: string | undefined
  repoId?: string | undefined
  docId?: string | undefined
  /** Id of a document that the request created. */
  documentId?: string | undefined
  /** Both ends are inclusive. */
  dateFrom?: Date | undefined
  dateTo?: Date | undefined
}

export interface DownloadableBody {
  contentType: string | null
  data: Buffer
}

interface FoundBody {
  contentType: string | null
  contentLength: number
  isTruncated: boolean
  httpMethod: string
  data: Buffer | null
}

const columns = [
  'id',
  'channel',
  'captured_requests.workspace_id as workspaceId',
  'http_method as httpMethod',
  'uri',
  'query_string as queryString',
  'request_content_type as requestContentType',
  'request_content_length as requestContentLength',
  'request_body_truncated as requestBodyTruncated',
  'request_body_truncation_reason as requestBodyTruncationReason',
  'source_ip as sourceIp',
  'request_at as requestAt',
  'status_code as statusCode',
  'response_content_type as responseContentType',
  'response_content_length as responseContentLength',
  'response_body_truncated as responseBodyTruncated',
  'response_body_truncation_reason as responseBodyTruncationReason',
  'duration_ms as durationMs',
  'response_at as responseAt',
  'created_at as createdAt',
]

const documentIdsOf = (db: Database) =>
  db.raw(
    `array(select documents.id from documents where documents.request_id = captured_requests.id order by documents.id) as "documentIds"`,
  )

export const createCapturedRequests = (db: Database) => ({
  /** Lists captured requests, newest first. */
  list: (workspaceId: string, { before, perPage, ...filter }: RequestFilter & CursorRequest): Promise<CursorPage<ListedRequest>> => {
    const { channel, statusCode, statusClass, method, repoId, docId, documentId, dateFrom, dateTo } = filter
    const query = db('captured_requests').where({ workspace_id: workspaceId })
    if (channel) query.where({ channel })
    if (statusCode !== undefined) query.where({ status_code: statusCode })
    if (statusClass !== undefined) query.whereRaw('(status_code / 100) = ?', [statusClass])
    if (method !== undefined) query.where({ http_method: method })
    if (repoId !== undefined) query.where({ repo_id: repoId })
    if (docId !== undefined) query.where({ doc_id: docId })
    if (documentId !== undefined) {
      query.where({ id: db('documents').select('request_id').where({ workspace_id: workspaceId, id: documentId }) })
    }
    // The id of a request begins with the millisecond of its arrival.
    if (dateFrom) query.where('id', '>=', idPrefixAt(dateFrom))
    if (dateTo) query.where('id', '<', idPrefixAt(new Date(dateTo.getTime() + 1)))
    return pageBefore(query, [...columns, documentIdsOf(db)], { before, perPage })
  },

  /** Finds a captured request. @param smallBytes bodies shorter than this are included */
  find: async (workspaceId: string, id: string, smallBytes: number): Promise<SingleRequest | undefined> => {
    const bodyOf = (kind: 'request' | 'response') =>
      db('captured_bodies').select('data').where({ request_id: id, kind }).whereRaw('octet_length(data) < ?', [smallBytes])
    return db('captured_requests')
      .select([
        ...columns,
        documentIdsOf(db),
        'request_headers as requestHeaders',
        'response_headers as responseHeaders',
        'replay_of as replayOf',
        bodyOf('request').as('smallRequestBody'),
        bodyOf('response').as('smallResponseBody'),
      ])
      .where({ workspace_id: workspaceId, id })
      .first()
  },

  /** Finds a body. @returns undefined if the request does not exist, or the body was not empty and is not stored (any more) */
  findBody: async (workspaceId: string, id: string, kind: 'request' | 'response'): Promise<DownloadableBody | undefined> => {
    const row = await db('captured_requests')
      .leftJoin('captured_bodies', (join) =>
        join.on('captured_bodies.request_id', 'captured_requests.id').andOnVal('request_id', id).andOnVal('kind', kind),
      )
      .select<FoundBody | undefined>([
        `${kind}_content_type as contentType`,
        `${kind}_content_length as contentLength`,
        `${kind}_body_truncated as isTruncated`,
        'http_method as httpMethod',
        'data',
      ])
      .where({ 'captured_requests.workspace_id': workspaceId, 'captured_requests.id': id })
      .first()
    if (!row) return undefined
    // The response to a HEAD declares the length of a body that it does not have.
    const isEmpty = !row.isTruncated && (row.contentLength === 0 || (kind === 'response' && row.httpMethod === 'HEAD'))
    const data = row.data ?? (isEmpty ? Buffer.alloc(0) : null)
    return data ? { contentType: row.contentType, data } : undefined
  },

  /** Finds a captured request for a replay. */
  findForReplay: (workspaceId: string, id: string): Promise<ReplayableRequest | undefined> =>
    db('captured_requests')
      .leftJoin('captured_bodies', (join) =>
        join.on('captured_bodies.request_id', 'captured_requests.id').andOnVal('request_id', id).andOnVal('kind', 'request'),
      )
      .select([
        'id',
        'channel',
        'http_method as httpMethod',
        'uri',
        'query_string as queryString',
        'query_sealed as querySealed',
        'request_headers as requestHeaders',
        'source_ip as sourceIp',
        'request_at as requestAt',
        'request_content_length as requestContentLength',
        'request_body_truncated as requestBodyTruncated',
        'request_body_truncation_reason as requestBodyTruncationReason',
        'data as body',
        'redacted as bodyRedacted',
      ])
      .where({ 'captured_requests.workspace_id': workspaceId, id })
      .first(),
})

export type CapturedRequests = ReturnType<typeof createCapturedRequests>
