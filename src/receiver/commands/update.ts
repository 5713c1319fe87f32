import type { Answer } from '../answer.ts'
import { missingDocument } from '../archived.ts'
import type { CommandHandler } from '../call.ts'
import { withComponents } from '../components.ts'
import { mayBeLong } from '../incoming.ts'
import { metadataOf } from '../metadata.ts'

/** By PUT, one component of an existing document, new or anew; by POST, the whole document: what is not sent again ends. */
export const update: CommandHandler = async (call, deps): Promise<Answer> => {
  const { source, command, request } = call
  const { receivedAt } = request
  const docId = command.get('docId')
  const metadata = metadataOf(request)
  // spares the client a long body; whether it is there in the end is decided under the lock
  if (mayBeLong(request) && !(await deps.archiveDocuments.exists(source.repository.id, docId))) throw missingDocument()

  const taken: Answer = { status: 200, headers: {}, body: '' }
  await withComponents(call, deps, deps.contents.writeTo, async (components) => {
    const whole = request.method === 'POST'
    const captured = call.captured(taken)
    const updated = await deps.receipts.update({ source, docId, metadata, components, receivedAt, captured, whole })
    if (!updated.found) throw missingDocument()
    deps.launch(updated.messages)
  })
  return taken
}
