import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import type { ArchiveDocument } from '../../archive/documents.ts'
import { bytesPiece, type Piece } from '../../capture/stored-body.ts'
import type { Fetched } from '../../migration/fetch.ts'
import type { Answer } from '../answer.ts'
import type { CommandHandler, ContentStores } from '../command-context.ts'
import { createDocumentParts, documentHeaders } from '../document-headers.ts'
import { findContent } from '../read-document.ts'
import { findOrFetch, readFetched, withFirstBytes, type DescribedComponent, type DescribedDocument } from '../upstream.ts'

/** Reads a whole document: the answer of info, with the bytes of every component. */
export const docGet: CommandHandler = async (context, deps): Promise<Answer> => {
  const { command, repository } = context
  const found = await findOrFetch(context, deps, { what: 'document' })
  const { document } = found
  const pVersion = command.get('pVersion')
  const parts = createDocumentParts(pVersion)
  const sources = 'fetched' in found ? sourcesOfFetched(found) : sourcesOfStored(found, deps.contents)
  const contents = sources.map((source) => ({ ...source, head: parts.head(source.component, source.sizeBytes) }))
  const end = parts.end(contents.length)
  const length = contents.reduce((sum, { head, sizeBytes }) => sum + head.length + sizeBytes + parts.foot.length, end.length)

  const opened = await openFirst(contents)

  async function* write(): AsyncGenerator<Buffer, void, undefined> {
    for (const content of contents) {
      yield content.head
      const begun = opened.get(content) ?? content.read()
      if (Buffer.isBuffer(begun)) yield begun
      else yield* begun
      yield parts.foot
    }
    yield end
  }
  const piecesOf = (contentIds: string[]): Piece[] => [
    ...contents.flatMap(({ head, sizeBytes }, index) => [
      bytesPiece(head),
      ...(sizeBytes > 0 ? [{ contentId: contentIds[index]!, start: 0, sizeBytes }] : []),
      bytesPiece(parts.foot),
    ]),
    bytesPiece(end),
  ]
  const body = Readable.from(write(), { objectMode: false })
  // The client may close the connection before the first chunk is read, or before a later component is opened.
  body.once('close', () => {
    for (const begun of opened.values()) if (!Buffer.isBuffer(begun)) begun.destroy()
    if ('fetched' in found) for (const { compId } of document.components) found.fetched.bodyOf(compId).copy.destroy()
  })
  return {
    status: 200,
    headers: {
      'Content-Type': parts.contentType,
      ...documentHeaders(document, repository.repoId, document.components, pVersion),
      'Content-Length': length,
    },
    body,
    ...('fetched' in found
      ? {
          keptAs: Promise.all(document.components.map(({ compId }) => found.fetched.contentOf(compId))).then((kept) =>
            kept.includes(undefined) ? undefined : piecesOf(kept.map((content) => content!.id)),
          ),
        }
      : { pieces: piecesOf(contents.map(({ contentId }) => contentId!)) }),
  }
}

interface Source {
  component: DescribedComponent
  sizeBytes: number
  /** Id of the content of a document that is kept. */
  contentId?: string
  read(): Readable
}

// As much of a document is read before the answer begins: a failure is an error status then, and not a broken answer.
const readFirstBytes = 64 * 1_024

/** Reads short components as a whole, and opens the first other one. */
const openFirst = async <Content extends Pick<Source, 'sizeBytes' | 'read'>>(
  contents: Content[],
): Promise<Map<Content, Readable | Buffer>> => {
  const opened = new Map<Content, Readable | Buffer>()
  let left = readFirstBytes
  for (const content of contents) {
    left -= content.sizeBytes
    opened.set(content, left >= 0 ? await buffer(content.read()) : await withFirstBytes(content.read()))
    if (left < 0) break
  }
  return opened
}

const sourcesOfStored = ({ document }: { document: ArchiveDocument }, contents: ContentStores): Source[] =>
  document.components.map((component) => {
    const { content, store } = findContent(component, contents)
    const { sizeBytes } = component
    return { component, sizeBytes, contentId: content.id, read: () => (sizeBytes > 0 ? store.read(content) : Readable.from([])) }
  })

const sourcesOfFetched = ({ document, fetched }: { document: DescribedDocument; fetched: Fetched }): Source[] =>
  document.components.map((component) => {
    const { compId, sizeBytes } = component
    const range = { start: 0, end: sizeBytes - 1 }
    return { component, sizeBytes, read: () => readFetched(fetched.bodyOf(compId), range) }
  })
