import type { Answer } from '../answer.ts'
import { findComponent, findDocument } from '../archived.ts'
import { readBody } from '../body.ts'
import type { Call, CommandDeps, CommandHandler } from '../call.ts'
import { Refusal } from '../refusal.ts'
import { findStored } from '../stored.ts'

/**
 * Adds bytes to a component, in its place. Old and new bytes go through the content store once more, so that the whole of them is
 * hashed; no row is locked while a client is waited for.
 */
export const append: CommandHandler = async (call, deps): Promise<Answer> => {
  const { source, command } = call
  const appended: Answer = { status: 200, headers: {}, body: '' }
  const turn = await deps.turns(`${source.repository.id} ${command.get('docId')}`, () => appendNow(call, appended, deps))
  if (!turn) throw locked()
  return appended
}

const locked = () => new Refusal('document_locked', 'somebody else is changing the document')

const appendNow = async (call: Call, answer: Answer, deps: CommandDeps): Promise<void> => {
  const { source, command, request } = call
  const { receivedAt } = request
  const component = findComponent(await findDocument(call, deps), command.get('compId'))
  const stored = findStored(component, deps.contents)
  // what is there counts, too
  const left = Math.max(deps.limits.RELAY_DOCUMENT_MAX_BYTES - component.sizeBytes, 0)
  const added = readBody(request, { ...deps.limits, RELAY_DOCUMENT_MAX_BYTES: left })

  const content = await deps.contents.writeTo.write(source.workspace.id, oneAfterTheOther(stored.store.read(stored.content), added))
  try {
    const appended = await deps.appends.append({
      source,
      docId: command.get('docId'),
      compId: component.compId,
      basedOn: stored.content.id,
      content,
      receivedAt,
      captured: call.captured(answer),
    })
    if (appended === 'changed') throw locked()
  } catch (thrown) {
    await content.discard()
    throw thrown
  }
}

async function* oneAfterTheOther(...sources: AsyncIterable<Uint8Array>[]): AsyncGenerator<Uint8Array, void, undefined> {
  for (const source of sources) yield* source
}
