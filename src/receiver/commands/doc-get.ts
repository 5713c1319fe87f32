import { Readable } from 'node:stream'
import type { Answer } from '../answer.ts'
import { documentHeaders, findDocument } from '../archived.ts'
import type { CommandHandler } from '../call.ts'
import { createDocumentParts } from '../document-parts.ts'
import { findStored, openStored } from '../stored.ts'

/** A whole document: what info tells of it, with the bytes of every component. */
export const docGet: CommandHandler = async (call, deps): Promise<Answer> => {
  const { command, source } = call
  const document = await findDocument(call, deps)
  const pVersion = command.get('pVersion')
  const parts = createDocumentParts(pVersion)
  const pieces = document.components.map((component) => ({
    head: parts.head(component, component.sizeBytes),
    sizeBytes: component.sizeBytes,
    stored: findStored(component, deps.contents),
  }))
  const end = parts.end(pieces.length)
  const length = pieces.reduce((sum, { head, sizeBytes }) => sum + head.length + sizeBytes + parts.foot.length, end.length)

  const first = pieces.find(({ sizeBytes }) => sizeBytes > 0)
  const opened = first && (await openStored(first.stored))

  async function* write(): AsyncGenerator<Buffer, void, undefined> {
    for (const piece of pieces) {
      yield piece.head
      if (piece.sizeBytes > 0) yield* piece === first ? opened! : piece.stored.store.read(piece.stored.content)
      yield parts.foot
    }
    yield end
  }
  const body = Readable.from(write(), { objectMode: false })
  // the client may leave before the first piece is asked for
  body.once('close', () => opened?.destroy())
  return {
    status: 200,
    headers: {
      'Content-Type': parts.contentType,
      ...documentHeaders(document, source.repository.repoId, document.components, pVersion),
      'Content-Length': length,
    },
    body,
  }
}
