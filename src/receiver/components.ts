import { quotaOf } from '../archive/quota.ts'
import type { ReceivedComponent, ReceivedDocument } from '../archive/receive.ts'
import { plainValue } from '../base/text.ts'
import { splitMultipart, type Piece } from '../capture/stored-body.ts'
import { decodeHeader } from '../content-server/encoding.ts'
import { boundaryOf, readParts, type Part } from '../content-server/multipart.ts'
import { formats, isCompId, isContentType } from '../content-server/parameters.ts'
import type { ContentStore } from '../content/store.ts'
import { toldFileName } from '../domain/file-name.ts'
import { metadataMaxCharacters, type DocumentMetadata } from '../domain/template.ts'
import { readBody, refuseEncoding, type BodyLimits } from './body.ts'
import type { CommandContext, CommandDeps } from './command-context.ts'
import type { ReceiverRequest } from './exchange.ts'
import { Refusal } from './refusal.ts'

/** A document as a request contains it: its components are stored and not yet owned. */
export type SentDocument = Pick<ReceivedDocument, 'docId' | 'components'>

/** Like `storeDocuments`, for a request that contains a single document. */
export const storeComponents = (
  context: CommandContext,
  deps: CommandDeps,
  store: ContentStore | undefined,
  commit: (components: ReceivedComponent[]) => Promise<void>,
): Promise<void> => storeDocuments(context, deps, store, ([document]) => commit(document?.components ?? []))

// What a request may keep in memory for the statement that inserts its documents, which holds it several times.
const bufferMaxBytes = 1_024 * 1_024

/**
 * Stores the components of a request and passes them to `commit`.
 * @param store without one, the bytes are read and discarded
 * @returns the result of `commit`
 * @throws errors of reading and of `commit`, after the stored bytes have been discarded
 */
export const storeDocuments = async <T>(
  context: CommandContext,
  deps: CommandDeps,
  store: ContentStore | undefined,
  commit: (documents: SentDocument[]) => Promise<T>,
): Promise<T> => {
  const documents: SentDocument[] = []
  let bufferLeft = bufferMaxBytes
  try {
    const limits = store ? { ...deps.limits, quota: quotaOf(context.repository, deps.limits) } : deps.limits
    const components = context.exchange.request.method === 'POST' ? componentsOfParts(context, limits) : componentOfBody(context, limits)
    for await (const { docId, compId, contentType, announcedBytes, body } of components) {
      const document = documentOf(documents, docId, compId)
      const stored = await storeBytes(context, body, store, bufferLeft)
      bufferLeft -= stored.content?.buffer?.data.length ?? 0
      document.components.push({ compId, contentType, ...stored })
      if (announcedBytes !== undefined && announcedBytes !== stored.sizeBytes) {
        throw new Refusal('invalid_parameter', 'the length of a part differs from its Content-Length')
      }
    }
    return await commit(documents)
  } catch (thrown) {
    await discardComponents(documents.flatMap(({ components }) => components))
    throw thrown
  }
}

/** Returns the document that a component belongs to: the current one, or a new one. */
const documentOf = (documents: SentDocument[], docId: string, compId: string): SentDocument => {
  const document = documents.find((earlier) => earlier.docId === docId)
  if (!document) {
    documents.push({ docId, components: [] })
    return documents.at(-1)!
  }
  if (document !== documents.at(-1)) throw new Refusal('invalid_parameter', 'the parts of a document must follow one another')
  if (document.components.some((earlier) => earlier.compId === compId)) {
    throw new Refusal('invalid_parameter', 'two parts contain the same component')
  }
  return document
}

/** Describes the body of a request by the contents that hold its components. @returns undefined if they do not hold all of it */
export const piecesOf = ({ method, recordedBody }: ReceiverRequest, components: ReceivedComponent[]): Piece[] | undefined => {
  const contents = components.flatMap(({ content }) => content ?? [])
  if (contents.length < components.length) return undefined
  if (method === 'POST') {
    const body = recordedBody.whole()
    return body ? splitMultipart(body, contents) : undefined
  }
  return contents.flatMap(({ id, sizeBytes }) => (sizeBytes > 0 ? [{ contentId: id, start: 0, sizeBytes }] : []))
}

/** Discards stored bytes. Never throws: the job remove-orphans removes what cannot be removed now. */
export const discardComponents = async (components: ReceivedComponent[]): Promise<void> => {
  await Promise.all(components.map(async ({ content }) => content?.discard()))
}

const storeBytes = async (
  { repository }: CommandContext,
  body: AsyncIterable<Uint8Array>,
  store: ContentStore | undefined,
  bufferLeft: number,
) => {
  if (!store) return { sizeBytes: await countBytes(body), content: null }
  const content = await store.write(repository.workspace.id, body, bufferLeft)
  return { sizeBytes: content.sizeBytes, content }
}

const countBytes = async (body: AsyncIterable<Uint8Array>): Promise<number> => {
  let sizeBytes = 0
  for await (const chunk of body) sizeBytes += chunk.length
  return sizeBytes
}

async function* componentOfBody({ command, exchange }: CommandContext, limits: BodyLimits) {
  yield {
    docId: command.get('docId'),
    compId: command.get('compId'),
    contentType: contentTypeOf(exchange.request.headers['content-type']),
    announcedBytes: undefined,
    body: readBody(exchange.request, limits),
  }
}

async function* componentsOfParts(context: CommandContext, limits: CommandDeps['limits']) {
  const { request } = context.exchange
  const boundary = boundaryOf(request.headers['content-type'])
  for await (const part of readParts(readBody(request, limits), { boundary, maxParts: limits.maxParts })) {
    const compId = compIdOf(part, context.repository.codePage)
    if (compId === undefined) {
      if ((await countBytes(part.body)) > 0) throw new Refusal('invalid_parameter', 'a part has no component name')
      continue
    }
    refuseEncoding('a part', part.values)
    if (!isCompId(compId)) throw new Refusal('invalid_parameter', 'the component name of a part is not a valid compId')
    yield {
      docId: docIdOf(context, part),
      compId,
      contentType: contentTypeOf(part.header('content-type')),
      announcedBytes: announcedBytesOf(part),
      body: part.body,
    }
  }
}

/** Reads X-compId, or else the name of a form field: some HTTP clients know forms better than this interface. */
const compIdOf = (part: Part, codePage: string): string | undefined => {
  const [, quoted, plain] = /(?:^|;)\s*name=(?:"([^"]*)"|([^;\s]+))/i.exec(part.header('content-disposition') ?? '') ?? []
  const name = part.header('x-compid')?.trim() || quoted || plain
  return name ? decodeHeader(name, codePage) : undefined
}

/** Only in an mCreate do the parts name their document. */
const docIdOf = ({ command }: CommandContext, part: Part): string => {
  if (command.rule.command !== 'mCreate') return command.get('docId')
  const docId = part.header('x-docid')?.trim()
  if (docId === undefined || !formats.docId.accepts(docId)) {
    throw new Refusal('invalid_parameter', 'a part has no X-docId, or an invalid one')
  }
  return docId
}

const announcedBytesOf = (part: Part): number | undefined => {
  const text = part.header('content-length')?.trim()
  if (!text) return undefined
  if (!/^\d{1,15}$/.test(text)) throw new Refusal('invalid_parameter', 'the Content-Length of a part is not a number')
  return Number(text)
}

/** Keeps the content type with all its parameters, so that reading returns what was sent. */
const contentTypeOf = (header: string | undefined): string | null => {
  const contentType = header?.trim()
  if (!contentType) return null
  if (!isContentType(contentType)) {
    throw new Refusal('invalid_parameter', 'a Content-Type is too long or contains control characters')
  }
  return contentType
}

/** Reads the business metadata that a source system may send in headers of a create or an update. */
export const readMetadata = ({ headers }: ReceiverRequest, codePage: string): DocumentMetadata => {
  const valueOf = (name: string): string | null => {
    const value = headers[name]
    if (value === undefined || value === '') return null
    if (value.length > metadataMaxCharacters) throw new Refusal('invalid_parameter', `${name} is too long`)
    return plainValue(decodeHeader(value, codePage), metadataMaxCharacters) || null
  }
  return {
    erpObjectType: valueOf('x-relay-object-type'),
    erpObjectId: valueOf('x-relay-object-id'),
    arObject: valueOf('x-relay-ar-object'),
    fileName: toldFileName(valueOf('x-relay-file-name') ?? '', metadataMaxCharacters) ?? null,
    description: valueOf('x-relay-description'),
  }
}
