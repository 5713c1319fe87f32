import { Readable } from 'node:stream'
import { bytesPiece, type Piece } from '../../capture/capture.ts'
import type { Answer } from '../answer.ts'
import type { CommandHandler } from '../command-context.ts'
import { createDocumentParts, documentHeaders } from '../document-headers.ts'
import { findContent, findDocument, openContent } from '../read-document.ts'

/** Reads a whole document: the answer of info, with the bytes of every component. */
export const docGet: CommandHandler = async (context, deps): Promise<Answer> => {
  const { command, repository } = context
  const document = await findDocument(context, deps)
  const pVersion = command.get('pVersion')
  const parts = createDocumentParts(pVersion)
  const contents = document.components.map((component) => ({
    head: parts.head(component, component.sizeBytes),
    sizeBytes: component.sizeBytes,
    stored: findContent(component, deps.contents),
  }))
  const end = parts.end(contents.length)
  const length = contents.reduce((sum, { head, sizeBytes }) => sum + head.length + sizeBytes + parts.foot.length, end.length)

  const first = contents.find(({ sizeBytes }) => sizeBytes > 0)
  const opened = first && (await openContent(first.stored))

  async function* write(): AsyncGenerator<Buffer, void, undefined> {
    for (const content of contents) {
      yield content.head
      if (content.sizeBytes > 0) yield* content === first ? opened! : content.stored.store.read(content.stored.content)
      yield parts.foot
    }
    yield end
  }
  const pieces = contents.flatMap(({ head, sizeBytes, stored }): Piece[] => [
    bytesPiece(head),
    ...(sizeBytes > 0 ? [{ contentId: stored.content.id, start: 0, sizeBytes }] : []),
    bytesPiece(parts.foot),
  ])
  const body = Readable.from(write(), { objectMode: false })
  // The client may close the connection before the first chunk is read.
  body.once('close', () => opened?.destroy())
  return {
    status: 200,
    headers: {
      'Content-Type': parts.contentType,
      ...documentHeaders(document, repository.repoId, document.components, pVersion),
      'Content-Length': length,
    },
    body,
    pieces: [...pieces, bytesPiece(end)],
  }
}
