import type { Answer } from '../answer.ts'
import type { CommandHandler } from '../command-context.ts'
import { piecesOf, readMetadata, storeComponents } from '../components.ts'
import { mayBeLong } from '../exchange.ts'
import { documentNotFound, fetchWhole } from '../upstream.ts'

/**
 * Updates a document. PUT adds or replaces one component. POST replaces the whole document: components that are not sent again are
 * removed.
 */
export const update: CommandHandler = async (context, deps): Promise<Answer> => {
  const { repository, command, exchange } = context
  const { request } = exchange
  const docId = command.get('docId')
  const metadata = readMetadata(request, repository.codePage)
  // Fail fast before reading a large body. The update itself checks again under the lock. A document of the upstream has to be here first.
  if ((mayBeLong(request) || repository.upstream) && !(await deps.archiveDocuments.exists(repository.id, docId))) {
    if (!(await fetchWhole(context, deps))) throw documentNotFound()
  }

  const updated: Answer = { status: 200, headers: {}, body: '' }
  await storeComponents(context, deps, deps.contents.writeTo, async (components) => {
    const { found, documents, messages, atOnce } = await deps.update({
      repository,
      docId,
      docProt: null,
      metadata,
      components,
      receivedAt: request.receivedAt,
      requestId: request.id,
      capture: await exchange.prepareCapture(updated, piecesOf(request, components)),
      whole: request.method === 'POST',
    })
    if (!found) throw documentNotFound()
    deps.receiverLog.documentsReceived(exchange, repository, docId, documents)
    if (atOnce) deps.launch(messages)
  })
  return updated
}
