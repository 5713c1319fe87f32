import { newId } from '../../base/ids.ts'
import { DeliveryError, type Payload } from '../connector.ts'
import type { Found } from './earlier-copy.ts'
import { probeContent } from './probe-content.ts'

/** Returns a document for a test of a destination. Its name is its own, since the target may forbid to replace or to remove it. */
export const probePayload = (): Payload => {
  const id = newId()
  return {
    deliveryId: id,
    messageId: id,
    attempt: 1,
    again: 0,
    workspace: 'probe/probe',
    connectionId: id,
    documentId: id,
    repoId: 'probe',
    docId: id,
    compId: 'data',
    erpObjectType: null,
    erpObjectId: null,
    arObject: null,
    fileName: null,
    description: null,
    fields: {},
    properties: {},
    path: `.probe-${id}`,
    location: null,
    contentType: 'text/plain',
    receivedAt: new Date(),
    ...probeContent(),
    downloadUrl: () => undefined,
  }
}

/**
 * Does at a target what a delivery does: writes, looks at what was written, and removes it.
 * @returns a sentence that says what was done, and what could not be proved
 * @throws what `write` has thrown, after what was written is removed
 */
export const proveWriting = async (
  { things, place, names, signal }: { things: string; place: string; names: readonly string[]; signal: AbortSignal },
  {
    write,
    look,
    remove,
    isAbsent,
  }: {
    write(): Promise<void>
    look(name: string): Promise<Found<unknown>>
    remove(name: string): Promise<void>
    /** Returns true for an error of `remove` that says that there is nothing. */
    isAbsent(thrown: unknown): boolean
  },
): Promise<string> => {
  const removeAll = async () => {
    const remaining: string[] = []
    for (const name of names) {
      await remove(name).catch((thrown: unknown) => {
        signal.throwIfAborted()
        if (!isAbsent(thrown)) remaining.push(name)
      })
    }
    return remaining
  }
  let unseen: string | undefined
  try {
    await write()
    for (const name of names) {
      const found = await look(name)
      if (found.state === 'unknown') unseen = found.needs
      else if (found.state !== 'ours') throw notThere(name)
    }
  } catch (thrown) {
    await removeAll().catch(() => {})
    throw thrown
  }
  const remaining = await removeAll()
  const wrote = `The relay wrote ${names.length} ${things} to the ${place}, one in a single request and one in parts`
  const looked = unseen === undefined ? ', and looked at them' : ''
  const blind =
    unseen === undefined ? '' : ` It may not look at them: ${unseen}, which only a target that forbids to replace makes necessary.`
  const end =
    remaining.length === 0
      ? ` It removed them. No probe remains.`
      : ` It may not remove them, which no delivery does. These remain: ${remaining.join(', ')}.`
  return `${wrote}${looked}.${blind}${end}`
}

const notThere = (name: string) =>
  new DeliveryError('content_altered', `the target has taken ${name}, and does not show it with its size and metadata`)
