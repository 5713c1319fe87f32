import type { Answer } from '../answer.ts'
import type { CommandHandler } from '../command-context.ts'
import { componentNotFound, findComponent, findDocument } from '../read-document.ts'
import { documentNotFound, existsUpstream } from '../upstream.ts'

/** Deletes a document or one of its components. The interface uses GET for it. Documents received before are delivered all the same. */
export const deleteCommand: CommandHandler = async (context, deps): Promise<Answer> => {
  const { repository, command } = context
  const named = command.find('compId')
  // Deletes the component that a read with this name would return.
  const compId = named === undefined ? undefined : findComponent(await findDocument(context, deps), named).compId
  const docId = command.get('docId')
  const outcome = await deps.archiveDocuments.delete(repository.id, docId, compId, repository.upstream ? 'may have it' : 'none')
  if (outcome === 'no document') {
    if (!(await existsUpstream(context, deps, docId))) throw documentNotFound()
    // It stays there, and is not served any more: neither from there, nor as a copy that was kept while it was asked for.
    await deps.archiveDocuments.delete(repository.id, docId, undefined, 'has it')
  }
  if (outcome === 'no component') throw componentNotFound()
  return { status: 200, headers: {}, body: '' }
}
