import { z } from 'zod'
import type { AttemptContext } from '../connector.ts'
import {
  abortSession,
  isGone,
  parseObject,
  requireUploadUrl,
  uploadExpired,
  withUploadSession,
  type CloudApi,
  type CloudResponse,
  type CompletedUpload,
} from '../shared/cloud-api.ts'
import { during } from '../shared/operation.ts'
import type { Content } from '../shared/probe-content.ts'
import { sendPartsInSequence, uploadOutOfStep } from '../shared/upload-parts.ts'
import { graphError } from './errors.ts'
import { findItem, placeOf, requireItem } from './items.ts'

interface UploadSession {
  /** Secret: its holder may write this one file. */
  uploadUrl: string
  nextByte: number
  faults: number
}

// A multiple of 320 KiB, as SharePoint requires, and the size that Microsoft recommends.
const partBytes = 10 * 1024 * 1024

const savedSession = z.object({
  uploadUrl: z.string(),
  file: z.string(),
  /** The source system may have appended to the document since. */
  sha256: z.string(),
  /** See `withUploadSession`. */
  faults: z.number().default(0),
})

/**
 * Sends a document in parts, from the byte that the previous attempt reached. Graph forgets a session that was completed or has expired: if
 * its file is there, it is stored, and otherwise the upload starts again.
 * @param file is its address in Graph, up to the colon after the path
 */
export const uploadInParts = async (graph: CloudApi, file: string, payload: Content, context: AttemptContext): Promise<CompletedUpload> => {
  const { sizeBytes, sha256 } = payload
  const { signal, onProgress } = context
  const place = placeOf(file)
  const save = (uploadUrl: string, faults: number) =>
    context.save({ uploadUrl, file, sha256, faults } satisfies z.output<typeof savedSession>)
  const found = await findSession(graph, file, payload, context, save)
  if (found === 'gone') {
    const item = await findItem(graph, file, payload, context)
    if (item.state === 'ours') return { response: item.stored, bytesSent: 0 }
  }
  const { uploadUrl, nextByte, faults } = typeof found === 'object' ? found : await startSession(graph, file)
  save(uploadUrl, faults)
  const run = { uploadUrl, context, faults, saveFaults: (known: number) => save(uploadUrl, known) }
  const response = await withUploadSession(graph, run, async (onStored) => {
    const last = await sendPartsInSequence<CloudResponse>(
      payload,
      { startByte: nextByte, partBytes, signal, onProgress },
      async ({ start, end, isLast, body }) => {
        const headers = { 'content-length': String(end - start), 'content-range': `bytes ${start}-${end - 1}/${sizeBytes}` }
        const operation = `upload of bytes ${start} to ${end - 1} of ${place}`
        const stored = await during(operation, async () => {
          const answer = await graph.requestSession(uploadUrl, { method: 'PUT', headers, body })
          if (answer.status >= 300) throw sessionError(answer)
          return answer
        })
        onStored()
        return isLast && stored.status !== 202 ? { done: stored } : { nextByte: nextExpectedByte(stored) }
      },
    )
    await during(`upload of ${place}`, async () => requireItem(last, payload))
    return last
  })
  return { response, bytesSent: sizeBytes - nextByte }
}

/** Starts a session that writes the file, replacing an existing one. */
const startSession = async (graph: CloudApi, file: string): Promise<UploadSession> => {
  const response = await graph.request(`${file}:/createUploadSession`, {
    operation: `creation of an upload session for ${placeOf(file)}`,
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ item: { '@microsoft.graph.conflictBehavior': 'replace' } }),
  })
  return { uploadUrl: requireUploadUrl(graph, parseObject(response.text).uploadUrl), nextByte: 0, faults: 0 }
}

/**
 * Asks for the position of the saved session.
 * @param save keeps the session for the next attempt if it cannot be asked now
 * @returns `gone` if Graph does not know it, undefined if there is none that can be continued
 */
const findSession = async (
  graph: CloudApi,
  file: string,
  { sizeBytes, sha256 }: Content,
  context: Pick<AttemptContext, 'saved' | 'signal' | 'isLast'>,
  save: (uploadUrl: string, faults: number) => void,
): Promise<UploadSession | 'gone' | undefined> => {
  const { data: session } = savedSession.safeParse(context.saved)
  if (!session) return undefined
  const uploadUrl = requireUploadUrl(graph, session.uploadUrl)
  if (session.file !== file || session.sha256 !== sha256) {
    await abortSession(graph, uploadUrl)
    return undefined
  }
  const { faults } = session
  save(uploadUrl, faults)
  const run = { uploadUrl, context, faults, saveFaults: (known: number) => save(uploadUrl, known) }
  const ask = async () => {
    const answer = await graph.requestSession(uploadUrl, { method: 'GET' })
    const error = answer.status === 200 || isGone(answer) ? undefined : graphError(answer)
    // The key in its address may have expired before it.
    if (error === undefined || error.permanent || answer.status === 401) return answer
    throw error
  }
  const response = await withUploadSession(graph, run, () => during(`look at the upload session of ${placeOf(file)}`, ask))
  if (isGone(response)) return 'gone'
  const nextByte = nextExpectedByte(response)
  if (nextByte !== undefined && nextByte < sizeBytes) return { uploadUrl, nextByte, faults }
  await abortSession(graph, uploadUrl)
  return undefined
}

const nextExpectedByte = ({ text }: CloudResponse): number | undefined => {
  const { nextExpectedRanges: ranges } = parseObject(text)
  const first: unknown = Array.isArray(ranges) ? ranges[0] : undefined
  const start = typeof first === 'string' ? /^\d+/.exec(first)?.[0] : undefined
  return start === undefined ? undefined : Number(start)
}

const sessionError = (response: CloudResponse) => {
  if (response.status === 416) return uploadOutOfStep()
  return isGone(response) ? uploadExpired('SharePoint', response) : graphError(response)
}
