import type { Answer } from '../answer.ts'
import type { CommandHandler } from '../call.ts'
import { withComponents } from '../components.ts'
import { mayBeLong } from '../incoming.ts'
import { metadataOf } from '../metadata.ts'
import { Refusal } from '../refusal.ts'

/** A new document, whole or not at all: one component by PUT, any number of them by POST. */
export const create: CommandHandler = async (call, deps): Promise<Answer> => {
  const { source, command, request } = call
  const { receivedAt } = request
  const docId = command.get('docId')
  const metadata = metadataOf(request)
  const exists = () => new Refusal('document_exists', 'there is such a document already')
  // spares a twin a long body; who wins is decided by the database at the end
  if (mayBeLong(request) && (await deps.archiveDocuments.exists(source.repository.id, docId))) throw exists()

  const store = source.wires.length > 0 ? deps.contents.writeTo : undefined
  const created: Answer = { status: 201, reason: 'created', headers: {}, body: '' }
  await withComponents(call, deps, store, async (components) => {
    const docProt = command.find('docProt') ?? null
    const received = await deps.receipts.receive({
      source,
      docId,
      docProt,
      metadata,
      components,
      receivedAt,
      captured: call.captured(created),
    })
    if (!received.created) throw exists()
    deps.launch(received.messages)
  })
  return created
}
