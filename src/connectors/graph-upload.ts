import { giveUp, takeUploadUrl, type CloudApi } from './cloud-api.ts'
import { objectOf, targetAnswer, type CloudAnswer } from './cloud-call.ts'
import { DeliveryError, type AttemptContext, type Parcel } from './connector.ts'
import { graphRefusal } from './graph-refusal.ts'
import { outOfStep, sendPieces } from './pieces.ts'

export interface UploadSession {
  /** Whoever knows it may write this one file. */
  uploadUrl: string
  nextByte: number
}

// a multiple of 320 KiB, as SharePoint wants it, and the size Microsoft advises
const fragmentBytes = 10 * 1024 * 1024

/**
 * Goes on with a session that an earlier run of the same delivery left, or begins one. A session that is not known any more, because
 * it was completed or has expired, is begun anew: the file is then written once more under the same name.
 * @param file its address in Graph, up to the colon behind the path
 */
export const beginOrResume = async (graph: CloudApi, file: string, storedUrl?: string): Promise<UploadSession> => {
  const left = storedUrl === undefined ? undefined : await resumed(graph, storedUrl)
  if (left) return left
  const answer = await graph.call(`${file}:/createUploadSession`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ item: { '@microsoft.graph.conflictBehavior': 'replace' } }),
  })
  return { uploadUrl: takeUploadUrl(graph, objectOf(answer.text).uploadUrl), nextByte: 0 }
}

const resumed = async (graph: CloudApi, uploadUrl: string): Promise<UploadSession | undefined> => {
  takeUploadUrl(graph, uploadUrl)
  const answer = await graph.callSession(uploadUrl, { method: 'GET' })
  const nextByte = answer.status === 200 ? nextExpected(answer) : undefined
  return nextByte === undefined ? undefined : { uploadUrl, nextByte }
}

/** Sends what the session still lacks, fragment by fragment. A session that fails or is cancelled is given up. */
export const sendFragments = async (
  graph: CloudApi,
  { uploadUrl, nextByte }: UploadSession,
  parcel: Parcel,
  context: Pick<AttemptContext, 'signal' | 'onProgress'>,
): Promise<CloudAnswer> => {
  const { signal, onProgress } = context
  try {
    return await sendPieces<CloudAnswer>(
      parcel,
      { startByte: nextByte, pieceBytes: fragmentBytes, signal, onProgress },
      async ({ start, end, isLast, body }) => {
        const headers = { 'content-length': String(end - start), 'content-range': `bytes ${start}-${end - 1}/${parcel.sizeBytes}` }
        const answer = await graph.callSession(uploadUrl, { method: 'PUT', headers, body })
        if (answer.status >= 300) throw sessionRefusal(answer)
        return isLast && answer.status !== 202 ? { done: answer } : { nextByte: nextExpected(answer) }
      },
    )
  } catch (thrown) {
    await giveUp(graph, uploadUrl)
    throw thrown
  }
}

const nextExpected = ({ text }: CloudAnswer): number | undefined => {
  const { nextExpectedRanges: ranges } = objectOf(text)
  const first: unknown = Array.isArray(ranges) ? ranges[0] : undefined
  const start = typeof first === 'string' ? /^\d+/.exec(first)?.[0] : undefined
  return start === undefined ? undefined : Number(start)
}

const sessionRefusal = (answer: CloudAnswer) => {
  if (answer.status === 416) return outOfStep()
  if (answer.status === 404 || answer.status === 410) {
    return new DeliveryError('upload_expired', 'SharePoint ended the upload session before the document was whole: it begins anew', {
      answer: targetAnswer(answer),
    })
  }
  return graphRefusal(answer)
}
