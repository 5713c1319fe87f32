import { idPrefixAt } from '../base/ids.ts'
import { notFound } from '../base/refusals.ts'
import type { Database } from '../db/database.ts'
import { pageByCursor, type CursorPage, type CursorRequest } from '../db/page.ts'
import type { CodePage } from '../domain/code-pages.ts'
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

export interface RequestFilter {
  channel?: Capture['channel'] | undefined
  statusCode?: number | undefined
  errorCode?: string | undefined
  /** First digit of the status: 4 selects 400 to 499. */
  statusClass?: number | undefined
  method?: string | undefined
  repoId?: string | undefined
  docId?: string | undefined
  /** Leaves out requests whose User-Agent is this one. */
  withoutAgent?: string | undefined
  /** Id of a document that the request created. */
  documentId?: string | undefined
  /** Both ends are inclusive. */
  dateFrom?: Date | undefined
  dateTo?: Date | undefined
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
  list: (workspaceId: string, { before, after, perPage, ...filter }: RequestFilter & CursorRequest): Promise<CursorPage<ListedRequest>> => {
    const { channel, statusCode, errorCode, statusClass, method, repoId, docId, withoutAgent, documentId, dateFrom, dateTo } = filter
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
    if (dateFrom) query.where('id', '>=', idPrefixAt(dateFrom))
    if (dateTo) query.where('id', '<', idPrefixAt(new Date(dateTo.getTime() + 1)))
    return pageByCursor(query, [...listedColumns, documentIdsOf(db), codePageOf(db)], { before, after, perPage })
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
