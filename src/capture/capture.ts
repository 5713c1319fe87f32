import type { OutgoingHttpHeaders } from 'node:http'
import type { Capture, CapturedBody } from '../db/captures.ts'
import type { PassingBody } from './body.ts'
import { redactBody, redactHeaders } from './redact.ts'

/** A request as it came in, on whichever channel. */
export interface RequestFacts {
  /** The id that the caller is told, too. The request came in at its moment. */
  id: string
  channel: Capture['channel']
  userSlug: string
  workspaceSlug: string
  method: string
  /** Path and query string as they stood on the wire. */
  uri: string
  queryString: string
  repoId: string | null
  docId: string | null
  headers: OutgoingHttpHeaders
  body: PassingBody
  sourceIp: string
  requestAt: Date
  replayOf: string | null
}

/** What it was answered. */
export interface ResponseFacts {
  status: number
  headers: OutgoingHttpHeaders
  body: PassingBody
  at: Date
}

// as web servers have it in their logs
const clientGoneStatus = 499

/** What stands for the answer where the client hung up before there was one. @param body which nothing has gone by, nor will */
export const noAnswer = (body: PassingBody): ResponseFacts => {
  body.end()
  return { status: clientGoneStatus, headers: {}, body, at: new Date() }
}

/** What is kept of a request and its answer. Both bodies stay the caller's, and must live until it is written. */
export const captureOf = (request: RequestFacts, response: ResponseFacts): Capture => {
  const [asked, answered] = [sideOf(request), sideOf(response)]
  return {
    id: request.id,
    channel: request.channel,
    userSlug: request.userSlug,
    workspaceSlug: request.workspaceSlug,
    httpMethod: request.method,
    uri: storable(request.uri),
    queryString: storable(request.queryString),
    repoId: nameOrNull(request.repoId),
    docId: nameOrNull(request.docId),
    requestHeaders: asked.headers,
    requestContentType: asked.contentType,
    requestContentLength: asked.contentLength,
    requestBodyTruncated: asked.isTruncated,
    requestBody: asked.body,
    sourceIp: request.sourceIp,
    requestAt: request.requestAt,
    statusCode: response.status,
    responseHeaders: answered.headers,
    responseContentType: answered.contentType,
    responseContentLength: answered.contentLength,
    responseBodyTruncated: answered.isTruncated,
    responseBody: answered.body,
    durationMs: Math.max(response.at.getTime() - request.requestAt.getTime(), 0),
    responseAt: response.at,
    replayOf: request.replayOf,
  }
}

const sideOf = ({ headers: given, body }: Pick<RequestFacts | ResponseFacts, 'headers' | 'body'>) => {
  const headers = flatten(given)
  const contentType = headers['content-type'] ?? null
  const data = body.whole()
  const safe = data && (data.length === 0 ? data : redactBody(data, contentType))
  const announced = Number(headers['content-length'])
  return {
    headers: redactHeaders(headers),
    contentType,
    contentLength: Number.isSafeInteger(announced) && announced >= 0 ? announced : body.sizeBytes(),
    isTruncated: !safe,
    body: safe && safe.length > 0 ? ({ data: safe, redacted: safe !== data } satisfies CapturedBody) : null,
  }
}

const flatten = (headers: OutgoingHttpHeaders): Record<string, string> => {
  const entries = Object.entries(headers).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries.map(([name, value]) => [name.toLowerCase(), storable(String(value))]))
}

// longer than any that names something here, and short enough for an index
const nameMaxCharacters = 255
const nameOrNull = (name: string | null) => (name !== null && name.length <= nameMaxCharacters ? storable(name) : null)

/** With what PostgreSQL cannot hold shown as such. */
const storable = (text: string): string => text.replaceAll('\0', '\uFFFD').toWellFormed()
