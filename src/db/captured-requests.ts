import type { Capture } from './captures.ts'
import type { Database } from './database.ts'
import { idPrefixAt } from '../ids.ts'
import { pageBefore, type CursorPage, type CursorRequest } from './page.ts'

/** A captured request as the list has it. */
export interface ListedRequest extends Omit<
  Capture,
  'userSlug' | 'workspaceSlug' | 'repoId' | 'docId' | 'requestHeaders' | 'requestBody' | 'responseHeaders' | 'responseBody' | 'replayOf'
> {
  workspaceId: string
  createdAt: Date
}

/** One captured request, with what is kept of its bodies if that is little. */
export interface SingleRequest extends ListedRequest, Pick<Capture, 'requestHeaders' | 'responseHeaders' | 'replayOf'> {
  smallRequestBody: Buffer | null
  smallResponseBody: Buffer | null
}

/** What it takes to process a request once more. */
export interface RepeatableRequest extends Pick<
  Capture,
  'id' | 'channel' | 'httpMethod' | 'uri' | 'queryString' | 'requestHeaders' | 'sourceIp' | 'requestAt' | 'requestContentLength'
> {
  requestBodyTruncated: boolean
  body: Buffer | null
  bodyRedacted: boolean | null
}

export interface RequestFilter {
  channel?: Capture['channel'] | undefined
  statusCode?: number | undefined
  /** 4: all from 400 to 499. */
  statusClass?: number | undefined
  method?: string | undefined
  repoId?: string | undefined
  docId?: string | undefined
  /** Both inclusive. */
  dateFrom?: Date | undefined
  dateTo?: Date | undefined
}

export interface DownloadableBody {
  contentType: string | null
  data: Buffer
}

const columns = {
  id: 'id',
  channel: 'channel',
  workspaceId: 'captured_requests.workspace_id',
  httpMethod: 'http_method',
  uri: 'uri',
  queryString: 'query_string',
  requestContentType: 'request_content_type',
  requestContentLength: 'request_content_length',
  requestBodyTruncated: 'request_body_truncated',
  sourceIp: 'source_ip',
  requestAt: 'request_at',
  statusCode: 'status_code',
  responseContentType: 'response_content_type',
  responseContentLength: 'response_content_length',
  responseBodyTruncated: 'response_body_truncated',
  durationMs: 'duration_ms',
  responseAt: 'response_at',
  createdAt: 'created_at',
}

export const createCapturedRequests = (db: Database) => ({
  /** Newest first. */
  list: (workspaceId: string, { before, perPage, ...filter }: RequestFilter & CursorRequest): Promise<CursorPage<ListedRequest>> => {
    const { channel, statusCode, statusClass, method, repoId, docId, dateFrom, dateTo } = filter
    const query = db('captured_requests').where({ workspace_id: workspaceId })
    if (channel) query.where({ channel })
    if (statusCode !== undefined) query.where({ status_code: statusCode })
    if (statusClass !== undefined) query.whereRaw('(status_code / 100) = ?', [statusClass])
    if (method !== undefined) query.where({ http_method: method })
    if (repoId !== undefined) query.where({ repo_id: repoId })
    if (docId !== undefined) query.where({ doc_id: docId })
    // a request came in at the millisecond that its id begins with
    if (dateFrom) query.where('id', '>=', idPrefixAt(dateFrom))
    if (dateTo) query.where('id', '<', idPrefixAt(new Date(dateTo.getTime() + 1)))
    return pageBefore(query, [columns], { before, perPage })
  },

  /** The bodies come along where they are shorter than that. */
  find: async (workspaceId: string, id: string, smallBytes: number): Promise<SingleRequest | undefined> => {
    const bodyOf = (kind: 'request' | 'response') =>
      db('captured_bodies').select('data').where({ request_id: id, kind }).whereRaw('octet_length(data) < ?', [smallBytes])
    return db('captured_requests')
      .select({
        ...columns,
        requestHeaders: 'request_headers',
        responseHeaders: 'response_headers',
        replayOf: 'replay_of',
        smallRequestBody: bodyOf('request'),
        smallResponseBody: bodyOf('response'),
      })
      .where({ workspace_id: workspaceId, id })
      .first()
  },

  /** Undefined where there is no such request, or nothing is kept of this body (any more). */
  findBody: (workspaceId: string, id: string, kind: 'request' | 'response'): Promise<DownloadableBody | undefined> =>
    db('captured_requests')
      .join('captured_bodies', 'captured_bodies.request_id', 'captured_requests.id')
      .select({ contentType: `${kind}_content_type`, data: 'data' })
      .where({ 'captured_requests.workspace_id': workspaceId, 'captured_requests.id': id, request_id: id, kind })
      .first(),

  findRepeatable: (workspaceId: string, id: string): Promise<RepeatableRequest | undefined> =>
    db('captured_requests')
      .leftJoin('captured_bodies', (join) =>
        join.on('captured_bodies.request_id', 'captured_requests.id').andOnVal('request_id', id).andOnVal('kind', 'request'),
      )
      .select({
        id: 'id',
        channel: 'channel',
        httpMethod: 'http_method',
        uri: 'uri',
        queryString: 'query_string',
        requestHeaders: 'request_headers',
        sourceIp: 'source_ip',
        requestAt: 'request_at',
        requestContentLength: 'request_content_length',
        requestBodyTruncated: 'request_body_truncated',
        body: 'data',
        bodyRedacted: 'redacted',
      })
      .where({ 'captured_requests.workspace_id': workspaceId, id })
      .first(),
})
