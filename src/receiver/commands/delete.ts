import type { Answer } from '../answer.ts'
import type { CommandHandler } from '../command-context.ts'
import { componentNotFound, documentNotFound, findComponent, findDocument } from '../read-document.ts'

/** Deletes a document or one of its components. The interface uses GET for it. Documents received before are delivered all the same. */
export const deleteCommand: CommandHandler = async (context, deps): Promise<Answer> => {
  const { repository, command } = context
  const named = command.find('compId')
  // Deletes the component that a read with this name would return.
  const compId = named === undefined ? undefined : findComponent(await findDocument(context, deps), named).compId
  const outcome = await deps.archiveDocuments.delete(repository.id, command.get('docId'), compId)
  if (outcome === 'no document') throw documentNotFound()
  if (outcome === 'no component') throw componentNotFound()
  return { status: 200, headers: {}, body: '' }
}
