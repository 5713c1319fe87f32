import { z } from 'zod'
import { giveUp, orGiveUp, takeUploadUrl, type CloudApi, type Uploaded } from './cloud-api.ts'
import { objectOf, targetAnswer, type CloudAnswer } from './cloud-call.ts'
import { DeliveryError, type AttemptContext, type Parcel } from './connector.ts'
import { graphRefusal } from './graph-refusal.ts'
import { outOfStep, sendPieces } from './pieces.ts'

interface UploadSession {
  /** Whoever knows it may write this one file. */
  uploadUrl: string
  nextByte: number
}

// a multiple of 320 KiB, as SharePoint wants it, and the size Microsoft advises
const fragmentBytes = 10 * 1024 * 1024

const savedSession = z.object({
  uploadUrl: z.string(),
  file: z.string(),
  /** The document may have been appended to since. */
  sha256: z.string(),
})

/**
 * Sends a document fragment by fragment, from where the run before this one came to. A session that is not known any more, because it
 * was completed or has expired, is begun anew: the file is then written once more under the same name.
 * @param file its address in Graph, up to the colon behind the path
 */
export const uploadInFragments = async (graph: CloudApi, file: string, parcel: Parcel, context: AttemptContext): Promise<Uploaded> => {
  const { sizeBytes, sha256 } = parcel
  const { signal, onProgress } = context
  const { uploadUrl, nextByte } = (await findSession(graph, file, parcel, context.saved)) ?? (await beginSession(graph, file))
  context.save({ uploadUrl, file, sha256 } satisfies z.output<typeof savedSession>)
  const answer = await orGiveUp(graph, uploadUrl, signal, () =>
    sendPieces<CloudAnswer>(
      parcel,
      { startByte: nextByte, pieceBytes: fragmentBytes, signal, onProgress },
      async ({ start, end, isLast, body }) => {
        const headers = { 'content-length': String(end - start), 'content-range': `bytes ${start}-${end - 1}/${sizeBytes}` }
        const said = await graph.callSession(uploadUrl, { method: 'PUT', headers, body })
        if (said.status >= 300) throw sessionRefusal(said)
        return isLast && said.status !== 202 ? { done: said } : { nextByte: nextExpected(said) }
      },
    ),
  )
  return { answer, bytesSent: sizeBytes - nextByte }
}

/** Asks for a session that writes the file, in place of one that is there. */
export const beginSession = async (graph: CloudApi, file: string): Promise<UploadSession> => {
  const answer = await graph.call(`${file}:/createUploadSession`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ item: { '@microsoft.graph.conflictBehavior': 'replace' } }),
  })
  return { uploadUrl: takeUploadUrl(graph, objectOf(answer.text).uploadUrl), nextByte: 0 }
}

const findSession = async (
  graph: CloudApi,
  file: string,
  { sizeBytes, sha256 }: Parcel,
  saved: unknown,
): Promise<UploadSession | undefined> => {
  const { data: session } = savedSession.safeParse(saved)
  if (!session) return undefined
  const uploadUrl = takeUploadUrl(graph, session.uploadUrl)
  if (session.file !== file || session.sha256 !== sha256) {
    await giveUp(graph, uploadUrl)
    return undefined
  }
  const answer = await graph.callSession(uploadUrl, { method: 'GET' })
  const nextByte = answer.status === 200 ? nextExpected(answer) : undefined
  return nextByte !== undefined && nextByte < sizeBytes ? { uploadUrl, nextByte } : undefined
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
