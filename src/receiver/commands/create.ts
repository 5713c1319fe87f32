import type { Answer } from '../answer.ts'
import type { CommandHandler } from '../command-context.ts'
import { piecesOf, readMetadata, storeComponents } from '../components.ts'
import { mayBeLong } from '../exchange.ts'
import { Refusal } from '../refusal.ts'
import { existsUpstream } from '../upstream.ts'

/** Creates a document, whole or not at all: one component by PUT, any number of components by POST. */
export const create: CommandHandler = async (context, deps): Promise<Answer> => {
  const { repository, command, exchange } = context
  const { request } = exchange
  const docId = command.get('docId')
  const docProt = command.find('docProt') ?? null
  const metadata = readMetadata(request, repository.codePage)
  const documentExists = () => new Refusal('document_exists', 'a document with this docId exists')
  // Fail fast on a duplicate before reading a large body. The unique index decides the race.
  if (mayBeLong(request) && (await deps.archiveDocuments.exists(repository.id, docId))) throw documentExists()

  if (await existsUpstream(context, deps, docId)) throw documentExists()

  const store = repository.routes.length > 0 ? deps.contents.writeTo : undefined
  const created: Answer = { status: 201, reason: 'created', headers: {}, body: '' }
  await storeComponents(context, deps, store, async (components) => {
    const capture = await exchange.prepareCapture(created, piecesOf(request, components))
    const { id: requestId, receivedAt } = request
    const received = await deps.receive({ repository, docId, docProt, metadata, components, receivedAt, requestId, capture })
    if (!received.created) throw documentExists()
    deps.receiverLog.documentsReceived(exchange, repository, docId, received.documents)
    if (received.atOnce) deps.launch(received.messages)
  })
  return created
}
