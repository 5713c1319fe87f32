import { z } from 'zod'
import { DeliveryError, type AttemptContext, type Payload } from '../connector.ts'
import {
  abortSession,
  parseObject,
  requireUploadUrl,
  toTargetAnswer,
  withUploadSession,
  type CloudApi,
  type CloudResponse,
  type CompletedUpload,
} from '../shared/cloud-api.ts'
import { sendPartsInSequence, uploadOutOfStep } from '../shared/upload-parts.ts'
import { graphError } from './errors.ts'
import { requireItem } from './items.ts'

interface UploadSession {
  /** Secret: its holder may write this one file. */
  uploadUrl: string
  nextByte: number
}

// A multiple of 320 KiB, as SharePoint requires, and the size that Microsoft recommends.
const partBytes = 10 * 1024 * 1024

const savedSession = z.object({
  uploadUrl: z.string(),
  file: z.string(),
  /** The source system may have appended to the document since. */
  sha256: z.string(),
})

/**
 * Sends a document in parts, from the byte that the previous run reached. A session that Graph no longer knows, because
 * it was completed or has expired, is started again: the file is then written once more under the same name.
 * @param file is its address in Graph, up to the colon after the path
 */
export const uploadInParts = async (graph: CloudApi, file: string, payload: Payload, context: AttemptContext): Promise<CompletedUpload> => {
  const { sizeBytes, sha256 } = payload
  const { signal, onProgress } = context
  const { uploadUrl, nextByte } = (await findSession(graph, file, payload, context.saved)) ?? (await startSession(graph, file))
  context.save({ uploadUrl, file, sha256 } satisfies z.output<typeof savedSession>)
  const response = await withUploadSession(graph, uploadUrl, signal, async () => {
    const last = await sendPartsInSequence<CloudResponse>(
      payload,
      { startByte: nextByte, partBytes, signal, onProgress },
      async ({ start, end, isLast, body }) => {
        const headers = { 'content-length': String(end - start), 'content-range': `bytes ${start}-${end - 1}/${sizeBytes}` }
        const stored = await graph.requestSession(uploadUrl, { method: 'PUT', headers, body })
        if (stored.status >= 300) throw sessionError(stored)
        return isLast && stored.status !== 202 ? { done: stored } : { nextByte: nextExpectedByte(stored) }
      },
    )
    requireItem(last, payload)
    return last
  })
  return { response, bytesSent: sizeBytes - nextByte }
}

/** Starts a session that writes the file, replacing an existing one. */
export const startSession = async (graph: CloudApi, file: string): Promise<UploadSession> => {
  const response = await graph.request(`${file}:/createUploadSession`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ item: { '@microsoft.graph.conflictBehavior': 'replace' } }),
  })
  return { uploadUrl: requireUploadUrl(graph, parseObject(response.text).uploadUrl), nextByte: 0 }
}

const findSession = async (
  graph: CloudApi,
  file: string,
  { sizeBytes, sha256 }: Payload,
  saved: unknown,
): Promise<UploadSession | undefined> => {
  const { data: session } = savedSession.safeParse(saved)
  if (!session) return undefined
  const uploadUrl = requireUploadUrl(graph, session.uploadUrl)
  if (session.file !== file || session.sha256 !== sha256) {
    await abortSession(graph, uploadUrl)
    return undefined
  }
  const response = await graph.requestSession(uploadUrl, { method: 'GET' })
  const nextByte = response.status === 200 ? nextExpectedByte(response) : undefined
  return nextByte !== undefined && nextByte < sizeBytes ? { uploadUrl, nextByte } : undefined
}

const nextExpectedByte = ({ text }: CloudResponse): number | undefined => {
  const { nextExpectedRanges: ranges } = parseObject(text)
  const first: unknown = Array.isArray(ranges) ? ranges[0] : undefined
  const start = typeof first === 'string' ? /^\d+/.exec(first)?.[0] : undefined
  return start === undefined ? undefined : Number(start)
}

const sessionError = (response: CloudResponse) => {
  if (response.status === 416) return uploadOutOfStep()
  if (response.status === 404 || response.status === 410) {
    return new DeliveryError(
      'upload_expired',
      'SharePoint ended the upload session before the document was complete; the upload starts again',
      { answer: toTargetAnswer(response) },
    )
  }
  return graphError(response)
}
