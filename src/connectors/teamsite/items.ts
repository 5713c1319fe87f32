import { DeliveryError, type AttemptContext, type Payload } from '../connector.ts'
import { isNotFound, parseObject, requireId, toTargetAnswer, type CloudApi, type CloudResponse } from '../shared/cloud-api.ts'
import type { Found, Refusal } from '../shared/earlier-copy.ts'
import { during } from '../shared/operation.ts'
import { openPayload } from '../shared/payload-stream.ts'
import type { Content } from '../shared/probe-content.ts'
import { quickXorHash } from './quick-xor-hash.ts'

/**
 * Requires that an answer describes a stored file. Its size says little: SharePoint adds properties to Office files.
 * @throws DeliveryError `answer_unreadable`, `content_altered`
 */
export const requireItem = (response: CloudResponse, { sizeBytes }: Pick<Payload, 'sizeBytes'>): void => {
  requireId(response, 'SharePoint')
  if (parseObject(response.text).size !== 0 || sizeBytes === 0) return
  throw new DeliveryError('content_altered', 'SharePoint stored an empty file; the next attempt replaces it', {
    answer: toTargetAnswer(response),
  })
}

// With one of these, Graph refuses to replace a file that is open, that a retention label has declared a record, or that is on hold. It has no code of
// its own for that, and its messages are in the language of the site. An upload session ends with its last part: a gateway that sends it twice gets 404.
const refusalCodes = new Set([
  'access_denied',
  'locked',
  'http_400',
  'http_405',
  'http_409',
  'http_412',
  'http_422',
  'http_451',
  'upload_expired',
])

/** Returns whether a refusal can mean that the file is stored, or may not be replaced. */
export const refusalOf = (thrown: unknown): Refusal =>
  thrown instanceof DeliveryError && refusalCodes.has(thrown.code) ? 'perhaps' : undefined

/** Returns the place of a file in its library, as it is shown. @param file is its address in Graph, up to the colon after the path */
export const placeOf = (file: string): string => decodeURIComponent(file.slice(file.indexOf('/root:') + '/root:'.length))

/**
 * Looks at the file under the path of a document. Graph keeps nothing of the relay with a file, so the content decides.
 * @param file is its address in Graph, up to the colon after the path
 */
export const findItem = async (
  graph: CloudApi,
  file: string,
  payload: Content,
  { signal }: Pick<AttemptContext, 'signal'>,
): Promise<Found<CloudResponse>> => {
  try {
    const operation = `look at ${placeOf(file)}`
    const response = await graph.request(`${file}?$select=id,size,eTag,file`, { operation, method: 'GET' })
    await during(operation, async () => requireId(response, 'SharePoint'))
    const { size, file: facet } = parseObject(response.text) as { size?: unknown; file?: { hashes?: { quickXorHash?: unknown } } }
    const other = { state: 'other', what: 'a file with another content (SharePoint changes Office files)' } as const
    if (size !== payload.sizeBytes || facet === undefined) return other
    const digest = facet.hashes?.quickXorHash
    if (typeof digest !== 'string') return { state: 'unknown', needs: 'SharePoint tells no digest of the file' }
    const source = openPayload(payload, { signal })
    return digest === (await quickXorHash(source)) ? { state: 'ours', stored: response } : other
  } catch (thrown) {
    if (isNotFound(thrown)) return { state: 'absent' }
    if (thrown instanceof DeliveryError && thrown.code === 'access_denied') {
      return { state: 'unknown', needs: 'the application may not read the file' }
    }
    throw thrown
  }
}
