import { quotaOf } from '../../archive/quota.ts'
import type { Answer } from '../answer.ts'
import { readBody } from '../body.ts'
import type { CommandContext, CommandDeps, CommandHandler } from '../command-context.ts'
import { findComponent, findContent, findDocument } from '../read-document.ts'
import { Refusal } from '../refusal.ts'

/** Appends bytes to a component. They are stored as a segment of their own. No row is locked while the client sends. */
export const append: CommandHandler = async (context, deps): Promise<Answer> => {
  const { repository, command } = context
  const appended: Answer = { status: 200, headers: {}, body: '' }
  const done = await deps.appendMutex(`${repository.id} ${command.get('docId')}`, () => appendLocked(context, appended, deps))
  if (!done) throw documentLocked()
  return appended
}

const documentLocked = () => new Refusal('document_locked', 'another request is changing the document')

const appendLocked = async (context: CommandContext, answer: Answer, deps: CommandDeps): Promise<void> => {
  const { repository, command, exchange } = context
  const component = findComponent(await findDocument(context, deps), command.get('compId'))
  const stored = findContent(component, deps.contents)
  // The limit applies to the whole component.
  const remainingBytes = Math.max(deps.limits.RELAY_DOCUMENT_MAX_BYTES - component.sizeBytes, 0)
  const quota = quotaOf(repository, deps.limits)
  const added = readBody(exchange.request, { ...deps.limits, RELAY_DOCUMENT_MAX_BYTES: remainingBytes, quota })

  const basedOn = stored.content
  // What is at its home is brought back: the next delivery there would replace the bytes that a segment extends.
  const isBroughtBack = stored.store.placeOf !== undefined
  const plan = isBroughtBack ? { startByte: 0, merged: [] } : await deps.planAppend(basedOn)
  const source = isBroughtBack || plan.merged.length > 0 ? concatenate(stored.store.read(basedOn, { start: plan.startByte }), added) : added
  const content = await deps.contents.writeTo.write(repository.workspace.id, source)
  const addedBytes = plan.startByte + content.sizeBytes - basedOn.sizeBytes
  const isEmpty = addedBytes === 0
  // The content of the component, and not the segment, which a later append may merge.
  const pieces = isEmpty ? [] : [{ contentId: isBroughtBack ? content.id : basedOn.id, start: basedOn.sizeBytes, sizeBytes: addedBytes }]
  try {
    const outcome = await deps.append({
      repository,
      docId: command.get('docId'),
      compId: component.compId,
      basedOn,
      segment: isEmpty ? null : { ...plan, content, isWhole: isBroughtBack },
      receivedAt: exchange.request.receivedAt,
      capture: await exchange.prepareCapture(answer, pieces),
    })
    if (outcome === 'changed') throw documentLocked()
    if (isEmpty) await content.discard()
  } catch (thrown) {
    await content.discard()
    throw thrown
  }
}

async function* concatenate(...sources: AsyncIterable<Uint8Array>[]): AsyncGenerator<Uint8Array, void, undefined> {
  for (const source of sources) yield* source
}
