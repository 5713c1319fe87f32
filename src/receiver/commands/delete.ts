import type { Answer } from '../answer.ts'
import { findComponent, findDocument, missingComponent, missingDocument } from '../archived.ts'
import type { CommandHandler } from '../call.ts'

/** Ends a document, or one component of it. The interface does it by GET. What was received before is delivered all the same. */
export const deleteCommand: CommandHandler = async (call, deps): Promise<Answer> => {
  const { source, command } = call
  const named = command.find('compId')
  // the component that reading would find by this name
  const compId = named === undefined ? undefined : findComponent(await findDocument(call, deps), named).compId
  const ended = await deps.archiveDocuments.end(source.repository.id, command.get('docId'), compId)
  if (ended === 'no document') throw missingDocument()
  if (ended === 'no component') throw missingComponent()
  return { status: 200, headers: {}, body: '' }
}
