import type { ContentStore } from '../content/store.ts'
import type { ReceivedComponent } from '../db/planned-documents.ts'
import { readBody } from './body.ts'
import { decodeHeader, hasControlCharacter } from './bytes.ts'
import type { Call, CommandDeps } from './call.ts'
import { boundaryOf, readParts, type Part } from './multipart.ts'
import { formats, isCompId } from './parameters.ts'
import { Refusal } from './refusal.ts'

export interface ReceivedDocument {
  docId: string
  components: ReceivedComponent[]
}

/** A component on its way in. */
interface Arriving {
  docId: string
  compId: string
  /** Null where none was sent. */
  contentType: string | null
  announcedBytes: number | undefined
  body: AsyncIterable<Uint8Array>
}

const contentTypeMaxCharacters = 1_024

/** Takes in one document's components, and otherwise like `withDocuments`. */
export const withComponents = (
  call: Call,
  deps: CommandDeps,
  store: ContentStore | undefined,
  commit: (components: ReceivedComponent[]) => Promise<void>,
): Promise<void> => withDocuments(call, deps, store, ([document]) => commit(document?.components ?? []))

/**
 * Takes in what a request brings and hands it to `commit`. Without a store the bytes are read and thrown away.
 * @returns what `commit` does
 * @throws what reading or `commit` throws, after giving up whatever was stored and is not committed
 */
export const withDocuments = async <T>(
  call: Call,
  deps: CommandDeps,
  store: ContentStore | undefined,
  commit: (documents: ReceivedDocument[]) => Promise<T>,
): Promise<T> => {
  const documents: ReceivedDocument[] = []
  try {
    for await (const arriving of call.request.method === 'POST' ? componentsOfParts(call, deps) : componentOfBody(call, deps)) {
      const { components } = documentOf(documents, arriving)
      const component = await takeComponent(call, arriving, store)
      components.push(component)
      if (arriving.announcedBytes !== undefined && arriving.announcedBytes !== component.sizeBytes) {
        throw new Refusal('invalid_parameter', 'a part is not as long as its Content-Length says')
      }
    }
    return await commit(documents)
  } catch (thrown) {
    await discardComponents(documents.flatMap(({ components }) => components))
    throw thrown
  }
}

/** The document that a component belongs to: the one of the component before it, or a new one. */
const documentOf = (documents: ReceivedDocument[], { docId, compId }: Arriving): ReceivedDocument => {
  const document = documents.find((earlier) => earlier.docId === docId)
  if (!document) {
    documents.push({ docId, components: [] })
    return documents.at(-1)!
  }
  if (document !== documents.at(-1)) throw new Refusal('invalid_parameter', 'the parts of a document must follow each other')
  if (document.components.some((earlier) => earlier.compId === compId)) {
    throw new Refusal('invalid_parameter', 'two parts bring the same component')
  }
  return document
}

/** Gives stored bytes up. Never throws: what cannot be removed now, the sweep will. */
export const discardComponents = async (components: ReceivedComponent[]): Promise<void> => {
  await Promise.all(components.map(async ({ content }) => content?.discard()))
}

const takeComponent = async (
  { source }: Call,
  { compId, contentType, body }: Arriving,
  store: ContentStore | undefined,
): Promise<ReceivedComponent> => {
  if (!store) return { compId, contentType, sizeBytes: await countBytes(body), content: null }
  const content = await store.write(source.workspace.id, body)
  return { compId, contentType, sizeBytes: content.sizeBytes, content }
}

const countBytes = async (body: AsyncIterable<Uint8Array>): Promise<number> => {
  let sizeBytes = 0
  for await (const piece of body) sizeBytes += piece.length
  return sizeBytes
}

async function* componentOfBody({ command, request }: Call, { limits }: CommandDeps): AsyncGenerator<Arriving, void, undefined> {
  yield {
    docId: command.get('docId'),
    compId: command.get('compId'),
    contentType: contentTypeOf(request.headers['content-type']),
    announcedBytes: undefined,
    body: readBody(request, limits),
  }
}

async function* componentsOfParts(call: Call, { limits }: CommandDeps): AsyncGenerator<Arriving, void, undefined> {
  const { request } = call
  const boundary = boundaryOf(request.headers['content-type'])
  for await (const part of readParts(readBody(request, limits), { boundary, maxParts: limits.RELAY_DOCUMENT_MAX_PARTS })) {
    const compId = compIdOf(part)
    if (compId === undefined) {
      if ((await countBytes(part.body)) > 0) throw new Refusal('invalid_parameter', 'a part names no component')
      continue
    }
    if (!isCompId(compId)) throw new Refusal('invalid_parameter', 'a part names a component by something that is no compId')
    yield {
      docId: docIdOf(call, part),
      compId,
      contentType: contentTypeOf(part.header('content-type')),
      announcedBytes: announcedBytesOf(part),
      body: part.body,
    }
  }
}

/** X-compId; clients that know forms better than this interface put it where a form's field has its name. */
const compIdOf = (part: Part): string | undefined => {
  const [, quoted, plain] = /(?:^|;)\s*name=(?:"([^"]*)"|([^;\s]+))/i.exec(part.header('content-disposition') ?? '') ?? []
  const name = part.header('x-compid')?.trim() || quoted || plain
  return name ? decodeHeader(name) : undefined
}

/** Only where a request brings many documents do the parts say which one they belong to. */
const docIdOf = ({ command }: Call, part: Part): string => {
  if (command.rule.command !== 'mCreate') return command.get('docId')
  const docId = part.header('x-docid')?.trim()
  if (docId === undefined || !formats.docId.accepts(docId))
    throw new Refusal('invalid_parameter', 'a part has no X-docId, or not a good one')
  return docId
}

const announcedBytesOf = (part: Part): number | undefined => {
  const text = part.header('content-length')?.trim()
  if (!text) return undefined
  if (!/^\d{1,15}$/.test(text)) throw new Refusal('invalid_parameter', 'the Content-Length of a part is no number')
  return Number(text)
}

/** Kept as it is, parameters with no value included: what comes back on reading must be what was sent. */
const contentTypeOf = (header: string | undefined): string | null => {
  const contentType = header?.trim()
  if (!contentType) return null
  if (contentType.length > contentTypeMaxCharacters || hasControlCharacter(contentType)) {
    throw new Refusal('invalid_parameter', 'a Content-Type is too long or has control characters')
  }
  return contentType
}
